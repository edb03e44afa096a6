"""Who this process is, whether another one can be looked at from here, and whether it is still alive."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from muster.agents.processes import proc
from muster.domain.run import Driver

UNKNOWN = "unknown"  # the start of a process where there is no /proc


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """What `Driver.started` says: the boot, the clock tick, and the PID namespace in which a process started."""

    boot: str
    tick: str
    namespace: str | None = None  # the system knows none, or an older version wrote it


def birth_of(started: str) -> Birth:
    """Parse `Driver.started`."""
    boot, _, rest = started.partition("/")
    tick, _, namespace = rest.partition("/")
    return Birth(boot=boot, tick=tick, namespace=namespace or None)


def this_process() -> Driver:
    """Name this process so that no later one, and none of another PID namespace, can be taken for it."""
    if not _has_proc():
        return Driver(host=socket.gethostname(), pid=os.getpid(), started=UNKNOWN)
    # `self`, not its number: the /proc that is mounted may be of another namespace, where the number is a stranger's.
    parts = (proc.started("self") or UNKNOWN, proc.namespace())
    return Driver(host=socket.gethostname(), pid=os.getpid(), started="/".join(part for part in parts if part))


def sees(driver: Driver, us: Driver) -> bool:
    """Return whether this process can look whether a driver is alive; else only its lease tells."""
    if driver == us:
        return True
    theirs, ours = birth_of(driver.started), birth_of(us.started)
    if driver.host != us.host or theirs.namespace != ours.namespace:
        return False
    if ours.namespace is None:
        return True
    return theirs.boot == ours.boot and proc.is_ours()


def is_gone(driver: Driver, us: Driver) -> bool:
    """Return whether a driver is certainly dead; of one that cannot be seen from here nobody can say."""
    if driver == us or not sees(driver, us):
        return False
    theirs = birth_of(driver.started)
    return _started(driver.pid) != (driver.started if theirs.namespace is None else f"{theirs.boot}/{theirs.tick}")


def _started(pid: int) -> str | None:
    return proc.started(pid) if _has_proc() else _probe(pid)


def _has_proc() -> bool:
    return Path("/proc/self").exists()


def _probe(pid: int) -> str | None:
    """Ask for a process where there is no /proc; without its start time any process with this pid will do."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return UNKNOWN
    return UNKNOWN

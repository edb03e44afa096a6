"""Who this process is, and whether another one is still alive."""

import os
import socket
from pathlib import Path

from muster.agents.processes.proc import started
from muster.domain.run import Driver


def this_process() -> Driver:
    """Name this process so that no later one can be taken for it."""
    return Driver(host=socket.gethostname(), pid=os.getpid(), started=_started(os.getpid()) or "unknown")


def is_gone(driver: Driver, here: str) -> bool:
    """Whether a process of this host is certainly dead; of another host nobody can say."""
    return driver.host == here and _started(driver.pid) != driver.started


def _started(pid: int) -> str | None:
    return started(pid) if Path("/proc/self").exists() else _probe(pid)


def _probe(pid: int) -> str | None:
    """Ask for a process where there is no /proc; without its start time any process with this pid will do."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return "unknown"
    return "unknown"

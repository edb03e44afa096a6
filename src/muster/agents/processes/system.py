"""What the system says of processes. Elsewhere than on Linux it says little, and nobody is taken for ours.

A /proc of another PID namespace numbers processes differently, so only what it says of `self` is used.
"""

import errno
import os
import signal
import socket
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from muster.domain.run import Driver

TOKEN_VARIABLE = "MUSTER_PROCESS"  # noqa: S105  # the name of a variable, no secret

_PROC = Path("/proc")
_MARK = TOKEN_VARIABLE.encode() + b"="


def started(pid: int | Literal["self"]) -> str | None:
    """Return the boot and the tick at which a process started; None when there is none, or only its zombie."""
    fields = stat(pid)
    return None if fields is None or fields[0] in ("Z", "X") else f"{_boot()}/{fields[19]}"


def namespace() -> str | None:
    """Return the number of this process's PID namespace; None where the system knows none."""
    try:
        return str((_PROC / "self/ns/pid").stat().st_ino)
    except OSError:
        return None


def is_ours() -> bool:
    """Return whether /proc shows the PID namespace of this process."""
    try:
        return (_PROC / "self").readlink().name == str(os.getpid())
    except OSError:
        return False


def stat(pid: int | Literal["self"]) -> list[str] | None:
    """Return the fields of a process after its name: state, parent, group, session and so on."""
    if pid != "self" and not is_ours():
        return None
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()  # the name before may hold anything, even spaces and brackets


def group_alive(group: int) -> bool:
    """Return whether a group has a member that still runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if _PROC.exists() and not is_ours():
        return True
    # Zombies that nobody reaps keep a group in being: look closer.
    return any(_runs_in(group, pid) for pid in _pids())


def with_token(prefix: str) -> Iterator[tuple[int, str]]:
    """Yield the processes that carry a token which begins so, with the token; a process may carry several."""
    needle = prefix.encode()
    for pid in _pids():
        try:
            environment = (_PROC / str(pid) / "environ").read_bytes()
        except OSError:
            continue  # gone, or another user's
        if needle not in environment:
            continue
        for variable in environment.split(b"\0"):
            if variable.startswith(_MARK):
                tokens = variable.removeprefix(_MARK).decode("ascii", "replace").split(",")
                yield from ((pid, token) for token in tokens if token.startswith(prefix))


def hold(token: str) -> socket.socket | None:
    """Take the name of a token until this process has ended, and so has every copy of it that executes no program yet.

    Such a copy, made just before this process was killed, carries no token that it could be found by. Where the system
    has no names for sockets that are not files, or refuses this one, it returns None, and only tokens are searched for.
    """
    try:
        return _bound(token)
    except OSError:
        return None


def is_held(token: str) -> bool:
    """Return whether a process has taken the name of a token."""
    try:
        _bound(token).close()
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


def any_executing(since: int) -> bool:
    """Return whether a process of this user that started since a tick is inside execve.

    There it has closed what it held, and its new environment, with the token in it, cannot be read yet.
    """
    stats = ((pid, stat(pid)) for pid in _pids() if pid > 1)  # the first process may have no environment at all
    return any(fields and int(fields[19]) >= since and _is_executing(pid, fields) for pid, fields in stats)


def is_executing(pid: int) -> bool:
    """Return whether a process is inside execve."""
    fields = stat(pid)
    return fields is not None and _is_executing(pid, fields)


def _is_executing(pid: int, fields: list[str]) -> bool:
    has_memory, has_no_environment = fields[20] != "0", fields[48:49] == ["0"]  # the latter also of other users
    try:
        return has_memory and has_no_environment and (_PROC / str(pid)).stat().st_uid == os.geteuid()
    except OSError:
        return False  # gone


def _bound(token: str) -> socket.socket:
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0{token}")
    except OSError:
        name.close()
        raise
    return name


def session_of(pid: int) -> int | None:
    """Return the session that a process is in."""
    fields = stat(pid)
    return None if fields is None else int(fields[3])


def members(sessions: Collection[int]) -> Iterator[int]:
    """Yield the processes that are in one of these sessions."""
    for pid in _pids():
        fields = stat(pid)
        if fields is not None and int(fields[3]) in sessions:
            yield pid


def working_in(folder: Path) -> Iterator[int]:
    """Yield the processes whose working directory is a folder or below it."""
    for pid in _pids():
        try:
            here = (_PROC / str(pid) / "cwd").readlink()
        except OSError:
            continue  # gone, a zombie, or another user's
        if here.is_relative_to(folder):
            yield pid


def kill(pid: int, start: str) -> bool:
    """Kill this very process and no other that got its number; says whether it was there."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # Looked at after the handle was taken: what has this number now is what the handle stands for.
        if started(pid) != start:
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _runs_in(group: int, pid: int) -> bool:
    fields = stat(pid)
    return fields is not None and fields[0] not in ("Z", "X") and fields[2] == str(group)


def _pids() -> Iterator[int]:
    if not is_ours():
        return
    try:
        names = os.listdir(_PROC)  # noqa: PTH208  # a path object for each process would cost more than all the rest
    except OSError:
        return
    yield from (int(name) for name in names if name.isdigit())


@cache
def _boot() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


UNKNOWN = "unknown"  # the start of a process where there is no /proc


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStart:
    """What `Driver.started` says: the boot, the clock tick, and the PID namespace in which a process started."""

    boot: str
    tick: str
    namespace: str | None = None  # the system knows none, or an older version wrote it


def start_of(started: str) -> ProcessStart:
    """Parse `Driver.started`."""
    boot, _, rest = started.partition("/")
    tick, _, namespace = rest.partition("/")
    return ProcessStart(boot=boot, tick=tick, namespace=namespace or None)


def this_process() -> Driver:
    """Name this process so that no later one, and none of another PID namespace, can be taken for it."""
    if not _has_proc():
        return Driver(host=socket.gethostname(), pid=os.getpid(), started=UNKNOWN)
    # `self`, not its number: the /proc that is mounted may be of another namespace, where the number is a stranger's.
    parts = (started("self") or UNKNOWN, namespace())
    return Driver(host=socket.gethostname(), pid=os.getpid(), started="/".join(part for part in parts if part))


def sees(driver: Driver, us: Driver) -> bool:
    """Return whether this process can look whether a driver is alive; else only its lease tells."""
    if driver == us:
        return True
    theirs, ours = start_of(driver.started), start_of(us.started)
    if driver.host != us.host or theirs.namespace != ours.namespace:
        return False
    if ours.namespace is None:
        return True
    return theirs.boot == ours.boot and is_ours()


def is_gone(driver: Driver, us: Driver) -> bool:
    """Return whether a driver is certainly dead; False for one that cannot be seen from here."""
    if driver == us or not sees(driver, us):
        return False
    theirs = start_of(driver.started)
    return _started(driver.pid) != (driver.started if theirs.namespace is None else f"{theirs.boot}/{theirs.tick}")


def _started(pid: int) -> str | None:
    return started(pid) if _has_proc() else _probe(pid)


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

"""Who this process is, and whether another one is still alive."""

import os
import socket
from pathlib import Path

from muster.domain.run import Driver


def this_process() -> Driver:
    """Name this process so that no later one can be taken for it."""
    return Driver(host=socket.gethostname(), pid=os.getpid(), started=_started(os.getpid()) or "unknown")


def is_gone(driver: Driver, here: str) -> bool:
    """Whether a process of this host is certainly dead; of another host nobody can say."""
    return driver.host == here and _started(driver.pid) != driver.started


def _started(pid: int) -> str | None:
    """Give the boot and the tick at which a process started; None when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()  # the name before may hold anything, even spaces and brackets
        if fields[0] in ("Z", "X"):
            return None  # a zombie drives nothing
        return f"{_boot()}/{fields[19]}"
    except FileNotFoundError:
        return None if Path("/proc").is_dir() and Path("/proc/self").exists() else _probe(pid)
    except (OSError, IndexError):
        return None


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _probe(pid: int) -> str | None:
    """Ask for a process where there is no /proc; without its start time any process with this pid will do."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return "unknown"
    return "unknown"

"""Ends the processes that a dead driver left behind: found by number and start time, by token, and by session."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from muster.agents.processes import proc
from muster.domain.errors import MusterError
from muster.domain.process import OwnedProcess
from muster.domain.run import Driver

DYING = 5.0
LOOK = 0.005


class Remains(Protocol):
    """What is remembered of processes."""

    async def all(self, host: str) -> Sequence[OwnedProcess]:
        """Give the processes of a host that nobody has seen dead."""

    def forget(self, token: str) -> Awaitable[None]:
        """Forget a process that is seen dead."""


class Reaper:
    """Looks for orphans and ends them."""

    def __init__(self, remains: Remains, host: str, is_gone: Callable[[Driver], bool]) -> None:
        self._remains, self._host, self._is_gone = remains, host, is_gone

    async def reap(self) -> list[OwnedProcess]:
        """End the processes of drivers that are dead, and give those that were still alive."""
        left = [process for process in await self._remains.all(self._host) if self._is_gone(process.driver)]
        if not left:
            return []
        reaped: dict[int, OwnedProcess] = {}
        if await _end_all(left, reaped):
            with suppress(MusterError):  # dead they are; whoever can write to the store again forgets them
                for process in left:
                    await self._remains.forget(process.token)
        return list(reaped.values())


async def _end_all(left: Sequence[OwnedProcess], reaped: dict[int, OwnedProcess]) -> bool:
    """Kill until nobody is found any more: one that was just killed may have started another before it died."""
    until = time.monotonic() + DYING
    sessions: dict[int, OwnedProcess] = {}  # found to be ours; nobody else gets their numbers while they have members
    while victims := _victims(left, sessions):
        reaped.update(victims)
        for pid, process in victims.items():
            if process.started is not None:
                proc.kill(pid, process.started)
        if time.monotonic() > until:
            return False
        await asyncio.sleep(LOOK)
    return True


def _victims(left: Sequence[OwnedProcess], sessions: dict[int, OwnedProcess]) -> dict[int, OwnedProcess]:
    """Find whatever is alive: by number and start time, by the token it carries, and by the session of such a one.

    A session has the number of the process that made it; with one of ours in it, all of it is ours.
    """
    found = {process.pid: process for process in left if process.pid is not None and _lives(process)}
    found |= dict(_carriers(left))
    certain = {proc.session_of(pid) for pid in found}
    sessions |= {process.pid: process for process in left if process.pid is not None and process.pid in certain}
    for pid in proc.members(sessions):
        session = proc.session_of(pid)
        began = proc.started(pid)
        if pid not in found and began is not None and session in sessions:
            found[pid] = replace(sessions[session], pid=pid, started=began)
    return found


def _lives(process: OwnedProcess) -> bool:
    return process.pid is not None and process.started is not None and proc.started(process.pid) == process.started


def _carriers(left: Sequence[OwnedProcess]) -> Iterator[tuple[int, OwnedProcess]]:
    agents = {process.token: process.agent for process in left}
    for house in (process for process in left if process.pid is None):
        for pid, token in proc.carriers(house.token + "."):
            began = proc.started(pid)
            if began is not None:
                yield pid, replace(house, token=token, pid=pid, started=began, agent=agents.get(token, ""))

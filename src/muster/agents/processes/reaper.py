"""Ends the processes that a dead driver left behind: exactly those, found by number and start time, and by token."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from muster.agents.processes import proc
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
            for process in left:
                await self._remains.forget(process.token)
        return list(reaped.values())


def _victims(left: Sequence[OwnedProcess]) -> Iterable[tuple[int, OwnedProcess]]:
    """Find whatever is alive: by the number and start time that were written down, and by the token it carries."""
    for process in left:
        if process.pid is not None and proc.started(process.pid) == process.started is not None:
            yield process.pid, process
    agents = {process.token: process.agent for process in left}
    for house in (process for process in left if process.pid is None):
        for pid, token in proc.carriers(house.token + "."):
            began = proc.started(pid)
            if began is not None:
                agent = agents.get(token, "")
                yield (
                    pid,
                    OwnedProcess(token=token, driver=house.driver, at=house.at, pid=pid, started=began, agent=agent),
                )


async def _end_all(left: Sequence[OwnedProcess], reaped: dict[int, OwnedProcess]) -> bool:
    """Kill until nobody is found any more: one that was just killed may have started another before it died."""
    until = time.monotonic() + DYING
    while victims := dict(_victims(left)):
        reaped.update(victims)
        for pid, process in victims.items():
            if process.started is not None:
                proc.kill(pid, process.started)
        if time.monotonic() > until:
            return False
        await asyncio.sleep(LOOK)
    return True

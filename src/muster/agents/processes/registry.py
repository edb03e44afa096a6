"""All processes that this process owns: started with a token, remembered until they are seen dead."""

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Protocol

from muster.agents.processes import system
from muster.agents.processes.process import KILL_SECONDS, Process, ProcessCommand, start
from muster.agents.processes.process import LOOK as LOOK_SECONDS
from muster.domain.errors import MusterError, NotStarted
from muster.domain.run import Driver, OwnedProcess

SWEEP_SECONDS = 1.0


class ProcessRecorder(Protocol):
    """Remembers which processes are ours, so that they are found after a crash."""

    def note(self, process: OwnedProcess) -> Awaitable[None]:
        """Remember a process."""

    def forget(self, token: str) -> Awaitable[None]:
        """Forget a process that is seen dead."""


class ProcessRegistry:
    """Starts processes and answers for them.

    Before the first of them is started the token of the registry is durable, and every process carries it: so even one
    whose number was not written down before a crash is found, by what it carries.
    """

    def __init__(self, registry: ProcessRecorder, driver: Driver, now: Callable[[], float] = time.time) -> None:
        self._registry, self._driver, self._now = registry, driver, now
        self._token = f"muster-{secrets.token_hex(8)}"
        self._held: socket.socket | None = None  # the name of the token
        self._known: asyncio.Task[None] | None = None  # the token is durable when this is over
        self._started = 0
        self._at_work: dict[str, Process] = {}
        self._unconfirmed: set[str] = set()  # tokens of what was killed and not seen dead
        self._notes: set[asyncio.Future[None]] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def process(self, order: ProcessCommand) -> AsyncIterator[Process]:
        """Start a process and end it, with its whole group, when this is left."""
        await self._make_known(order)
        self._started += 1
        token = f"{self._token}.{self._started}"
        process = start(order, token)
        self._at_work[token] = process
        try:
            self._note(self._record(token, process))
            yield process
        finally:
            await self._end(process)

    async def close(self) -> None:
        """End what is left and forget this registry."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        for process in list(self._at_work.values()):
            await self._end(process)
        if self._known is None:
            return
        for _ in range(int(KILL_SECONDS / LOOK_SECONDS)):
            if not self._sweep():  # what was killed the last time is seen dead: nobody has to look for it
                for token in (self._token, *self._unconfirmed):
                    self._note(self._registry.forget(token))
                break
            await asyncio.sleep(LOOK_SECONDS)
        while self._notes:
            await asyncio.wait(self._notes)
        if self._held is not None:
            self._held.close()

    @property
    def at_work(self) -> int:
        """How many processes are not over."""
        return len(self._at_work)

    async def _make_known(self, order: ProcessCommand) -> None:
        """Let the token be durable; without it nothing is started, since it could not be found after a crash."""
        if self._known is None:
            self._held = self._held or system.hold(self._token)
            registration = OwnedProcess(token=self._token, driver=self._driver, at=self._now())
            self._known = asyncio.ensure_future(_wait_for(self._registry.note(registration)))
        try:
            await asyncio.shield(self._known)
        except MusterError as error:
            self._known = None  # the next one may find the store in order again
            raise NotStarted(f"agent {order.agent!r}: failed to spawn: {error.message}") from error

    def _record(self, token: str, process: Process) -> Awaitable[None]:
        return self._registry.note(
            OwnedProcess(
                token=token,
                driver=self._driver,
                at=self._now(),
                pid=process.pid,
                started=system.started(process.pid),
                agent=process.order.agent,
            )
        )

    async def _end(self, process: Process) -> None:
        # One that has exited is not asked first: what it left in its group goes with it.
        grace = {} if process.status is None else {"grace": 0.0}
        try:
            await process.end(**grace)
        finally:  # it has ended even if whoever waited for that was canceled meanwhile
            self._let_go(process)

    def _let_go(self, process: Process) -> None:
        self._at_work.pop(process.token, None)  # from here on the sweep looks for whatever carries its token
        if process.dead:
            self._note(self._registry.forget(process.token))
        else:
            self._unconfirmed.add(process.token)
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> bool:
        """Kill what left its group but still carries a token of a process that is over; says whether there was any."""
        self._sweeping = None
        strays = [pid for pid, token in system.with_token(self._token + ".") if token not in self._at_work]
        starts = [(pid, began) for pid in strays if (began := system.started(pid)) is not None]
        for pid, began in starts:
            system.kill(pid, began)
        return bool(starts)

    def _note(self, written: Awaitable[None]) -> None:
        """Let something be written while we go on; a store that fails says so to whoever needs it next."""
        note = asyncio.ensure_future(_wait_for(written))
        self._notes.add(note)
        note.add_done_callback(self._noted)

    def _noted(self, note: "asyncio.Future[None]") -> None:
        self._notes.discard(note)
        with suppress(asyncio.CancelledError):
            note.exception()


async def _wait_for(written: Awaitable[None]) -> None:
    await written


REAP_SECONDS = 5.0
EXEC_SECONDS = 1.0
LOOK = 0.005


class ProcessRecords(Protocol):
    """What is remembered of processes."""

    async def all(self, host: str) -> Sequence[OwnedProcess]:
        """Return the processes of a host that are not known to be dead."""

    def forget(self, token: str) -> Awaitable[None]:
        """Forget a process that is seen dead."""


class Reaper:
    """Looks for orphans and ends them."""

    def __init__(self, records: ProcessRecords, host: str, is_gone: Callable[[Driver], bool]) -> None:
        self._records, self._host, self._is_gone = records, host, is_gone

    async def reap(self) -> list[OwnedProcess]:
        """End the processes of drivers that are dead, and give those that were still alive."""
        left = [process for process in await self._records.all(self._host) if self._is_gone(process.driver)]
        if not left:
            return []
        reaped: dict[int, OwnedProcess] = {}
        if await _end_all(left, reaped):
            with suppress(MusterError):  # dead they are; whoever can write to the store again forgets them
                for process in left:
                    await self._records.forget(process.token)
        return list(reaped.values())


async def _end_all(left: Sequence[OwnedProcess], reaped: dict[int, OwnedProcess]) -> bool:
    """Kill until no process is found: one that was just killed may have started another before it died."""
    until = time.monotonic() + REAP_SECONDS
    sessions: dict[int, OwnedProcess] = {}  # found to be ours; nobody else gets their numbers while they have members
    registrations = [process.token for process in left if process.pid is None]
    # Asked in this order: whoever lets go of a name is inside execve, and carries the token after it.
    while (
        any(map(system.is_held, registrations))
        | _may_be_executing(left, until)
        | bool(left_running := _left_running(left, sessions))
    ):
        reaped.update(left_running)
        for pid, process in left_running.items():
            if process.started is not None:
                system.kill(pid, process.started)
        if time.monotonic() > until:
            return False
        await asyncio.sleep(LOOK)
    return True


def _may_be_executing(left: Sequence[OwnedProcess], until: float) -> bool:
    """Return whether a process that a dead driver started may be inside execve, which takes far less than a second."""
    ticks = [int(tick) for process in left if (tick := system.start_of(process.driver.started).tick).isdigit()]
    return bool(ticks) and time.monotonic() < until - REAP_SECONDS + EXEC_SECONDS and system.any_executing(min(ticks))


def _left_running(left: Sequence[OwnedProcess], sessions: dict[int, OwnedProcess]) -> dict[int, OwnedProcess]:
    """Find whatever is alive: by number and start time, by the token it carries, and by the session of such a one.

    A session has the number of the process that made it; with one of ours in it, all of it is ours.
    """
    found = {process.pid: process for process in left if process.pid is not None and _lives(process)}
    found |= dict(_with_token(left))
    certain = {system.session_of(pid) for pid in found}
    sessions |= {process.pid: process for process in left if process.pid is not None and process.pid in certain}
    for pid in system.members(sessions):
        session = system.session_of(pid)
        began = system.started(pid)
        if pid not in found and began is not None and session in sessions:
            found[pid] = replace(sessions[session], pid=pid, started=began)
    return found


def _lives(process: OwnedProcess) -> bool:
    return process.pid is not None and process.started is not None and system.started(process.pid) == process.started


def _with_token(left: Sequence[OwnedProcess]) -> Iterator[tuple[int, OwnedProcess]]:
    agents = {process.token: process.agent for process in left}
    for registration in (process for process in left if process.pid is None):
        for pid, token in system.with_token(registration.token + "."):
            began = system.started(pid)
            if began is not None:
                yield pid, replace(registration, token=token, pid=pid, started=began, agent=agents.get(token, ""))

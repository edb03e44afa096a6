"""Runs delivered through a queue that several machines share: announced, offered, and announced again while due.

The queue may lose everything at any time. A sweep over the store announces whatever is due, and while the queue cannot
be reached workers take runs out of the store, as they do without one.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial

from muster.domain.errors import BadArgument, MusterError, QueueFailed, StoreFailed
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run, RunState
from muster.engine.base.clock import Clock
from muster.engine.queue.base import (
    QUEUES,
    AcceptJob,
    DeliveryLook,
    FleetQueue,
    JobAnswer,
    OfferedRun,
    OfferRun,
    QueuedJob,
    is_recoverable,
)
from muster.engine.queue.progress import JobProgress
from muster.engine.queue.sweeps import SWEEP_SECONDS, CancelKeys, FleetRuns
from muster.store.base import Store, UnfinishedRuns

BEAT_SECONDS = 30.0
AGAIN_SECONDS = 5.0  # after which a run that is still due is announced again
NEW_SECONDS = 1.0  # for which a run is left to whoever stored it: it announces it, or offers it to its own worker
SEEN_SECONDS = 7.5  # for which a server relies on what it knows of workers; one that registers learns it then
LATER_SECONDS = 2.0  # after which a job of another program asks again how its run stands
AT_ONCE = 20  # runs that are announced at the same time


@dataclass(frozen=True, slots=True, kw_only=True)
class _Announced:
    """When a run was announced, and as what."""

    at: float
    epoch: int
    state: RunState


def answer_of(offered: OfferedRun, *, wanted: bool) -> JobAnswer:
    """Return what becomes of the job of a run; `wanted` by another program, it stays until the run is over."""
    run = offered.run
    if run is None:
        return JobAnswer(failure="the store has no such run: it was deleted, or is in the store of another fleet")
    if run.state not in TERMINAL:
        if offered.taken and run.state is RunState.INTERRUPTED:
            return JobAnswer(again_in=0.0)  # this worker stops: the next one goes on at once
        return JobAnswer(again_in=LATER_SECONDS) if wanted else JobAnswer(value=_stands(run))
    if run.state in (RunState.FAILED, RunState.TIMEOUT) and (offered.taken or wanted):
        message = (run.error or {}).get("message", "")
        failure = f"run {run.id} {run.state}: {message or run.ended_reason}"
        return JobAnswer(failure=failure, retryable=is_recoverable(run))
    return JobAnswer(value={**_stands(run), "result": run.result} if wanted else _stands(run))


def _stands(run: Run) -> dict[str, str | None]:
    return {"run": run.id, "state": str(run.state), "endedReason": run.ended_reason}


class FleetDelivery:
    """Brings runs to a worker through a queue. Implements `RunDelivery`."""

    def __init__(
        self,
        queue: FleetQueue,
        store: Store,
        clock: Clock,
        *,
        queues: Iterable[str],
        most: int,
        accept: AcceptJob,
        served: Callable[[], Awaitable[frozenset[str]]],
        on_note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._queue, self._store, self._clock = queue, store, clock
        self._queues, self._most = frozenset(queues), most
        self._accept, self._served, self._on_note = accept, served, on_note
        self._cancels = CancelKeys(queue, store, clock, FleetRuns(store, clock, self._queues))
        self._progress = JobProgress(queue, store)
        self._beat_at = self._swept_at = float("-inf")
        self._announced: dict[RunId, _Announced] = {}
        self._reached, self._knows_server = True, False

    async def listen(self, offer: OfferRun) -> None:
        """Begin to take jobs of the queues."""
        await self._queue.listen(sorted(self._queues), self._most, partial(self._handle, offer))

    async def look(self, driven: Collection[RunId], *, leads: bool = True, offered: bool = True) -> DeliveryLook:
        """Announce what is due, and cancel what other programs want to be canceled, if nobody else here does."""
        try:
            await self._look_at_server()
            unfinished = await self._cancels.look(offered=offered) if leads else UnfinishedRuns()
            if self._clock.monotonic() - self._swept_at >= SWEEP_SECONDS:
                self._swept_at = self._clock.monotonic()
                await self._beat()
                await self._queue.promote(self._queues)
                await self._progress.look()
                await self._announce([run for run in unfinished.due if run.id not in driven])
        except QueueFailed as error:
            self._tell(False, f"{error.message}; runs are taken out of the store until it can")
            self._beat_at = self._swept_at = float("-inf")
            return DeliveryLook(take=self._queues)
        self._tell(True, "the Redis server of REDIS_URL can be used again")
        return DeliveryLook(take=frozenset(), offers_later=True)

    async def is_idle(self) -> bool:
        """Return whether no job waits, which another program may have added; a queue that is away has none."""
        try:
            return await self._queue.waiting(self._queues) == 0
        except QueueFailed:
            return True

    async def close(self) -> None:
        """Take no more jobs; the last worker of a queue says that it goes."""
        await self._queue.stop()
        try:
            served = await self._served()
            await self._queue.withdraw(self._queues - served, last=not served)
        except (QueueFailed, StoreFailed):
            return  # the heartbeat ends by itself

    async def _handle(self, offer: OfferRun, job: QueuedJob) -> JobAnswer:
        """Offer the run of a job to the worker; another program's job, or another attempt, becomes a run first."""
        wanted = job.run is None or job.failures > 0
        try:
            found = (await self._accept(job)).id if wanted or job.run is None else job.run
            await self._cancels.heed([found])
            with self._progress.followed(job, found):
                offered = await offer(found)
            await self._progress.report(job, offered.run)
            return answer_of(offered, wanted=wanted)
        except (StoreFailed, QueueFailed):
            return JobAnswer(again_in=LATER_SECONDS)
        except UnicodeEncodeError:
            return JobAnswer(failure=f"{BadArgument.code}: the data of the job contains half of a surrogate pair")
        except MusterError as error:
            return JobAnswer(failure=f"{error.code}: {error.message}")

    async def _beat(self) -> None:
        """Write the heartbeat when it is time to, and whenever Redis has lost it."""
        due = self._clock.monotonic() - self._beat_at >= BEAT_SECONDS
        if due or not await self._queue.is_beating(self._queues):
            await self._queue.beat(self._queues)
            self._beat_at = self._clock.monotonic()

    async def _look_at_server(self) -> None:
        """Warn once of a server that may throw jobs away."""
        if self._knows_server:
            return
        server = await self._queue.server()
        self._knows_server = True
        if server.may_lose_jobs:
            self._on_note(
                f"maxmemory-policy of the Redis server of REDIS_URL is {server.eviction}, and must be noeviction: "
                "jobs of other programs may be lost when its memory is full"
            )

    async def _announce(self, due: Collection[Run]) -> None:
        """Announce every run that nobody was told of for a while."""
        now, here = self._clock.monotonic(), {run.id for run in due}
        self._announced = {
            run: told for run, told in self._announced.items() if run in here or now - told.at < AGAIN_SECONDS
        }
        waiting = [run for run in due if self._is_news(run, now)]
        for start in range(0, len(waiting), AT_ONCE):
            part = waiting[start : start + AT_ONCE]
            await asyncio.gather(*(self._queue.announce(run) for run in part))
            self._announced |= {run.id: _Announced(at=now, epoch=run.lease.epoch, state=run.state) for run in part}

    def _is_news(self, run: Run, now: float) -> bool:
        if run.lease.epoch == 0 and 0 <= self._clock.now() - run.created_at < NEW_SECONDS:
            return False
        told = self._announced.get(run.id)
        if told is None or (told.epoch, told.state) != (run.lease.epoch, run.state):
            return True
        return now - told.at >= AGAIN_SECONDS

    def _tell(self, reached: bool, words: str) -> None:
        if reached is not self._reached:
            self._reached = reached
            self._on_note(words)


class FallbackDelivery:
    """Lets a server drive only what no worker takes. Implements `RunDelivery`.

    The store knows which queues living workers take: a heartbeat outlives a worker that was killed by up to a minute,
    and the store notices after some seconds.
    """

    def __init__(
        self,
        *,
        queues: Iterable[str] = QUEUES,
        served: Callable[[float], Awaitable[frozenset[str]]],
        cancels: CancelKeys | None = None,
    ) -> None:
        self._queues, self._served = frozenset(queues), served
        self._cancels = cancels
        self.on_note: Callable[[str], None] = lambda text: None
        self._taken: frozenset[str] | None = None

    @property
    def taken(self) -> frozenset[str]:
        """The queues whose runs this process drives itself."""
        return self._taken or frozenset()

    async def listen(self, offer: OfferRun) -> None:
        """Offer nothing: jobs are for workers."""

    async def look(self, driven: Collection[RunId], *, leads: bool = True, offered: bool = True) -> DeliveryLook:
        """Return the queues that no worker serves."""
        # A worker of this machine is seen dead at once all the same, and one elsewhere by what it wrote last.
        take = self._queues - await self._served(0.0 if offered else SEEN_SECONDS)
        if not offered and self._taken is not None and take - self._taken:  # what was known may be too old for that
            take = self._queues - await self._served(0.0)
        if take != self._taken:
            self._taken = take
            self._tell()
        nothing_due = False
        if self._cancels is not None and (take or driven):  # else workers look for it
            with contextlib.suppress(QueueFailed):
                nothing_due = not (await self._cancels.look(offered=offered)).due
        return DeliveryLook(take=take, present=bool(take) or bool(driven), serves=False, nothing_due=nothing_due)

    async def is_idle(self) -> bool:
        """Return True: jobs are for workers."""
        return True

    def _tell(self) -> None:
        if not self.taken:
            self.on_note("runs are driven by workers")
        elif self.taken == self._queues:
            self.on_note("runs are driven in this process, within its limits: no worker is alive")
        else:
            names = sorted(self.taken)
            queues = f"the queue {names[0]}" if len(names) == 1 else f"the queues {' and '.join(names)}"
            self.on_note(f"runs in {queues} are driven in this process: no worker takes them")

    async def close(self) -> None:
        """Hold nothing that would have to be closed."""

"""A worker: drives submitted runs, a few at a time, as they are found in the store or offered to it."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection

from muster.domain.errors import AwaitsSignal, Conflict, Interrupted, LeaseLost, MusterError, StoreAway, StoreFailed
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run, RunState
from muster.engine.base.clock import Clock
from muster.engine.context import Context
from muster.engine.drive import Leave
from muster.engine.engine import Engine
from muster.engine.queue.base import QUEUES, DeliveryLook, OfferedRun, RunDelivery, StoreDelivery, is_due, queue_of
from muster.engine.queue.turns import DriveCaps, NoCaps, StoredTurns, client_of
from muster.store.base import Store

LOOK_SECONDS = 1.0
REST_SECONDS = 0.05  # between two looks, however much is written
QUIET_SECONDS = 5.0  # between two looks for due runs of which nothing was told
SWEEP_SECONDS = 0.5  # between two looks for what dead drivers left and whose time to wait is over
QUIET_SWEEP_SECONDS = 5.0  # while nobody else drives anything, and no run has become due for as long
REGISTER_SECONDS = 5.0
AGAIN_SECONDS = 300.0  # after which a run is taken up again that waits for a batch which could not be found or read
CROWDED_SECONDS = 1.0  # after which a run is taken up again whose client had as many as it may


class Worker:
    """Drives what was submitted, clients in turn and the oldest of each first; goes on with runs whose driver died."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        clock: Clock,
        *,
        most: int,
        leaves_out: frozenset[str] = frozenset(),
        queues: Collection[str] = QUEUES,
        caps: DriveCaps | None = None,
        delivery: RunDelivery | None = None,
        on_end: Callable[[Run], Awaitable[None]],
        on_error: Callable[[RunId, MusterError], None],
        on_note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._store, self._engine, self._clock = store, engine, clock
        self._most, self._on_end, self._on_error, self._on_note = most, on_end, on_error, on_note
        self._leaves_out, self._queues = leaves_out, frozenset(queues)  # workloads that others drive, and our queues
        self._caps: DriveCaps = caps or NoCaps()
        self._among_others = delivery is not None  # whose runs count under the caps too
        self._delivery: RunDelivery = delivery or StoreDelivery(queues)
        self._turns = StoredTurns(store, self._caps, self._knows)
        self._offers = store.offers.watch(self._knows)
        self._driven: dict[RunId, Run] = {}
        self._tasks: dict[RunId, asyncio.Task[None]] = {}
        self._left_alone: dict[RunId, float] = {}  # runs that were let go of, and when they are taken up again
        self._closing = False
        self._registered_at = 0.0
        self._present = True  # among the workers; not a server that leaves all runs to others
        self._swept_at = self._took_at = self._offered_at = -math.inf
        self._took: Collection[str] = ()  # queues of which it took runs last
        self._offered = True  # a run may have become due since then
        self._freed = 0  # places of clients: runs of theirs that have ended since it was looked who is next

    async def serve(self, *, until_idle: bool = False) -> None:
        """Take runs until closed; with `until_idle` only until nothing is left to take."""
        try:
            await self._delivery.listen(self.offer)
            while not self._closing:
                try:
                    await self._look()
                    self._offered = self._offered or until_idle
                    if until_idle and await self._is_idle():
                        break
                    await self._wait()
                except StoreAway as error:
                    if until_idle:
                        raise
                    self._on_note(f"no runs are taken for now: {error.message}")
                    await self._clock.sleep(LOOK_SECONDS)
            await self._over()
        except asyncio.CancelledError:
            self.close()
            if self._tasks:
                await self._engine.let_go("the worker was told to stop", set(self._tasks.values()))
            raise
        finally:
            await self._delivery.close()
        await self._store.processes.dismiss(self._engine.driver)

    async def _look(self) -> None:
        """Take what is due, and do now and then what workers do for each other."""
        election = self._engine.election
        if election.has_lost_neighbor():
            await self._engine.sweep()
        elif self._present and election.is_first():
            await self._sweep()
        leads = self._present and election.is_first(self._queues)
        look = await self._delivery.look(self._driven, leads=leads, offered=self._offered)
        await self._register(look.present, self._queues if look.serves else frozenset())
        if self._offered or look.take != self._took or self._is_time_to_take(look):
            self._took, self._took_at = look.take, self._clock.monotonic()
            self._offered = False
            await self._take(look.take)
        if look.offers_later:
            await self._take_next_of_clients()

    def close(self) -> None:
        """Take nothing new."""
        self._closing = True

    @property
    def driving(self) -> Collection[RunId]:
        """The runs that were taken and are not over yet, or not concluded."""
        return self._driven.keys()

    async def offer(self, run_id: RunId) -> OfferedRun:
        """Drive a run if it is due, as soon as there is a place; return at once when somebody else has it."""
        while True:
            run = await self._store.runs.get(run_id)
            if run is None or not await self._is_wanted(run):
                return OfferedRun(run=run, taken=False)
            if run_id in self._tasks:  # by another job, since it was looked
                return OfferedRun(run=run, taken=False)
            if len(self._tasks) < self._most:
                break
            await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({self._begin(run)})  # whoever gives up waiting leaves the run to this worker
        return OfferedRun(run=await self._store.runs.get(run_id), taken=True)

    async def _is_wanted(self, run: Run) -> bool:
        """Return whether this worker may drive a run now, apart from its own places."""
        if self._closing or run.id in self._tasks or not self._knows(run.workload) or self._is_left_alone(run.id):
            return False
        if not is_due(run) and not (run.is_driven and self._engine.is_abandoned(run)):
            return False
        if run.parent is not None:
            parent = await self._store.runs.get(run.parent)
            return parent is not None and parent.state not in TERMINAL and not parent.cancel_requested
        return client_of(run) not in self._caps.held(await self._driven_anywhere(), None).clients

    async def _driven_anywhere(self) -> Collection[Run]:
        """Return the runs that any worker drives, without children."""
        return [run for run in await self._store.runs.driven() if run.parent is None]

    def _is_time_to_take(self, look: DeliveryLook) -> bool:
        """Return whether to look for due runs of which nothing was told, or that are not left alone any more."""
        now = self._clock.monotonic()
        again = any(self._took_at < until <= now for until in self._left_alone.values())
        return again or (not look.nothing_due and now - self._took_at >= QUIET_SECONDS)

    async def _sweep(self) -> None:
        """Sweep from time to time: calls write all the time, and every write ends a wait."""
        now = self._clock.monotonic()
        if self._offered:
            self._offered_at = now  # whoever takes a run that became due may die before the next sweep sees it
        eager = now - self._offered_at < QUIET_SWEEP_SECONDS or self._engine.watches_others
        if now - self._swept_at >= (SWEEP_SECONDS if eager else QUIET_SWEEP_SECONDS):
            self._swept_at = now
            await self._engine.sweep()

    async def _register(self, present: bool, queues: Collection[str]) -> None:
        """Register the worker from time to time: every write wakes whoever waits for one, this worker too."""
        now, self._present = self._clock.now(), present
        if not present and self._registered_at:
            self._registered_at = 0.0
            await self._store.processes.dismiss(self._engine.driver)
        elif present and now - self._registered_at >= REGISTER_SECONDS:
            self._registered_at = now
            self._engine.meet(await self._store.processes.register(self._engine.driver, now, queues))

    async def _over(self) -> None:
        """Wait until everything that was taken is over."""
        if self._tasks:
            await asyncio.wait(set(self._tasks.values()))

    async def _wait(self) -> None:
        offer, driving = asyncio.ensure_future(self._wait_for_offer()), set(self._tasks.values())
        done, _ = await asyncio.wait({offer, *driving}, return_when=asyncio.FIRST_COMPLETED)
        if done & driving or (offer in done and offer.result()):
            self._offered = True
        offer.cancel()

    async def _wait_for_offer(self) -> bool:
        """Wait until a run may have become due; return whether one may."""
        offered = await self._offers.wait(LOOK_SECONDS)
        if self._tasks:  # whose calls write all the time; what else was written is looked at together
            await asyncio.sleep(REST_SECONDS)
        return offered

    async def _is_idle(self) -> bool:
        """Return whether nothing is driven here, and nothing is due that could be."""
        if self._tasks or self._engine.canceling_batches:
            return False
        if await self._turns.next((), self._passed(), self._queues) is not None:
            return False
        return await self._delivery.is_idle()

    async def _take(self, queues: Collection[str]) -> None:
        """Take runs of these queues out of the store."""
        while queues and len(self._tasks) < self._most and not self._closing:
            run = await self._turns.next(self._driven.values(), self._passed(), queues)
            if run is None:
                return
            self._turns.take(run)
            self._begin(run)

    async def _take_next_of_clients(self) -> None:
        """Take a run out of the store for each that has ended of a client, which may have waited for that."""
        freed, self._freed = self._freed, 0
        while freed and len(self._tasks) < self._most and not self._closing:
            freed -= 1
            run = await self._turns.next(await self._driven_anywhere(), self._passed(), self._queues)
            if run is None:
                return
            if run.id not in self._tasks:  # which was offered meanwhile
                self._turns.take(run)
                self._begin(run)

    def _begin(self, run: Run) -> "asyncio.Task[None]":
        self._driven[run.id] = run
        task = asyncio.get_running_loop().create_task(self._drive(run))
        self._tasks[run.id] = task
        return task

    def _passed(self) -> frozenset[RunId]:
        return frozenset({run for run in self._left_alone if self._is_left_alone(run)} | self._tasks.keys())

    def _is_left_alone(self, run: RunId) -> bool:
        return self._left_alone.get(run, -math.inf) > self._clock.monotonic()

    def _knows(self, workload: str) -> bool:
        if workload in self._leaves_out or queue_of(workload) not in self._queues:
            return False
        return self._engine.knows(workload)

    async def _drive(self, taken: Run) -> None:
        run_id = taken.id
        crowded = False

        async def require_room(ctx: Context) -> None:
            """Let go of a run again when another worker took one of the same client at the same moment."""
            nonlocal crowded
            others = [run for run in await self._driven_anywhere() if run.id != run_id]
            if client_of(taken) in self._caps.held(others, None).clients:
                crowded = True
                raise Interrupted(f"as many runs of {client_of(taken)} are driven as may be")

        before = require_room if self._among_others and client_of(taken) else None
        try:
            run = await self._engine.drive(run_id, leave=Leave.FOR_SIGNALS, before=before)
            if crowded:
                self._left_alone[run_id] = self._clock.monotonic() + CROWDED_SECONDS
                return
            if run.state is RunState.WAITING and run.ended_reason != AwaitsSignal.code:
                self._left_alone[run_id] = self._clock.monotonic() + AGAIN_SECONDS
            await self._on_end(run)
        except Conflict:  # another worker was faster; if not, it is not tried again at once
            self._left_alone[run_id] = self._clock.monotonic() + CROWDED_SECONDS
        except MusterError as error:
            # Trying it again would fail again, unless the store was away, which may work again soon.
            later = self._clock.monotonic() + REGISTER_SECONDS
            self._left_alone[run_id] = later if isinstance(error, (StoreFailed, LeaseLost)) else math.inf
            self._on_error(run_id, error)
        finally:
            self._freed += before is not None and not crowded
            del self._tasks[run_id], self._driven[run_id]

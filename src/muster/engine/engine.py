"""The engine of one process: makes runs, claims them, drives them, and ends those of dead drivers."""

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from muster.domain.budget import Budgets, UserBudget, lineage_level
from muster.domain.canonical import Json
from muster.domain.content import AgentNote
from muster.domain.errors import (
    BadConfiguration,
    Conflict,
    Interrupted,
    LeftWaiting,
    MusterError,
    NotFound,
    StopRun,
    WireError,
)
from muster.domain.ids import BatchId, RunId, new_run_id
from muster.domain.observation import RunBegan, RunEnded
from muster.domain.rules import rules_of
from muster.domain.run import DRIVEN, TERMINAL, Driver, NewRun, Run, RunState
from muster.engine.base.asked import AskedKeys
from muster.engine.base.clock import Activity, Stopwatch, Ticks
from muster.engine.base.driven_run import BudgetCaps, DrivenRun, budgets_of, inheritance_of, levels_of
from muster.engine.base.signals import Receiver
from muster.engine.calls.limiter import LimiterStatus
from muster.engine.calls.path import CallPath
from muster.engine.calls.state import CallServices
from muster.engine.children import Children
from muster.engine.context import Context
from muster.engine.drive import BEAT_SECONDS, LEASE_SECONDS, Drive, Leave, Listener
from muster.engine.election import Election
from muster.engine.queue.sharing import ChildSharing, SharedChild
from muster.engine.workload import Preparation, Workload, WorkloadSource, noting, prepared
from muster.store.base import Claim, PresentWorker, RunRelease

if TYPE_CHECKING:
    from muster.engine.batches.batcher import Batcher  # loaded when it is made

_UNDER_WAY: Counter[RunId] = Counter()  # driven or being claimed by any engine of this process: how often


@dataclass(slots=True, eq=False)
class _Beginning:
    """A run between the order to drive it and its claim."""

    run: RunId
    told: tuple[StopRun, bool] | None = None  # to stop, and whether at once


class Engine:
    """Drives runs in this process."""

    def __init__(
        self,
        services: CallServices,
        *,
        workloads: WorkloadSource,
        driver: Driver,
        caps: BudgetCaps,
        limits: Mapping[str, int] | None = None,
        sharing: ChildSharing | None = None,
    ) -> None:
        self._with = services
        self._workloads = workloads
        self._driver = driver
        self._caps = caps
        self._limits = limits or {}  # that workloads hold, by name
        self._sharing = sharing  # None: children are driven in the process of their parent
        self._drives: dict[RunId, Drive] = {}
        self._canceling: set[asyncio.Task[None]] = set()
        self._beginning: set[_Beginning] = set()
        self._beats = Ticks(services.clock, BEAT_SECONDS)
        self._present_workers: Sequence[PresentWorker] = ()
        self._looked_at = -math.inf  # for workers
        self.watches_others = False  # the last sweep saw runs that other processes drive

    @cached_property
    def election(self) -> Election:
        """What is known here of who does what is done once for all processes of the store."""
        return Election(self._driver, self._with.clock, sees=self._with.sees, is_gone=self._with.is_gone)

    def new_id(self) -> RunId:
        """Make an id for a run."""
        return new_run_id(self._with.clock.now(), self._with.random)

    async def create(self, new: NewRun, user: UserBudget | None = None, level: str | None = None) -> Run:
        """Store a run, under a budget of its own and that of its user unless it says another; nothing drives it yet.

        It counts under the level besides, whatever it says.
        """
        budgets = new.budgets or Budgets(lineage=lineage_level(new.id), day_cap=self._caps.day, user=user)
        if level is not None:
            budgets = replace(budgets, above=tuple(dict.fromkeys((*budgets.above, level))))
        shortage = await self._with.store.maintenance.shortage()
        if shortage is not None:  # what is under way waits for room; what has not begun does not
            raise shortage
        return await self._with.store.runs.create(replace(new, budgets=budgets))

    async def budgets_of(self, run: Run) -> Budgets:
        """Return the budgets that a run counts under, for one that resumes it."""
        return await budgets_of(self._with.store, run)

    def drive(
        self,
        run_id: RunId,
        on_delta: Listener | None = None,
        *,
        leave: Leave = Leave.NEVER,
        before: Preparation | None = None,
        attached: Mapping[str, Json] | None = None,
        on_error: Callable[[Exception], None] | None = None,
    ) -> Coroutine[Any, Any, Run]:
        """Claim a run and drive it until it is over, let go, or only waits for what `leave` names.

        `on_error` is told what the workload raised.
        What is `attached` goes into the volatile part of its requests while it is driven here, and is not remembered.
        A stop counts for it from the moment of this call on, before its coroutine has had a turn.
        """
        return self._drive_root(run_id, on_delta, leave, before, attached, on_error, self._expect(run_id))

    async def _drive_root(
        self,
        run_id: RunId,
        on_delta: Listener | None,
        leave: Leave,
        before: Preparation | None,
        attached: Mapping[str, Json] | None,
        on_error: Callable[[Exception], None] | None,
        beginning: _Beginning,
    ) -> Run:
        try:
            run = await self._with.store.runs.get(run_id)
            if run is None:
                raise NotFound(f"there is no run {run_id}")
            run = await self._drive(
                run, on_delta, None, beginning, leave=leave, before=before, attached=attached, on_error=on_error
            )
        finally:
            self._beginning.discard(beginning)
        if run.state is RunState.CANCELED:
            with contextlib.suppress(WireError, LeftWaiting, BadConfiguration):  # the run is canceled all the same
                await self.cancel_batches(run.id)
            return await self._with.store.runs.get(run.id) or run
        return run

    async def cancel_batches(self, run: RunId) -> None:
        """Cancel the batches of a canceled run and of its children, and wait until what they produced is here.

        Told to stop, it waits no longer: the provider is told as soon as somebody fetches the batch.
        """
        canceling = asyncio.get_running_loop().create_task(self._cancel_batches(run))
        self._canceling.add(canceling)
        try:
            await asyncio.wait({canceling})
        finally:
            canceling.cancel()
            self._canceling.discard(canceling)
        if not canceling.cancelled():
            canceling.result()

    async def _cancel_batches(self, run: RunId) -> None:
        for child in await self._with.store.archive.children(run):
            await self._cancel_batches(child.id)
        await self._with.batcher.get().cancel_batches(run)

    @property
    def batcher(self) -> "Batcher":
        """The parked calls and the batches of this process."""
        return self._with.batcher.get()

    @property
    def uses_batches(self) -> bool:
        """Return whether any call of this process was parked, or any batch taken up."""
        return self._with.batcher.made is not None

    def follows(self, batch: BatchId) -> bool:
        """Return whether this process takes a batch to its end."""
        return self.uses_batches and self.batcher.follows(batch)

    @property
    def canceling_batches(self) -> bool:
        """Return whether batches of canceled runs are still being followed to their ends."""
        return self.uses_batches and self.batcher.canceling

    def stop_all(self, error: StopRun, *, now: bool) -> None:
        """Stop every run that this process drives or is about to drive."""
        for beginning in self._beginning:
            beginning.told = (error, now)
        for canceling in self._canceling:
            canceling.cancel()
        for drive in list(self._drives.values()):
            drive.stop(error, now=now)

    async def let_go(self, why: str, driving: "Set[asyncio.Task[Any]]") -> None:
        """Stop every run and wait for these tasks; calls on the wire are answered, unless this is canceled."""
        self.stop_all(Interrupted(why), now=False)
        try:
            await asyncio.wait(driving)
        except asyncio.CancelledError:
            self.stop_all(Interrupted(why), now=True)
            await asyncio.wait(driving)
            raise

    @property
    def on_wire(self) -> int:
        """How many calls are on the wire."""
        return self._with.wire_count.open

    @property
    def only_waits(self) -> bool:
        """Return whether nothing is at work in the runs that this process drives."""
        return not self._beginning and all(drive.only_waits for drive in self._drives.values())

    @property
    def agent_notes(self) -> Sequence[AgentNote]:
        """Return what is to be known of the agents of runs that were driven here."""
        return tuple(self._with.notes.values())

    @property
    def parked(self) -> int:
        """How many calls wait in batches."""
        return self.batcher.parked if self.uses_batches else 0

    @property
    def limits(self) -> Mapping[str, LimiterStatus]:
        """How the limiters of this process stand, by name."""
        return self._with.limiters.status()

    @property
    def driving(self) -> frozenset[RunId]:
        """The runs that this process drives."""
        return frozenset(self._drives)

    @property
    def driver(self) -> Driver:
        """Who drives here."""
        return self._driver

    async def workers(self) -> list[Driver]:
        """Return the workers that are alive, as far as one can tell from here."""
        return [worker.driver for worker in await self._present(0.0)]

    async def served(self, within: float = 0.0) -> frozenset[str]:
        """Return the queues that workers besides this process take runs of, as it was at most so many seconds ago."""
        others = [worker.queues for worker in await self._present(within) if worker.driver != self._driver]
        return frozenset(queue for queues in others for queue in queues)

    async def _present(self, within: float) -> list[PresentWorker]:
        if self._with.clock.monotonic() - self._looked_at >= within:
            self._looked_at = self._with.clock.monotonic()
            self._present_workers = await self._with.store.processes.present(self._with.clock.now() - LEASE_SECONDS)
            self.election.meet(self._present_workers)
        return self._living(self._present_workers)

    def _living(self, workers: Iterable[PresentWorker]) -> list[PresentWorker]:
        """Return those of some workers that are alive, as far as one can tell from here."""
        since = self._with.clock.now() - LEASE_SECONDS
        return [worker for worker in workers if worker.seen_at > since and not self._with.is_gone(worker.driver)]

    def meet(self, workers: Sequence[PresentWorker]) -> None:
        """Take note of all workers: keep to a share of what providers allow, and leave to the first what it does."""
        self._present_workers, self._looked_at = workers, self._with.clock.monotonic()
        self.election.meet(workers)
        self._with.limiters.divide(max(1, len(self._living(workers))))

    def knows(self, workload: str) -> bool:
        """Return whether this process can drive such a workload."""
        return workload in self._workloads

    async def sweep_in_turn(self) -> None:
        """Sweep, unless another process of the store is known to do it again and again."""
        if self.election.is_first():
            await self.sweep()

    async def sweep(self) -> list[tuple[Run, Claim]]:
        """Mark the runs of dead drivers as interrupted, so that they hold no money and can be resumed.

        Runs whose time to wait for a signal is over are queued.
        """
        expired = []
        left = await self._with.store.queue.left_behind(self._with.clock.now())
        self.watches_others = any(run.id not in self._drives for run in left.driven)
        for run in left.driven:
            if run.id in self._drives or not self.is_abandoned(run):
                continue
            try:
                claim = await self._with.store.leases.expire(
                    run.id,
                    run.lease.epoch,
                    self._with.clock.now(),
                    f"its driver, {run.lease.driver}, died",
                    seen_until=run.lease.until,
                )
            except Conflict:
                continue  # somebody else was faster, or it lives: the run was read a while ago
            expired.append((run, claim))
        if expired:
            await self._with.reap()
            # A run that was to be canceled leaves its batches to whoever ends it.
            left = await self._with.store.queue.left_behind(self._with.clock.now())
        if left.signals_due:
            await self._with.store.signals.wake(self._with.clock.now())
        if left.orphans:
            self.batcher.cancel_orphans(left.orphans)
        return expired

    def lives(self, driver: Driver, until: float) -> bool:
        """Return whether a driver is alive, as far as one can tell from here; else its lease decides."""
        return not self._with.is_gone(driver) if self._with.sees(driver) else until >= self._with.clock.now()

    def is_abandoned(self, run: Run) -> bool:
        """Return whether a run has a driver that is dead, as far as one can tell from here."""
        driver = run.lease.driver
        if driver is None:
            return False  # nobody drives it: it was left waiting for its batches
        if driver == self._driver:
            return not _UNDER_WAY[run.id]  # else one of this process that could not be let go of
        if self._with.sees(driver) and (self._with.is_gone(driver) or not self._with.store.leases.stops_drivers):
            return self._with.is_gone(driver)
        return run.lease.until < self._with.clock.now()

    def is_beginning(self, run: RunId) -> bool:
        """Return whether this process is about to claim a run, which is still stored as it was before."""
        return any(beginning.run == run for beginning in self._beginning)

    def _expect(self, run: RunId) -> _Beginning:
        beginning = _Beginning(run)
        self._beginning.add(beginning)
        return beginning

    async def _drive(
        self,
        run: Run,
        on_delta: Listener | None,
        parent: Drive | None,
        beginning: _Beginning,
        *,
        leave: Leave = Leave.NEVER,
        before: Preparation | None = None,
        attached: Mapping[str, Json] | None = None,
        on_error: Callable[[Exception], None] | None = None,
    ) -> Run:
        """Claim a run and drive it to its end, under its parent if it is a child."""
        workload = self._workloads.find(run.workload)
        driven = await self._take(run, attached or {})
        whole = workload if before is None else prepared(workload, before)
        whole = whole if on_error is None else noting(whole, on_error)
        drive = self._prepare(driven, whole, on_delta, leave, parent)
        self._beginning.discard(beginning)
        if beginning.told is not None:
            drive.stop(beginning.told[0], now=beginning.told[1])
        ended = await self._to_end(drive, driven.epoch, parent)
        if batches := await self._with.store.batches.of_run(run.id):
            await self.batcher.round_off(run.id, batches)
        return ended

    async def _take(self, run: Run, attached: Mapping[str, Json]) -> DrivenRun:
        """Claim a run; what it counts under and comes from is read before."""
        rules = rules_of(run.rules)
        levels = await levels_of(self._with.store, run, self._caps)
        inheritance = await inheritance_of(self._with.store, run)
        claim = await self._begin(run)
        return DrivenRun(
            run=run,
            epoch=claim.epoch,
            levels=levels,
            inheritance=inheritance,
            activity=Activity(Stopwatch(self._with.clock, run.active)),
            rules=rules,
            asked=AskedKeys(wanted=self._workloads.is_own(run.workload) and (claim.epoch > 1 or not inheritance.empty)),
            attached=attached,
        )

    def _prepare(
        self, driven: DrivenRun, workload: Workload, on_delta: Listener | None, leave: Leave, parent: Drive | None
    ) -> Drive:
        """Put together the call path, the context and the drive of a run; its children are driven under that drive."""

        async def drive_here(child: Run) -> Run:
            return await self._drive(child, None, drive, _Beginning(child.id))

        async def drive_child(child: Run) -> Run:
            shared = self._shared(child, drive, drive_here)
            return await (drive_here(child) if shared is None else self._await_shared(shared, drive))

        store, clock = self._with.store, self._with.clock
        children = partial(Children, driven, store=store, clock=clock, new_id=self.new_id, drive=drive_child)
        receiver = Receiver(driven, store, clock, self._with.kill)
        path = CallPath(self._with, driven, receiver, None if parent is None else parent.places)
        context = Context(
            driven,
            store=store,
            path=path,
            clock=clock,
            children=children,
            receiver=receiver,
            on_delta=on_delta,
            limits=self._limits,
        )
        drive = Drive(
            self._with,
            driven,
            workload=workload,
            context=context,
            path=path,
            receiver=receiver,
            beats=self._beats,
            leave=leave,
        )
        return drive

    def _shared(self, child: Run, parent: Drive, drive_here: Callable[[Run], Awaitable[Run]]) -> SharedChild | None:
        """Return the child as one that another worker may drive, or drives since before; None for all others."""
        sharing = self._sharing
        offered = sharing is not None and sharing.covers(parent.run, child)
        if not offered and (child.lease.driver is None or self.is_abandoned(child)):
            return None
        return SharedChild(
            child,
            parent,
            store=self._with.store,
            clock=self._with.clock,
            announce=sharing.announce if sharing is not None and offered else None,
            served=self.served,
            is_abandoned=self.is_abandoned,
            drive_here=drive_here,
        )

    async def _await_shared(self, shared: SharedChild, parent: Drive) -> Run:
        parent.adopt(shared)
        try:
            return await shared.to_end()
        finally:
            parent.children.discard(shared)

    async def _to_end(self, drive: Drive, epoch: int, parent: Drive | None) -> Run:
        if self._with.observe is not None:
            self._with.observe(RunBegan(drive.run, epoch))
        broke: BaseException | None = None
        self._drives[drive.run.id] = drive
        if parent is not None:
            parent.adopt(drive)
        try:
            return await drive.to_end()
        except BaseException as error:
            broke = error
            raise
        finally:
            del self._drives[drive.run.id]
            _leave(drive.run.id)
            if parent is not None:
                parent.children.discard(drive)
            if self._with.observe is not None:
                ended = drive.ended  # also when whoever waited for that was canceled
                self._with.observe(RunEnded(drive.run, broke) if ended is None else RunEnded(ended))

    async def _begin(self, run: Run) -> Claim:
        """Claim a run; canceled, let go of it again."""
        claiming = asyncio.ensure_future(self._claim(run))
        try:
            claim = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # The claim may be written all the same: see what came of it, and let the run go again.
            await asyncio.wait({claiming})
            if claiming.exception() is None:
                ending = RunRelease(state=RunState.INTERRUPTED, reason=Interrupted.code, at=self._with.clock.now())
                self._with.store.leases.release(run.id, claiming.result().epoch, ending)
                _leave(run.id)
            raise
        self._with.kill.reach("run.claimed")
        return claim

    async def _claim(self, run: Run) -> Claim:
        if run.state in TERMINAL:
            raise Conflict(f"run {run.id} is {run.state}; terminal states are final")
        if run.state in DRIVEN and run.lease.driver is not None and not self.is_abandoned(run):
            raise _driven(run)
        if run.cancel_requested:
            await self.sweep()
            raise Conflict(f"run {run.id} was asked to be canceled before its driver died; it is canceled now")
        if run.lease.driver is not None:
            await self._with.reap()  # what its last driver left at work must not meet what this one starts
        now = self._with.clock.now()
        _UNDER_WAY[run.id] += 1
        try:
            return await self._with.store.leases.claim(
                run.id, self._driver, run.lease.epoch, now, now + LEASE_SECONDS, seen_until=run.lease.until
            )
        except MusterError as error:
            _leave(run.id)
            if not isinstance(error, Conflict):
                raise
            winner = await self._with.store.runs.get(run.id)
            if winner is not None and winner.lease.driver is not None:
                raise _driven(winner) from error
            raise


def _leave(run: RunId) -> None:
    """Note that a run is driven or claimed once less; whoever lost the race for it does not speak for its driver."""
    _UNDER_WAY[run] -= 1
    if _UNDER_WAY[run] <= 0:
        del _UNDER_WAY[run]


def _driven(run: Run) -> Conflict:
    return Conflict(
        f"run {run.id} is being executed by {run.lease.driver}",
        suggestions=(f"watch it with: muster runs watch {run.id}", "cancel it, or end that process, first"),
    )

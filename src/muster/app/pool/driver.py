"""Who drives the pool: gives pending tasks to free slots, drives them, and looks after slots whose agents fail."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from muster.app.base.backend import Backend
from muster.app.pool.slot_server import SlotConnection, SlotServer
from muster.app.pool.slots import SlotDirectory, assigned_slot, project_trees
from muster.app.pool.tasks import Tasks
from muster.app.pool.trees import TaskTrees
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration, CallFailed, Conflict, Interrupted, MusterError, NotFound, NotStarted
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import TERMINAL, Driver, Run, RunState
from muster.domain.task import TaskState
from muster.engine.context import Context
from muster.engine.drive import Leave, Listener
from muster.pool.scheduling import EarlierTask, PendingTask, PoolFunds, schedule
from muster.pool.supervision import RestartDecision, RestartPolicy
from muster.pool.tasks import (
    SLOT_KEY,
    AssignedSlot,
    SlotProfile,
    merged,
    read_task,
    run_states,
    task_state,
)
from muster.store.base import POOL_LEVEL, SlotOutcome, SlotRecord, SlotStanding, Store

LOOK_SECONDS = 2.0
BEAT_SECONDS = 5.0
LEASE_SECONDS = 15.0


class DependencyFailed(CallFailed):
    """A task on which this one depends was not done."""

    code = "dependency_failed"


OnEnd = Callable[[Run], None]
OnError = Callable[[RunId, MusterError], None]


class PoolDriver:
    """Drives the tasks of the pool in this process, until it is closed or drained."""

    def __init__(
        self,
        backend: Backend,
        tasks: Tasks,
        trees: TaskTrees,
        server: SlotServer,
        *,
        only: Collection[RunId] | None = None,
        on_end: OnEnd = lambda run: None,
        on_error: OnError = lambda run, error: None,
        on_delta: Listener | None = None,
    ) -> None:
        self._settings, self._store, self._engine = backend.settings, backend.store, backend.engine
        self._clock, self._tasks, self._trees, self._only = backend.clock, tasks, trees, only
        self._server = server
        self._on_end, self._on_error, self._on_delta = on_end, on_error, on_delta
        self._slots = SlotDirectory(backend.settings)
        self._driven: dict[RunId, asyncio.Task[None]] = {}
        self._reserved: dict[RunId, Microdollars] = {}
        self._broken: dict[str, str] = {}  # slots whose agent cannot be used, and why
        self._told: dict[RunId, Microdollars] = {}  # interrupted tasks that lack money, with the budget they had
        self._left_alone: set[RunId] = set()  # tasks that could not be driven: trying again would fail again
        self._restarts = RestartPolicy(
            enabled=self._settings.pool.supervisor_enabled,
            interval=self._settings.pool.supervisor_interval_secs,
            most=self._settings.pool.max_restarts,
        )
        self._resting: dict[str, float] = {}  # slots whose agent could not be started, and until when
        self._held_up = False  # a task waits for a slot that rests
        self._beaten_at = 0.0
        self._closing = False

    async def serve(self, *, until_idle: bool = False, on_begin: Callable[[], None] = lambda: None) -> None:
        """Drive tasks until closed or drained; with `until_idle` only until none can be taken."""
        await self._claim_pool()
        try:
            await self._begin()
            on_begin()
            while not self._closing:
                await self._beat()
                await self._engine.sweep()
                seen = self._store.changes.commits
                if await self._is_drained(seen):
                    break
                await self._take()
                if until_idle and not self._driven and not self._held_up:
                    break
                await self._wait(seen)
            await self._over()
        except (asyncio.CancelledError, Exception):
            self.close()
            if self._driven:
                await self._engine.let_go("the pool was told to stop", set(self._driven.values()))
            raise
        finally:
            await self._server.close()
            if self._only is None:
                await self._store.pool.leave_pool(self._engine.driver)

    def close(self) -> None:
        """Take nothing new."""
        self._closing = True

    async def _claim_pool(self) -> None:
        """Become the driver of the pool; raises Conflict while another process that is alive drives it."""
        await self._store.pool.create_pool(self._clock.now())
        if self._only is not None:
            return  # others must not rely on a driver that takes no tasks but its own
        pool = await self._store.pool.pool()
        before = None if pool is None else pool.driver
        alive = before is not None and pool is not None and self._engine.lives(before, pool.driven_until)
        if before is not None and before != self._engine.driver and alive:
            raise _driven_by(before)
        await self._drive_pool(before or self._engine.driver)

    async def _drive_pool(self, before: Driver) -> None:
        now = self._clock.now()
        self._beaten_at = now
        if not await self._store.pool.drive_pool(self._engine.driver, now + LEASE_SECONDS, instead=before):
            pool = await self._store.pool.pool()
            raise _driven_by(None if pool is None else pool.driver)

    async def _begin(self) -> None:
        if (self._settings.pool.isolation or "none") != "none":
            await project_trees(self._settings).check()
        self._server.remove_leftovers()
        if not await self._store.pool.slots():
            for place in range(1, max(self._settings.pool.slots, len(self._settings.slots)) + 1):
                await self._store.pool.add_slot(SlotRecord(name=f"slot-{place}", place=place))
        if self._only is None:  # who does only a task of its own leaves the pool as it is
            await self._restart_slots()

    async def _restart_slots(self) -> None:
        """Let slots that were stopped, or whose agents could not be started, work again."""
        for slot in await self._store.pool.slots():
            if slot.standing in (SlotStanding.STOPPED, SlotStanding.ERRORED):
                active = replace(slot, standing=SlotStanding.ACTIVE, failures=0, error="")
                await self._store.pool.update_slot(active)

    async def _beat(self) -> None:
        """Keep the pool; raises Conflict when another process has taken it over."""
        if self._only is None and self._clock.now() - self._beaten_at >= BEAT_SECONDS:
            await self._drive_pool(self._engine.driver)

    async def _is_drained(self, seen: int) -> bool:
        """Return whether the pool drains and nothing is at work any more; what is late is let go of."""
        pool = await self._store.pool.pool()
        if pool is None or pool.drain_until is None:
            return False
        late = self._clock.now() >= pool.drain_until
        if self._driven and late:
            self._engine.stop_all(Interrupted("the pool was drained"), now=True)
            await self._over()
        if self._driven and not late:
            await self._wait(seen)
            return False
        if self._only is None:
            await stop_slots(self._store)
        return True

    async def _take(self) -> None:
        pool = await self._store.pool.pool()
        if pool is not None and pool.draining:
            return
        await self._settle_slots()
        slots = await self._store.pool.slots()
        idle = [self._slots.at(slot.place) for slot in slots if slot.standing is SlotStanding.ACTIVE and not slot.run]
        self._held_up = False
        if not idle:
            return  # however many tasks wait, nothing is read while all slots are at work
        now = self._clock.monotonic()
        free = [slot for slot in idle if self._resting.get(slot.id, now) <= now]
        pending = [one for one in await self._pending() if one.run not in self._driven]
        if not pending:
            return
        found = schedule(free, pending, await self._earlier(pending), await self._funds())
        left = [one.spec for one in pending if one.run not in {*found.failed, *found.assigned, *found.refused}]
        self._held_up = any(slot.fits(spec) for slot in idle if slot not in free for spec in left)
        specs = {one.run: one for one in pending}
        for run, why in found.failed.items():
            self._start(run, None, specs[run], _failing(why))
        for run, slot_id in found.assigned.items():
            if await self._store.pool.assign(slot_id, run):
                self._start(run, next(slot for slot in free if slot.id == slot_id), specs[run])

    async def _settle_slots(self) -> None:
        """Free slots whose task is over or waits, and go on with those that were given a task nobody drives."""
        for slot in await self._store.pool.slots():
            if slot.run is None or slot.run in self._driven:
                continue
            run = await self._store.runs.get(slot.run)
            if run is None or _has_stopped(run) or await self._lacks_money(run):
                await self._leave_slot(slot, run)
            elif not run.is_driven and self._is_ours(run) and run.id not in self._left_alone:
                self._start(run.id, self._slots.at(slot.place), self._pending_of(run, slot.name))

    async def _leave_slot(self, slot: SlotRecord, run: Run | None) -> None:
        if slot.run is not None:
            await self._store.pool.free(slot.name, slot.run)
        if slot.standing is SlotStanding.LEAVING:
            await self._store.pool.remove_slot(slot.name)

    async def _pending(self) -> list[PendingTask]:
        assigned = {slot.run for slot in await self._store.pool.slots() if slot.run}
        runs = await self._store.pool.tasks(run_states(TaskState.PENDING))
        found = []
        for run in runs:
            if run.id in assigned or run.id in self._left_alone or not self._is_ours(run) or run.cancel_requested:
                continue
            if await self._lacks_money(run):
                continue
            slot = await assigned_slot(self._store.journal, run.id) if run.started_at is not None else None
            found.append(self._pending_of(run, None if slot is None else slot.id))
        return found

    async def _lacks_money(self, run: Run) -> bool:
        """Return whether a task was interrupted that has too little left to go on; it stays pending, which is told."""
        shortfall = await self._tasks.shortfall(run)
        most = self._tasks.most_of(run)
        if shortfall is not None and self._is_ours(run) and self._told.get(run.id) != most:
            self._told[run.id] = most
            self._on_error(run.id, shortfall)
        return shortfall is not None

    def _is_ours(self, run: Run) -> bool:
        return self._only is None or run.id in self._only

    def _pending_of(self, run: Run, slot: str | None) -> PendingTask:
        spec, most = read_task(run.spec), self._tasks.most_of(run)
        return PendingTask(run=run.id, spec=spec, created_at=run.created_at, most=most, slot=slot)

    async def _earlier(self, pending: list[PendingTask]) -> Mapping[str, EarlierTask]:
        found = {}
        for name in {name for one in pending for name in one.spec.after}:
            try:
                task = await self._tasks.get(name)
            except NotFound:
                continue
            found[name] = EarlierTask(title=task.title, state=task.state)
        return found

    async def _funds(self) -> PoolFunds:
        balance = (await self._store.runs.balances([POOL_LEVEL])).get(POOL_LEVEL)
        if balance is None:
            return PoolFunds()
        reserved = Microdollars(sum(self._reserved.values()))
        return PoolFunds(cap=balance.cap, settled=balance.settled, reserved=max(reserved, balance.reserved))

    async def _recording(self, run: RunId, slot: SlotProfile, task: PendingTask) -> Callable[[Context], Any]:
        """Return what writes into the journal of a task which slot it was given, with its settings and the context."""
        pool, spec = self._settings.pool, task.spec
        agent = spec.agent or slot.agent or pool.agent or ""
        limit = self._tasks.call_limit(agent, spec, task.most)
        budget: dict[str, Json] = {} if limit is None else {"budget_usd": limit}
        assigned = AssignedSlot(
            id=slot.id,
            name=slot.name,
            role=slot.role,
            description=slot.description,
            agent=agent,
            system=tuple(text for text in (pool.system, slot.system) if text),
            settings=merged(budget, spec.settings, slot.settings),
            on_permission=spec.on_permission or slot.on_permission or pool.on_permission,
            context=await self._store.pool.context(),
            environment={"MUSTER_HOME": str((self._settings.home / "slots" / slot.id).absolute())},
            folder=str((self._settings.folder / spec.cwd).absolute()),
        )
        kept = (await self._trees.place(assigned, run, spec)).stored()

        async def record(ctx: Context) -> None:
            await ctx.step(SLOT_KEY, lambda: kept)

        return record

    async def _limit(self, run: RunId, agent: str) -> dict[str, Json]:
        """Return the limit that calls of a task get in place of the recorded one, if its budget leaves another."""
        found = await self._store.runs.get(run)
        limit = None if found is None else self._tasks.next_limit(agent, found)
        return {} if limit is None else {"budget_usd": limit}

    def _start(
        self, run: RunId, slot: SlotProfile | None, task: PendingTask, before: Callable[[Context], Any] | None = None
    ) -> None:
        self._reserved[run] = task.most
        self._driven[run] = asyncio.get_running_loop().create_task(self._drive(run, slot, task, before))

    async def _drive(
        self, run: RunId, slot: SlotProfile | None, task: PendingTask, before: Callable[[Context], Any] | None
    ) -> None:
        spec = task.spec
        agent = spec.agent or (slot and slot.agent) or self._settings.pool.agent or ""
        ended: Run | None = None
        try:
            prepare = before if before is not None or slot is None else await self._recording(run, slot, task)
            async with self._server.connect(slot, agent) as connection:
                ended = await self._engine.drive(
                    run,
                    self._on_delta,
                    leave=Leave.FOR_SIGNALS,
                    before=_joined(connection, prepare),
                    attached={**connection.attached, **await self._limit(run, agent)},
                )
        except Conflict:  # it was canceled, or somebody else drives it, who needs the slot
            slot = None if await self._is_driven(run) else slot
        except MusterError as error:
            if slot is not None and isinstance(error, BadConfiguration) and slot.agent and not spec.agent:
                self._broken[slot.id] = error.message  # the slot is at fault: another one may do the task
            else:
                self._left_alone.add(run)
            self._on_error(run, error)
        finally:
            self._reserved.pop(run, None)
            if slot is not None:
                await self._keep_work(run)
                record = await self._look_after(slot, ended)  # before it is free: one that rests takes nothing
                await self._store.pool.free(slot.id, run)
                if record is not None and record.standing is SlotStanding.LEAVING:
                    await self._store.pool.remove_slot(record.name)
            del self._driven[run]
        if ended is not None:
            self._on_end(ended)

    async def _keep_work(self, run: RunId) -> None:
        """Keep what a task that did not complete left in its tree; the slot is free whatever happens."""
        found = await self._store.runs.get(run)
        if found is None or found.state not in TERMINAL - {RunState.COMPLETED}:
            return
        try:
            await self._trees.keep(found)
        except MusterError as error:
            self._on_error(run, error)

    async def _is_driven(self, run: RunId) -> bool:
        found = await self._store.runs.get(run)
        return found is not None and found.is_driven

    async def _look_after(self, slot: SlotProfile, ended: Run | None) -> SlotRecord | None:
        """Count what a slot has done; one whose agent could not be started rests, and at last takes no more tasks."""
        record = next((one for one in await self._store.pool.slots() if one.name == slot.id), None)
        if record is None or record.standing is SlotStanding.LEAVING:
            return record
        failed = ended is not None and ended.ended_reason == NotStarted.code
        message = str((ended.error or {}).get("message", "")) if failed and ended is not None else ""
        failures = record.failures + 1 if failed else 0
        decision = self._restarts.after(failures)
        if slot.id in self._broken:
            message, decision = self._broken.pop(slot.id), RestartDecision(errored=True, rest=0.0)
        self._resting[slot.id] = self._clock.monotonic() + decision.rest
        await self._store.pool.note_outcome(
            SlotOutcome(
                slot=slot.id,
                completed=ended is not None and task_state(ended) is TaskState.COMPLETED,
                failures=failures,
                error=message,
                errored=decision.errored,
            )
        )
        return record

    async def _wait(self, seen: int) -> None:
        """Wait until something was written since, a task here is over, or a slot has rested."""
        rests = [until - self._clock.monotonic() for until in self._resting.values()]
        seconds = min([LOOK_SECONDS, *(left for left in rests if left > 0)])
        change = asyncio.ensure_future(self._store.changes.wait(seconds, seen))
        await asyncio.wait({change, *self._driven.values()}, return_when=asyncio.FIRST_COMPLETED)
        change.cancel()

    async def _over(self) -> None:
        if self._driven:
            await asyncio.wait(set(self._driven.values()))


def _has_stopped(run: Run) -> bool:
    """Return whether a task is over, or waits for somebody."""
    return run.state in TERMINAL or (run.state is RunState.WAITING and not run.is_driven)


def _driven_by(driver: Driver | None) -> Conflict:
    return Conflict(f"the pool is run by {driver or 'another process'}", suggestions=("muster pool status",))


def _joined(connection: SlotConnection, before: Callable[[Context], Any] | None) -> Callable[[Context], Any]:
    """Let the agent's access know the run that it belongs to."""

    async def prepare(ctx: Context) -> None:
        connection.know(ctx)
        if before is not None:
            await before(ctx)

    return prepare


async def stop_slots(store: Store) -> None:
    """Stop all slots; one that goes when its task ends still goes."""
    for slot in await store.pool.slots():
        if slot.standing is not SlotStanding.LEAVING:
            await store.pool.update_slot(replace(slot, standing=SlotStanding.STOPPED))


def _failing(why: str) -> Callable[[Context], Any]:
    async def fail(ctx: Context) -> None:
        raise DependencyFailed(why)

    return fail

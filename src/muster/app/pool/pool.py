"""The pool: its slots and their number, its budget, who drives it, shared context and messages. `Muster.pool`."""

import asyncio
import contextlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Unpack
from uuid import uuid4

from muster.app.base.backend import Backend
from muster.app.pool.driver import OnEnd, OnError, PoolDriver, stop_slots
from muster.app.pool.monitor import PoolMonitor
from muster.app.pool.orders import (
    TaskRunTerms,
    TaskTerms,
    fan_out_specs,
    fan_out_terms,
    ordered_spec,
    ordered_terms,
)
from muster.app.pool.slot_server import SlotServer
from muster.app.pool.slots import SlotDirectory
from muster.app.pool.status import PoolStatus, Slot
from muster.app.pool.task_queries import Task
from muster.app.pool.tasks import Tasks
from muster.app.pool.trees import TaskTrees
from muster.app.runs.kind_part import KindPart
from muster.app.runs.options import require_moment
from muster.app.runs.runs import Runs
from muster.domain.entry import NewSignal, Signal, slot_address
from muster.domain.errors import BadArgument, Conflict, MusterError, NotFound, TimedOut
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import BudgetedCost, Driver, Run, Spent
from muster.domain.task import TaskState
from muster.engine.drive import Listener
from muster.pool.fan_out import FanOut
from muster.pool.metrics import MeasuredTask, PoolMetrics, pool_metrics
from muster.pool.order import CONFIRMED_ABOVE, TaskOrder
from muster.pool.tasks import INBOX, SlotProfile, TaskSpec
from muster.settings import parse_budget
from muster.settings.sections import PoolSection
from muster.store.base import SlotRecord, SlotStanding

MAX_TEXT = 100_000  # characters of a shared text or a message
MAX_UNREAD = 1000  # messages that are shown or read at once
LOOK_SECONDS = 1.0
MAX_TASKS = 100_000  # that are measured


class Pool(KindPart):
    """The pool of an open Muster."""

    def __init__(self, backend: Backend, runs: Runs) -> None:
        self._backend, self._settings, self._store = backend, backend.settings, backend.store
        self._engine, self._clock, self._runs = backend.engine, backend.clock, runs
        self._directory = SlotDirectory(backend.settings)
        self.tasks = Tasks(backend, runs)
        self.trees = TaskTrees(backend, runs, self.tasks)
        self.monitor = PoolMonitor(backend, self.tasks, self.status)

    def require_resumable(self, run: Run) -> None:
        """Raise BadArgument: a task is retried, and needs a slot."""
        ways = ("muster pool start", f"muster task retry {run.id}", f"muster task result {run.id}")
        raise BadArgument(f"run {run.id} is a task, which runs in a slot of the pool", suggestions=ways)

    async def output(self, run: Run) -> str:
        """Return the last answer of the agent of a task."""
        return (await self.tasks.of(run)).output or ""

    def driver(
        self,
        *,
        only: Collection[RunId] | None = None,
        on_end: OnEnd = lambda run: None,
        on_error: OnError = lambda run, error: None,
        on_delta: Listener | None = None,
    ) -> PoolDriver:
        """Return what drives the tasks of the pool in this process; `only` names the runs of some of them."""
        return PoolDriver(
            self._backend,
            self.tasks,
            self.trees,
            SlotServer(self._backend, self, self.tasks),
            only=only,
            on_end=on_end,
            on_error=on_error,
            on_delta=on_delta,
        )

    async def run(
        self,
        spec: TaskSpec,
        *,
        on_delta: Listener | None = None,
        **terms: Unpack[TaskTerms],
    ) -> Task:
        """Submit a task and wait until it is over or waits for a review; it is driven here if nobody drives the pool.

        Raises TimedOut when no slot was free for as long as `slot_assignment_timeout_secs` says; it is canceled then.
        """
        if await self.living_driver() is None:
            await self._require_completed(spec.after)
        task = await self.tasks.submit(spec, **terms)
        return await self.wait(task, within=self._settings.pool.slot_assignment_timeout_secs, on_delta=on_delta)

    async def run_ordered(self, order: TaskOrder, *, on_delta: Listener | None = None) -> Task:
        """Submit a task that was ordered, and wait as `run` does."""
        return await self.run(ordered_spec(order), on_delta=on_delta, **ordered_terms(order))

    async def cancel(self, reference: str) -> Task:
        """Cancel a task that has not ended otherwise. What it left in its working tree is kept on its branch."""
        task = await self.tasks.cancel(reference)
        if task.state is TaskState.CANCELED:
            await self.trees.keep(task.run)
        return task

    async def wait(self, task: Task, *, within: float = math.inf, on_delta: Listener | None = None) -> Task:
        """Wait until a task is over or waits for a review; it is driven here if nobody drives the pool.

        Raises TimedOut, and cancels it, when no slot was free for it within some seconds.
        """
        errors: list[MusterError] = []
        serving: asyncio.Task[None] | None = None
        until = self._clock.monotonic() + within
        try:
            while True:
                seen = self._store.changes.commits
                now = await self.tasks.get(task.id)
                if now.state not in (TaskState.PENDING, TaskState.RUNNING):
                    break
                if serving is None and await self.living_driver() is None:
                    serving = asyncio.ensure_future(self._serve_own([task], errors, on_delta))
                until = math.inf if now.state is TaskState.RUNNING else until
                if now.state is TaskState.PENDING and serving is not None and serving.done():
                    serving.result()
                    break
                if self._clock.monotonic() >= until:
                    with contextlib.suppress(Conflict):  # it has ended meanwhile
                        await self.tasks.cancel(task.id)
                        raise _no_slot(task, within)
                await self._store.changes.wait(LOOK_SECONDS, seen)
        finally:
            if serving is not None:
                serving.cancel()
                await asyncio.wait({serving})
        if errors:
            raise errors[0]
        return await self.tasks.get(task.id)

    async def _require_completed(self, tasks: Sequence[str]) -> None:
        """Raise where a task would wait for others that nobody does."""
        for task in [await self.tasks.get(name) for name in tasks]:
            if task.state is not TaskState.COMPLETED:
                raise Conflict(
                    f"task {task.title}, on which it depends, is {task.state}, and no process runs the pool",
                    suggestions=("muster task submit, and then muster pool start",),
                )

    async def _serve_own(
        self, tasks: Sequence[Task], errors: list[MusterError], on_delta: Listener | None = None
    ) -> None:
        """Drive some tasks here; while all slots are at work for others, look again."""
        only = {task.run.id for task in tasks}
        while not self._runs.stopping and not errors and await self._is_open():
            driver = self.driver(only=only, on_error=lambda _, error: errors.append(error), on_delta=on_delta)
            await driver.serve(until_idle=True)
            seen = self._store.changes.commits
            now = [await self.tasks.get(task.id) for task in tasks]
            if not any(task.state is TaskState.PENDING and not task.refusal for task in now):
                return
            await self._store.changes.wait(LOOK_SECONDS, seen)

    async def _is_open(self) -> bool:
        pool = await self._store.pool.pool()
        return pool is None or not pool.draining

    async def fan_out(
        self, wanted: FanOut, *, confirmed: bool = False, **terms: Unpack[TaskRunTerms]
    ) -> Sequence[Task]:
        """Submit a task for each prompt and wait for all; results are in the order of the prompts, failed ones too.

        Raises before anything is stored when there are more than 50 and nobody confirmed that. A task that the budget
        of the pool does not pay for is not waited for; it stays pending and says why.
        """
        number = len(wanted.prompts)
        if number > CONFIRMED_ABOVE and not confirmed:
            raise BadArgument(f"{number:,} tasks must be confirmed", suggestions=("add --yes",))
        await self.tasks.require_room(number)
        specs = zip(fan_out_specs(wanted), fan_out_terms(terms, number), strict=True)
        tasks = [await self.tasks.submit(spec, **own) for spec, own in specs]
        errors: list[MusterError] = []
        while open_ := await self._awaited(tasks):
            if await self.living_driver() is None:
                await self._serve_own(open_, errors)
            seen = self._store.changes.commits
            if errors or self._runs.stopping or not await self._is_open() or not await self._awaited(open_):
                break
            await self._store.changes.wait(LOOK_SECONDS, seen)
        return [await self.tasks.get(task.id) for task in tasks]

    async def _awaited(self, tasks: Sequence[Task]) -> Sequence[Task]:
        return [task for task in [await self.tasks.get(task.id) for task in tasks] if _is_awaited(task)]

    async def metrics(
        self, *, since: float = 0.0, until: float | None = None, tags: Sequence[str] = (), model: str | None = None
    ) -> PoolMetrics:
        """Return figures over the tasks that were created in a time, have any of the tags, and used a model.

        Over all tasks, with what those have cost that are not among them: deleted ones, and those of other users.
        """
        end = self._clock.now() if until is None else until
        tasks = [
            task
            for task in await self.tasks.list(limit=MAX_TASKS)
            if require_moment(since) <= task.run.created_at <= end
            and (not tags or set(tags) & set(task.run.tags))
            and (model is None or (task.reply is not None and task.reply.model == model))
        ]
        found = pool_metrics([_measured(task) for task in tasks])
        if since or until is not None or tags or model is not None:
            return found
        whole = (await self._store.pool.pool_cost()).total
        return replace(found, unlisted=Microdollars(max(0, whole - found.spent.settled)))

    async def living_driver(self) -> Driver | None:
        """Return who drives the pool; None when nobody does."""
        pool = await self._store.pool.pool()
        if pool is None or pool.driver is None or not self._engine.lives(pool.driver, pool.driven_until):
            return None
        return pool.driver

    @property
    def is_declared(self) -> bool:
        """Return whether the settings say anything of the pool; then a server drives it."""
        return bool(self._settings.slots) or self._settings.pool != PoolSection()

    async def may_be_driven(self) -> bool:
        """Return whether nobody drives the pool, and it was not drained."""
        return await self._is_open() and await self.living_driver() is None

    async def require_driver(self) -> None:
        """Raise Conflict when a task would wait without end: no process runs the pool, and no server would."""
        if not self.is_declared and await self.living_driver() is None:
            raise Conflict(
                "no process runs the pool, and this server has no slots",
                suggestions=("muster pool start", "or declare [pool] or [[slots]] in muster.toml"),
            )

    async def set_budget(self, budget_usd: str | float) -> None:
        """Set the budget of all tasks since the pool was created."""
        cap = parse_budget(budget_usd)
        await self._store.pool.create_pool(self._clock.now())
        if cap is not None:
            await self._store.pool.cap_pool(cap)

    async def slots(
        self, *, name: str | None = None, role: str | None = None, state: str | None = None
    ) -> Sequence[Slot]:
        """Return the slots: of a name, a role, a state."""
        costs = await self._store.pool.slot_costs()
        found = [
            replace(
                await self._slot(record),
                cost=BudgetedCost(spent=costs.get(record.name, Spent())),
                session=await self._session(record),
            )
            for record in await self._store.pool.slots()
        ]
        return [
            slot
            for slot in found
            if name in (None, slot.profile.name, slot.profile.id)
            and role in (None, slot.profile.role)
            and state in (None, slot.state)
        ]

    async def status(self) -> PoolStatus:
        """Return the pool at a glance."""
        pool = await self._store.pool.pool()
        return PoolStatus(
            slots=tuple(await self.slots()),
            tasks=await self.tasks.counts(),
            cost=await self._store.pool.pool_cost(),
            draining=pool is not None and pool.draining,
            driver=await self.living_driver(),
        )

    async def scale(self, number: str | int) -> Sequence[Slot]:
        """Change how many slots there are, to a number or by +N or -N; busy ones go when their task ends."""
        await self._store.pool.create_pool(self._clock.now())
        records = [one for one in await self._store.pool.slots() if one.standing is not SlotStanding.LEAVING]
        wanted = _wanted(str(number), len(records))
        least, most = self._settings.pool.min_slots, self._settings.pool.max_slots
        if wanted > most:
            raise BadArgument(f"{wanted} slots are more than max_slots ({most}); the pool still has {len(records)}")
        if wanted < least:
            raise BadArgument(f"{wanted} slots are fewer than min_slots ({least}); the pool still has {len(records)}")
        places = {record.place for record in await self._store.pool.slots()}
        vacant = [place for place in range(1, most + len(places) + 1) if place not in places]
        for place in vacant[: max(0, wanted - len(records))]:
            await self._store.pool.add_slot(SlotRecord(name=f"slot-{place}", place=place))
        if wanted < len(records):
            await self._shrink(records, len(records) - wanted)
        return await self.slots()

    async def _shrink(self, records: Sequence[SlotRecord], number: int) -> None:
        """Remove slots from the end, idle ones first; a busy one takes no more work and goes when its task ends."""
        for record in sorted(records, key=lambda one: (one.run is not None, -one.place))[:number]:
            await self._store.pool.update_slot(replace(record, standing=SlotStanding.LEAVING))
            await self._store.pool.remove_slot(record.name)

    async def drain(self, timeout: float = 60.0) -> PoolStatus:
        """Refuse new work, wait until tasks at work are over or the time is, and stop all slots; pending tasks stay."""
        until = self._clock.now() + timeout
        await self._store.pool.create_pool(self._clock.now())
        await self._store.pool.drain(until)
        seen = self._store.changes.commits
        while await self._is_at_work() and self._clock.now() < until + LOOK_SECONDS * 5:
            await self._store.changes.wait(LOOK_SECONDS, seen)
            seen = self._store.changes.commits
        await stop_slots(self._store)
        return await self.status()

    async def _is_at_work(self) -> bool:
        """Return whether a process drives the pool, or a task of its own in a slot of it."""
        if await self.living_driver() is not None:
            return True
        await self._engine.sweep()
        runs = [await self._store.runs.get(slot.run) for slot in await self._store.pool.slots() if slot.run]
        return any(run is not None and run.is_driven for run in runs)

    async def context(self) -> Mapping[str, str]:
        """Return the texts that every slot is told."""
        return await self._store.pool.context()

    async def context_text(self, name: str) -> str:
        """Return a text that every slot is told."""
        found = (await self.context()).get(name)
        if found is None:
            raise _no_text(name)
        return found

    async def set_context(self, name: str, value: str) -> None:
        """Set a text that every slot is told from its next task on."""
        if not name.strip() or not name.isprintable() or len(value) > MAX_TEXT:
            raise BadArgument(f"a shared text needs a printable name and at most {MAX_TEXT:,} characters")
        await self._store.pool.set_context(name, value, self._clock.now())

    async def delete_context(self, name: str) -> None:
        """Forget a text."""
        if not await self._store.pool.delete_context(name):
            raise _no_text(name)

    async def send(self, slot: str, text: str, *, sender: str = "", client_id: str | None = None) -> Signal:
        """Send a message to a slot; its agent gets it once, during its task or in its next prompt."""
        profile = await self._existing(slot)
        return await self._store.signals.send(self._message(profile.id, text, sender, client_id))

    def _message(self, slot: str, text: str, sender: str, client_id: str | None = None) -> NewSignal:
        if not text.strip() or len(text) > MAX_TEXT:
            raise BadArgument(f"a message must have between 1 and {MAX_TEXT:,} characters")
        return NewSignal(
            address=slot_address(slot),
            channel=INBOX,
            payload=text,
            client_id=client_id or uuid4().hex,
            sender=sender,
            at=self._clock.now(),
        )

    async def broadcast(self, text: str, *, sender: str = "") -> Sequence[str]:
        """Send a message to every slot but the sender and those that are stopped; return their names.

        All of them get it at the same moment; a slot that goes meanwhile is left out.
        """
        found = [self._directory.at(record.place) for record in await self._store.pool.slots()]
        profiles = {profile.id: profile for profile in found if sender not in (profile.name, profile.id)}
        messages = {slot: self._message(slot, text, sender) for slot in profiles}
        return [profiles[slot].name for slot in await self._store.pool.message_slots(messages)]

    async def unread(self, slot: str) -> Sequence[Signal]:
        """Return the messages that a slot has not read."""
        return await self._store.signals.untaken(slot_address((await self._existing(slot)).id), INBOX, MAX_UNREAD)

    async def read(self, slot: str) -> Sequence[Signal]:
        """Return the messages that a slot has not read and count them as read: no agent is given them any more."""
        address = slot_address((await self._existing(slot)).id)
        return await self._store.signals.mark_read(address, INBOX, MAX_UNREAD)

    async def _existing(self, slot: str) -> SlotProfile:
        """Return a slot that the pool has now."""
        profile = self._directory.find(slot)
        if profile.id not in {record.name for record in await self._store.pool.slots()}:
            raise NotFound(f"slot {slot!r} not found", suggestions=("muster pool slots",), given=slot)
        return profile

    async def _slot(self, record: SlotRecord) -> Slot:
        run = None if record.run is None else await self._store.runs.get(record.run)
        busy = run is not None and (run.is_driven or record.run is not None) and not _is_over(run.state)
        task = await self.tasks.of(run) if run is not None and busy else None
        return Slot(profile=self._directory.at(record.place), record=record, task=task)

    async def _session(self, record: SlotRecord) -> str | None:
        """Return the session of a slot's agent, in the last of its tasks that has one."""
        for name in await self._store.pool.tasks_of_slot(record.name):
            run = await self._store.runs.get(name)
            reply = None if run is None else (await self.tasks.of(run)).reply
            if reply is not None and reply.trace is not None and reply.trace.session:
                return reply.trace.session
        return None


def _is_awaited(task: Task) -> bool:
    pays = task.state is TaskState.PENDING and not task.refusal
    return pays or task.state is TaskState.RUNNING


def _measured(task: Task) -> MeasuredTask:
    run, reply = task.run, task.reply
    trace = None if reply is None else reply.trace
    ended = run.ended_at is not None and run.started_at is not None
    return MeasuredTask(
        state=task.state,
        spent=task.cost.spent,
        elapsed=run.ended_at - run.started_at if ended and run.ended_at and run.started_at else None,
        turns=None if trace is None else trace.turns,
        model=None if reply is None else reply.model,
    )


def _no_slot(task: Task, seconds: float) -> TimedOut:
    return TimedOut(
        f"no slot was free for task {task.title} within {seconds:g} s; it was canceled",
        suggestions=("muster task submit waits without a time limit", "muster pool status"),
    )


def _no_text(name: str) -> NotFound:
    return NotFound(f"shared text {name!r} not found", suggestions=("muster pool context list",), given=name)


def _is_over(state: str) -> bool:
    return state in ("completed", "failed", "canceled", "timeout")


def _wanted(number: str, now: int) -> int:
    sign, digits = (number[0], number[1:]) if number[:1] in "+-" and number else ("", number)
    if not digits.isdecimal() or not digits.isascii():
        raise BadArgument(f"{number!r} is not a number of slots", suggestions=("write it like 4, +2 or -1",))
    return now + int(digits) if sign == "+" else now - int(digits) if sign == "-" else int(digits)

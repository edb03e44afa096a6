"""Tasks: submitted, found, reviewed, canceled, retried and given to slots. `Muster.pool.tasks`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from muster.app.backend import Backend
from muster.app.pool.slots import SlotDirectory, profiles, project_trees
from muster.app.runs.options import RunOptions
from muster.app.runs.runs import Runs
from muster.domain.budget import Budgets, lineage_level
from muster.domain.call import Reply, ask
from muster.domain.entry import Entry
from muster.domain.errors import BadArgument, BadConfiguration, BudgetExhausted, Conflict, NotFound
from muster.domain.ids import RunId
from muster.domain.money import NOTHING, Microdollars, from_usd
from muster.domain.run import TERMINAL, Run, RunState
from muster.pool.scheduling import PoolFunds
from muster.pool.tasks import (
    REVIEW,
    SLOT_KEY,
    WORKLOAD,
    SlotProfile,
    TaskSpec,
    TaskState,
    merged,
    read_task,
    run_states,
    task_id,
    task_state,
)
from muster.pool.workload import TaskRejected, saved_key, work_key
from muster.store.base import POOL_LEVEL

MOST_TASKS = 100_000  # that are listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as it stands."""

    run: Run  # the newest of its runs
    spec: TaskSpec
    slot: SlotProfile | None = None  # that it was given
    reply: Reply | None = None  # of its last round
    rejections: int = 0
    saved: Mapping[str, Any] = field(default_factory=dict)  # what its branch held after its last round
    refusal: str = ""  # why the budget of the pool does not pay for it

    @property
    def id(self) -> str:
        """The id of the task, whichever run it is now."""
        return task_id(self.run)

    @property
    def branch(self) -> str | None:
        """The branch that holds its work."""
        return self.saved.get("branch")

    @property
    def state(self) -> TaskState:
        """Where it stands."""
        return task_state(self.run)


class Tasks:
    """The tasks of the pool."""

    def __init__(self, backend: Backend, runs: Runs) -> None:
        self._settings, self._store, self._clock = backend.settings, backend.store, backend.clock
        self._engine, self._directory, self._runs = backend.engine, backend.directory, runs

    async def submit(
        self,
        spec: TaskSpec,
        *,
        tags: Iterable[str] = (),
        name: str | None = None,
        timeout: float | None = None,
        continues: str | None = None,
    ) -> Task:
        """Store a task for whoever drives the pool; raises before that when it could never be done.

        `continues` names a completed task whose session of the agent it goes on with.
        """
        if continues is not None:
            spec = replace(spec, session=await self._session_of(continues))
        await self._require_acceptable(spec)
        options = self._options(spec, tags, name, timeout)
        await self._store.pool.create_pool(self._clock.now())
        await self._set_cap()
        await self._require_payable(spec)
        run = self._engine.new_id()
        created = await self._runs.create(WORKLOAD, spec.stored(), options, run, self._budgets(run))
        return Task(run=created, spec=spec)

    async def get(self, reference: str) -> Task:
        """Return a task by its id, the beginning of one, its name, or `last`."""
        return await self.of(await self.find(reference))

    async def of(self, run: Run) -> Task:
        """Return the task of a run, with what it has come to so far."""
        spec, slot = read_task(run.spec), await self._store.journal.find(run.id, SLOT_KEY)
        rejections, last = await self._rounds(run.id)
        return Task(
            run=run,
            spec=spec,
            slot=None if slot is None else _profile(slot),
            reply=None if last is None else last.reply,
            rejections=rejections,
            saved=await self._saved(run.id, rejections),
            refusal=(await self._funds()).refusal(self.most(spec)) if task_state(run) is TaskState.PENDING else "",
        )

    async def list(
        self, states: Sequence[TaskState | str] = (), *, tag: str | None = None, limit: int = 100
    ) -> Sequence[Task]:
        """Return the newest tasks: of some states, with a tag of theirs."""
        wanted = [_state(state) for state in states] or list(TaskState)
        runs = await self._store.pool.tasks([one for state in wanted for one in run_states(state)], MOST_TASKS)
        newest = {task_id(run): run for run in runs if tag is None or tag in run.tags}
        return [await self.of(run) for run in reversed(list(newest.values())[-limit:])]

    async def approve(self, reference: str, *, sender: str = "", client_id: str | None = None) -> Task:
        """Approve the work of a task that waits for a review; it completes when the pool is driven."""
        return await self._review(reference, {"approved": True}, sender, client_id)

    async def reject(self, reference: str, feedback: str, *, sender: str = "", client_id: str | None = None) -> Task:
        """Reject the work of a task that waits for a review; its next prompt has every feedback."""
        if not feedback.strip():
            raise BadArgument("a rejection needs feedback", suggestions=("say what is to be done differently",))
        return await self._review(reference, {"approved": False, "feedback": feedback}, sender, client_id)

    async def cancel(self, reference: str) -> Task:
        """Cancel a task; one that is over stays as it is."""
        run = await self.find(reference)
        if run.state in TERMINAL:
            return await self.of(run)
        return await self.of(await self._runs.cancel(run.id))

    async def retry(self, reference: str) -> Task:
        """Have a task done again that failed or was canceled; it keeps its id, and what it had done before."""
        run = await self.find(reference)
        if task_state(run) not in (TaskState.FAILED, TaskState.CANCELED):
            raise Conflict(
                f"task {task_id(run)} is {task_state(run)}; only a failed or canceled task can be tried again"
            )
        if run.ended_reason == TaskRejected.code:  # every review would be heard again
            raise Conflict(
                f"task {task_id(run)} was rejected as often as it allows",
                suggestions=("submit a new task, with what the reviews said in its prompt",),
            )
        await self._require_open()
        return await self.of(await self._runs.prepare_resume(run.id, here=False))

    async def amend(self, reference: str, *, prompt: str | None = None, priority: int | None = None) -> Task:
        """Change the prompt or the priority of a task that has not begun."""
        run = await self.find(reference)
        if run.state is not RunState.QUEUED or run.started_at is not None:
            raise Conflict(f"task {task_id(run)} is {task_state(run)}; only one that has not begun can be changed")
        spec = read_task(run.spec)
        changed = replace(
            spec,
            prompt=spec.prompt if prompt is None else prompt,
            priority=spec.priority if priority is None else priority,
        )
        return await self.of(await self._store.commands.amend(run.id, changed.stored()))

    async def claim(self, slot: str) -> Task | None:
        """Give the oldest pending task that fits to a slot; None when the slot is busy or there is no such task."""
        profile = self.slot(slot)
        known = {one.name for one in await self._store.pool.slots()}
        if profile.id not in known:
            raise NotFound(f"slot {slot!r} not found", suggestions=("muster pool slots",))
        for run in await self._store.pool.tasks(run_states(TaskState.PENDING)):
            if profile.fits(read_task(run.spec)) and await self._store.pool.assign(profile.id, run.id):
                return await self.of(run)
        return None

    def slot(self, name: str) -> SlotProfile:
        """Return a slot by its name or id."""
        return SlotDirectory(self._settings).find(name)

    def most(self, spec: TaskSpec) -> Microdollars:
        """Return what a task may cost: its own budget, else the default of the pool, else nothing is known."""
        usual = self._settings.pool.default_task_budget_usd
        budget = spec.budget_usd if spec.budget_usd is not None else usual
        return NOTHING if budget is None else from_usd(budget)

    def call_limit(self, agent: str, spec: TaskSpec) -> float | None:
        """Return what one call of a task may cost, in dollars, where its agent would reserve more than the task has.

        Else a call reserves what the agent says: a crash books that as uncertain, and the task must be able to go on.
        """
        found, most = self._directory.find(agent), self.most(spec)
        if not most or "budget_usd" not in found.profile.settable:
            return None
        try:
            usual = found.quote(found.profile.complete(ask(spec.prompt))).most
        except BadConfiguration:  # it has no limit of its own
            return most / 1_000_000
        return most / 1_000_000 if usual > most else None

    async def find(self, reference: str) -> Run:
        """Return the newest run of a task."""
        try:
            run = await self._runs.find(await self._last() if reference == "last" else reference)
        except NotFound as error:
            ways = error.suggestions if reference == "last" else ("muster task list",)
            raise NotFound(error.message.replace("run ", "task ", 1), suggestions=ways) from None
        if run.workload != WORKLOAD:
            raise BadArgument(
                f"run {run.id} is a run of {run.workload!r}, not a task", suggestions=("muster task list",)
            )
        return await self._runs.newest_of_lineage(run)

    async def _last(self) -> str:
        runs = await self._store.pool.tasks(list(RunState), MOST_TASKS)
        if not runs:
            raise NotFound("this store has no tasks yet", suggestions=("muster task submit PROMPT --agent AGENT",))
        return runs[-1].id

    async def _rounds(self, run: RunId) -> tuple[int, Entry | None]:
        """Return how many rounds were rejected, and the last answer."""
        last, number = None, 0
        while (entry := await self._store.journal.find(run, work_key(number))) is not None:
            last = entry if entry.reply is not None else last
            number += 1
        return max(0, number - 1), last

    async def _saved(self, run: RunId, round_: int) -> Mapping[str, Any]:
        """Return what the branch of a task held after a round, also one that failed."""
        for key in (saved_key(round_), f"{saved_key(round_)}/{run}"):
            entry = await self._store.journal.find(run, key)
            if entry is not None and entry.value is not None:
                found: Mapping[str, Any] = entry.value
                return found
        return {}

    async def _review(self, reference: str, payload: dict[str, object], sender: str, client_id: str | None) -> Task:
        run = await self.find(reference)
        state = task_state(run)
        if state is not TaskState.PENDING_REVIEW:
            raise Conflict(f"task {task_id(run)} is {state}; only a task in pending_review can be reviewed")
        await self._runs.send(run.id, REVIEW, payload, sender=sender, client_id=client_id)
        return await self.of(await self._runs.get(run.id))

    async def _session_of(self, reference: str) -> str:
        found = await self.get(reference)
        trace = None if found.reply is None else found.reply.trace
        if trace is None or not trace.session:
            raise BadArgument(f"task {found.id} has no session to continue", suggestions=("leave out --continue",))
        return trace.session

    async def _require_acceptable(self, spec: TaskSpec) -> None:
        """Raise what would keep a task from ever being done: no slot or agent for it, bad folders, unknown tasks."""
        await self._require_open()
        fitting = [slot for slot in profiles(self._settings) if slot.fits(spec)]
        if not fitting:
            raise BadArgument("no slot of the pool fits this task", suggestions=("muster pool slots",))
        for slot in fitting[:1]:
            self._require_agent(spec, slot)
        _require_inside(spec.cwd)
        if (spec.isolation or self._settings.pool.isolation or "none") != "none":
            await project_trees(self._settings).check()
        for name in spec.after:
            await self.find(name)

    def _require_agent(self, spec: TaskSpec, slot: SlotProfile) -> None:
        agent = spec.agent or slot.agent or self._settings.pool.agent
        if agent is None:
            raise BadArgument("no agent given for the task", suggestions=("add --agent, or agent in [pool]",))
        settings = merged(spec.settings, slot.settings)
        self._directory.find(agent).profile.complete(replace(ask(spec.prompt), settings=settings or None))

    async def _require_open(self) -> None:
        pool = await self._store.pool.pool()
        if pool is not None and pool.draining:
            raise Conflict("the pool was drained and takes no new tasks", suggestions=("muster pool start",))
        pending = len(await self._store.pool.tasks(run_states(TaskState.PENDING), self._settings.pool.max_pending))
        if pending >= self._settings.pool.max_pending:
            raise Conflict(f"{pending:,} tasks are pending already (max_pending)", suggestions=("muster task list",))

    async def _require_payable(self, spec: TaskSpec) -> None:
        refusal = (await self._funds()).refusal(self.most(spec))
        if refusal:
            raise BudgetExhausted(refusal, level=POOL_LEVEL, suggestions=("muster pool start --budget USD",))

    async def _funds(self) -> PoolFunds:
        balance = (await self._store.runs.balances([POOL_LEVEL])).get(POOL_LEVEL)
        return PoolFunds() if balance is None else PoolFunds(cap=balance.cap, settled=balance.settled)

    async def _set_cap(self) -> None:
        """Give the pool the budget of the settings, unless it has one."""
        budget = self._settings.pool.budget_usd
        if budget is not None and (await self._funds()).cap is None:
            await self._store.pool.cap_pool(from_usd(budget))

    def _options(self, spec: TaskSpec, tags: Iterable[str], name: str | None, timeout: float | None) -> RunOptions:
        most = self.most(spec)
        budget = str(most / 1_000_000) if most else None
        return self._runs.options(budget_usd=budget, tags=tags, name=name, timeout=timeout, concurrency=1)

    def _budgets(self, run: RunId) -> Budgets:
        return Budgets(lineage=lineage_level(run), above=(POOL_LEVEL,), day_cap=self._settings.day_cap)


def _profile(entry: Entry) -> SlotProfile:
    value = entry.value
    return SlotProfile(id=value["id"], name=value["name"], role=value["role"], agent=value["agent"])


def _state(name: TaskState | str) -> TaskState:
    if name not in list(TaskState):
        raise BadArgument(f"{name!r} is not a state of a task", suggestions=(f"one of {', '.join(TaskState)}",))
    return TaskState(name)


def _require_inside(cwd: str) -> None:
    parts = PurePosixPath(cwd).parts
    if Path(cwd).is_absolute() or ".." in parts:
        raise BadArgument(f"cwd must be a folder below the project, not {cwd!r}")

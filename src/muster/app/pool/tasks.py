"""Tasks: submitted, reviewed, canceled, retried and given to slots. `Muster.pool.tasks`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Unpack

from muster.app.base.backend import Backend
from muster.app.pool.orders import TaskTerms, ordered_spec, ordered_terms
from muster.app.pool.slots import profiles, project_trees
from muster.app.pool.task_budgets import TaskBudgets
from muster.app.pool.task_queries import Task
from muster.app.runs.options import RunOptions
from muster.app.runs.runs import Runs
from muster.domain.advice import ArgumentAdvice
from muster.domain.budget import Budgets, lineage_level
from muster.domain.call import ask
from muster.domain.errors import (
    BadArgument,
    BudgetExhausted,
    Conflict,
    MusterError,
    NotFound,
    state_verb,
)
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.domain.ids import RunId
from muster.domain.money import from_usd
from muster.domain.order import require_bounds
from muster.domain.run import TERMINAL, Run, RunState
from muster.domain.task import TaskState
from muster.pool.order import TaskOrder
from muster.pool.scheduling import EarlierTask, PendingTask, PoolFunds, schedule
from muster.pool.tasks import (
    REVIEW,
    WORKLOAD,
    SlotProfile,
    TaskSpec,
    merged,
    read_task,
    run_states,
    task_state,
    task_title,
)
from muster.pool.workload import TaskRejected, review_key
from muster.settings import parse_budget
from muster.store.base import POOL_LEVEL
from muster.text.schemas.guard import in_schema_thread
from muster.text.schemas.json_schema import bounded_schema_flaw

MAX_REASON, MAX_TOOL = 10_000, 200  # characters


class Tasks(TaskBudgets):
    """The tasks of the pool."""

    def __init__(self, backend: Backend, runs: Runs) -> None:
        super().__init__(backend, runs)
        self._engine, self._clock = backend.engine, backend.clock

    async def submit(
        self,
        spec: TaskSpec,
        *,
        started_by: RunId | None = None,
        **terms: Unpack[TaskTerms],
    ) -> Task:
        """Store a task for whoever drives the pool; raises before that when it could never be done.

        `continues` names a completed task whose session of the agent it goes on with. `started_by` is the run of
        another task whose agent submits it: the budgets above that one hold for it too.
        """
        continued = terms.get("continues")
        if continued is not None:
            spec = replace(spec, session=await self._session_of(continued))
        await self.require(spec)
        options = self._options(spec, terms)
        await self._store.pool.create_pool(self._clock.now())
        await self._set_cap()
        await self._require_payable(spec)
        run = self._runs.new_id()
        created = await self._runs.create(WORKLOAD, spec.stored(), options, run, await self._budgets(run, started_by))
        return Task(run=created, spec=spec)

    async def submit_ordered(self, order: TaskOrder) -> Task:
        """Store a task that was ordered, for whoever drives the pool."""
        return await self.submit(ordered_spec(order), **ordered_terms(order))

    async def approve(self, reference: str, *, sender: str = "", client_id: str | None = None) -> Task:
        """Approve the work of a task that waits for a review; it completes when the pool is driven."""
        number = await self._next_review(reference)
        return await self._review(await self.get(reference), number, {"approved": True}, sender, client_id)

    async def reject(
        self,
        reference: str,
        feedback: str,
        *,
        budget_usd: str | float | None = None,
        sender: str = "",
        client_id: str | None = None,
    ) -> Task:
        """Reject the work of a task that waits for a review; its next prompt has every feedback.

        `budget_usd` is a new total for its budget. Raises BudgetExhausted, and changes nothing, when too little of the
        budget is left for doing it again.
        """
        if not feedback.strip():
            raise BadArgument("a rejection needs feedback", suggestions=("say what to do differently",))
        total, number, task = parse_budget(budget_usd), await self._next_review(reference), await self.get(reference)
        if task.state is TaskState.PENDING_REVIEW and task.permission is None:
            if task.rejections + 1 < task.spec.max_rejections:  # the last one ends the task
                await self.require_round(task.run, total)
            if total is not None:
                await self._store.runs.set_cap(task.run.id, total, task.run.cap)
        return await self._review(task, number, {"approved": False, "feedback": feedback}, sender, client_id)

    async def allow(
        self, reference: str, *, tool: str | None = None, sender: str = "", client_id: str | None = None
    ) -> Task:
        """Grant the tool that a task asks permission for, to the end of the task; it continues when the pool is driven.

        `tool` grants less or something else: for Claude Code a rule such as `Bash(git status:*)`.
        """
        if tool is not None and (not tool.strip() or not tool.isprintable() or len(tool) > MAX_TOOL):
            raise BadArgument(f"a tool must have between 1 and {MAX_TOOL} printable characters")
        granted = {} if tool is None else {"tool": tool}
        return await self._decide(reference, {"allowed": True, **granted}, sender, client_id)

    async def deny(self, reference: str, reason: str = "", *, sender: str = "", client_id: str | None = None) -> Task:
        """Deny what a task asks permission for; its agent is told the reason, and continues without it."""
        if len(reason) > MAX_REASON:
            raise BadArgument(f"a reason must have at most {MAX_REASON:,} characters")
        return await self._decide(reference, {"allowed": False, "reason": reason}, sender, client_id)

    async def cancel(self, reference: str) -> Task:
        """Cancel a task; one that was canceled stays so, one that ended otherwise is a conflict, as any other run."""
        run = await self.find(reference)
        if run.state in TERMINAL - {RunState.CANCELED}:
            raise Conflict(f"task {task_title(run)} {state_verb(run.state)}; there is nothing to cancel")
        return await self.of(await self._runs.cancel(run.id))

    async def retry(self, reference: str, *, budget_usd: str | float | None = None) -> Task:
        """Have a task done again that failed, was canceled or lacks money; it keeps its id, and what it had done.

        `budget_usd` is a new total for its budget, with what it has spent so far.
        """
        run = await self.find(reference)
        if await self.shortfall(run) is None:
            _require_retryable(run)
        if run.ended_reason == TaskRejected.code:  # every review would be heard again
            raise Conflict(
                f"task {task_title(run)} has reached its maximum number of rejections",
                suggestions=("submit a new task, with what the reviews said in its prompt",),
            )
        await self._require_open()
        await self.require_next_call(run, parse_budget(budget_usd))
        going_on = await self._runs.prepare_resume(run.id, budget_usd=budget_usd, here=False)
        if going_on.state is RunState.COMPLETED:  # somebody else tried it again meanwhile
            _require_retryable(going_on)
        return await self.of(going_on)

    async def amend(self, reference: str, *, prompt: str | None = None, priority: int | None = None) -> Task:
        """Change the prompt or the priority of a task that has not started."""
        run = await self.find(reference)
        if run.state is not RunState.QUEUED or run.started_at is not None:
            raise Conflict(
                f"task {task_title(run)} is {task_state(run)}; only a task that has not started can be changed"
            )
        spec = read_task(run.spec)
        changed = replace(
            spec,
            prompt=spec.prompt if prompt is None else prompt,
            priority=spec.priority if priority is None else priority,
        )
        require_bounds(changed)
        return await self.of(await self._store.runs.amend(run.id, changed.stored()))

    async def claim(self, slot: str) -> Task | None:
        """Give the oldest pending task that fits to a slot; None when the slot is busy or there is no such task."""
        profile = self.slot(slot)
        known = {one.name for one in await self._store.pool.slots()}
        if profile.id not in known:
            raise NotFound(f"slot {slot!r} not found", suggestions=("muster pool slots",), given=slot)
        for run in await self._store.pool.tasks(run_states(TaskState.PENDING)):
            if await self._may_start(run, profile) and await self._store.pool.assign(profile.id, run.id):
                return await self.of(run)
        return None

    async def _may_start(self, run: Run, slot: SlotProfile) -> bool:
        """Return whether the scheduler would give a task to a slot if it were the only one."""
        spec = read_task(run.spec)
        if not slot.fits(spec):
            return False
        one = PendingTask(run=run.id, spec=spec, created_at=run.created_at, most=self.most_of(run))
        runs = {name: await self.find(name) for name in spec.after}
        earlier = {name: EarlierTask(title=task_title(one), state=task_state(one)) for name, one in runs.items()}
        found = (await self._store.runs.balances([POOL_LEVEL])).get(POOL_LEVEL)
        funds = PoolFunds(cap=found.cap, settled=found.settled, reserved=found.reserved) if found else PoolFunds()
        return run.id in schedule([slot], [one], earlier, funds).assigned

    async def _review(
        self, task: Task, number: int, payload: dict[str, object], sender: str, client_id: str | None
    ) -> Task:
        if task.state is not TaskState.PENDING_REVIEW:
            raise Conflict(f"task {task.title} {state_verb(task.state)}; only a task in pending_review can be reviewed")
        if task.permission is not None:
            raise Conflict(
                f"task {task.title} is not done: it asks for permission to use {task.permission.wanted}",
                suggestions=(f"muster task allow {task.id}", f"muster task deny {task.id}"),
            )
        if await self._store.journal.find(task.run.id, review_key(task.rounds - 1)) is not None:
            raise Conflict(f"task {task.title} was reviewed already, and goes on")
        await self._runs.send(task.run.id, REVIEW, payload, sender=sender, client_id=client_id, number=number)
        return await self.get(task.id)

    async def _decide(self, reference: str, payload: dict[str, object], sender: str, client_id: str | None) -> Task:
        task = await self.get(reference)
        if task.permission is None:
            raise Conflict(f"task {task.title} {state_verb(task.state)} and has not asked for permission")
        await self._runs.send(task.run.id, task.permission.channel, payload, sender=sender, client_id=client_id)
        return await self.get(task.id)

    async def _session_of(self, reference: str) -> str:
        found = await self.get(reference)
        trace = None if found.reply is None else found.reply.trace
        if trace is None or not trace.session:
            raise BadArgument(
                f"task {found.title} has no session to continue",
                suggestions=(ArgumentAdvice("continue", words="leave out {}"),),
            )
        return trace.session

    async def require(self, spec: TaskSpec) -> None:
        """Raise what would keep a task from ever being done: no slot or agent for it, bad folders, unknown tasks."""
        require_bounds(spec)
        await self._require_open()
        fitting = [slot for slot in profiles(self._settings) if slot.fits(spec)]
        if not fitting:
            wanted = next((name for name in ("slot", "role") if getattr(spec, name)), "tags")
            flaw = FieldFlaw(path=wanted, message="no slot of the pool fits this task", by_itself=True)
            raise BadArgument.of([flaw], suggestions=("muster pool slots",))
        for slot in fitting:
            self._require_no_person(spec.agent or slot.agent or self._settings.pool.agent)
        self._require_agent(spec, fitting)
        self._require_folder(spec.cwd)
        await _require_schema(spec)
        if (spec.isolation or self._settings.pool.isolation or "none") != "none":
            await project_trees(self._settings).check()
        for name in spec.after:
            await self.find(name)

    def _require_no_person(self, agent: str | None) -> None:
        """Refuse a person: a task that waits is one that waits for its review, and a person needs no slot."""
        if agent is not None and self._directory.is_person(agent):
            raise BadArgument(
                f"agent {agent!r} is a person; people cannot be given tasks",
                suggestions=(f"muster ask {agent} PROMPT", f"or make it a step of a chain: agent: {agent}"),
            )

    def _require_agent(self, spec: TaskSpec, fitting: Sequence[SlotProfile]) -> None:
        """Raise why no slot can do a task; one whose own agent is wrong does not keep the others from it."""
        errors: list[MusterError] = []
        for slot in fitting:
            agent = spec.agent or slot.agent or self._settings.pool.agent
            settings = merged(spec.settings, slot.settings)
            try:
                if agent is None:
                    ways = (ArgumentAdvice("agent", words="add {}, or set agent under [pool] in muster.toml"),)
                    message = "no agent given for the task"
                    flaw = FieldFlaw(path="agent", message=message, code=FlawCode.MISSING, by_itself=True)
                    raise BadArgument.of([flaw], suggestions=ways)
                self._directory.find(agent).profile.complete(replace(ask(spec.prompt), settings=settings or None))
            except MusterError as error:
                errors.append(error)
        if len(errors) == len(fitting):
            raise errors[0]

    def _require_folder(self, cwd: str) -> None:
        parts = PurePosixPath(cwd).parts
        if Path(cwd).is_absolute() or ".." in parts:
            raise BadArgument(f"must be a folder below the project, not {cwd!r}", argument="cwd")
        if not (self._settings.folder / cwd).is_dir():
            raise NotFound(
                f"folder {cwd!r} not found in the project",
                suggestions=(ArgumentAdvice("cwd", words="{} must name one"),),
            )

    async def _require_open(self) -> None:
        pool = await self._store.pool.pool()
        if pool is not None and pool.draining:
            raise Conflict("the pool was drained and takes no new tasks", suggestions=("muster pool start",))
        await self.require_room()

    async def require_room(self, number: int = 1) -> None:
        """Raise when so many more tasks cannot wait."""
        pending, most = (await self.counts())[TaskState.PENDING], self._settings.pool.max_pending
        if pending + number > most:
            raise Conflict(
                f"{pending:,} tasks are pending already, and at most {most:,} may be (max_pending)",
                suggestions=("muster task list",),
            )

    async def _require_payable(self, spec: TaskSpec) -> None:
        refusal = (await self._funds()).refusal(self.most(spec))
        if refusal:
            raise BudgetExhausted(refusal, level=POOL_LEVEL, suggestions=("muster pool start --budget USD",))

    async def _set_cap(self) -> None:
        """Give the pool the budget of the settings, unless it has one."""
        budget = self._settings.pool.budget_usd
        if budget is not None and (await self._funds()).cap is None:
            await self._store.pool.cap_pool(from_usd(budget))

    def _options(self, spec: TaskSpec, terms: TaskTerms) -> RunOptions:
        most = self.most(spec)
        budget = str(most / 1_000_000) if most else None
        called: dict[str, Any] = {name: value for name, value in terms.items() if name != "continues"}
        return self._runs.options(budget_usd=budget, concurrency=1, **called)

    async def _budgets(self, run: RunId, started_by: RunId | None) -> Budgets:
        own = Budgets(
            lineage=lineage_level(run), above=(POOL_LEVEL,), day_cap=self._settings.day_cap, user=self._runs.user_budget
        )
        if started_by is None:
            return own
        theirs = await self._engine.budgets_of(await self._runs.get(started_by))
        return replace(own, above=tuple(dict.fromkeys((*own.above, *theirs.above))), user=theirs.user)


async def _require_schema(spec: TaskSpec) -> None:
    """Raise BadArgument for a schema that is none or too large, found in a thread, since that may take a while."""
    if spec.schema is not None and (wrong := await in_schema_thread(bounded_schema_flaw, spec.schema)):
        raise BadArgument(wrong, argument="schema")


def _require_retryable(run: Run) -> None:
    if task_state(run) not in (TaskState.FAILED, TaskState.CANCELED):
        raise Conflict(
            f"task {task_title(run)} is {task_state(run)}; only a failed or canceled task can be tried again"
        )

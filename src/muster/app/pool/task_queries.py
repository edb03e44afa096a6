"""Tasks as they stand: found by reference, listed, counted, with what each has come to so far."""

import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.app.base.backend import Backend
from muster.app.kinds import word_of
from muster.app.pool.slots import SlotDirectory, assigned_slot
from muster.app.runs.runs import Runs
from muster.domain.call import Reply
from muster.domain.canonical import Json, JsonObject
from muster.domain.entry import Entry
from muster.domain.errors import BadArgument, NotFound
from muster.domain.ids import RunId
from muster.domain.kind import require_kind
from muster.domain.money import NOTHING, Microdollars, from_usd
from muster.domain.run import TERMINAL, BudgetedCost, Run, RunState
from muster.domain.task import TaskState
from muster.pool.handover import Handover, beside
from muster.pool.kind import TASK
from muster.pool.order import MAX_REJECTIONS
from muster.pool.permissions import PermissionQuestion, continued_key, question_of
from muster.pool.scheduling import PoolFunds
from muster.pool.setup import told_key
from muster.pool.tasks import (
    REVIEW,
    TREE_KEY,
    AssignedSlot,
    SlotProfile,
    TaskSpec,
    read_task,
    run_states,
    task_id,
    task_state,
    task_title,
)
from muster.pool.workload import saved_key, work_key
from muster.store.base import POOL_LEVEL
from muster.text.secrets.redaction import redact
from muster.text.words import choice_error

PAGE = 500  # tasks that are read at once
MAX_UNFINISHED = 1_000_000
MAX_REVIEWS = 2 * MAX_REJECTIONS  # of one task


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as it stands."""

    run: Run  # the newest of its runs
    spec: TaskSpec
    slot: AssignedSlot | None = None  # that it was given
    reply: Reply | None = None  # of its last round
    rounds: int = 0  # of work that were begun
    rejections: int = 0  # by persons, also one that nobody has taken up yet
    tree: Mapping[str, Any] = field(default_factory=dict)  # the working tree that was made for it
    saved: Mapping[str, Any] = field(default_factory=dict)  # what its branch held after its last round
    permission: PermissionQuestion | None = None  # what it waits for a decision on
    refusal: str = ""  # why its budget or that of the pool does not pay for it
    remedy: str = ""  # the command that lets it go on then
    setup: str = ""  # the command that prepares its working tree just now

    @property
    def id(self) -> str:
        """The id of the task, whichever run it is now."""
        return task_id(self.run)

    @property
    def handed_over(self) -> Sequence[Handover]:
        """What each of the tasks on which it depends handed over to it."""
        return () if self.slot is None else self.slot.after

    @property
    def branch(self) -> str | None:
        """The branch that holds its work."""
        return self.saved.get("branch") or self.tree.get("branch")

    @property
    def base(self) -> str | None:
        """The commit at which its branch began."""
        return self.saved.get("base") or self.tree.get("base")

    @property
    def beside(self) -> tuple[str, ...]:
        """What it left beside its branch, each with where it is."""
        return tuple(beside(self.saved, str(self.tree.get("path", ""))))

    @property
    def merged_into(self) -> str | None:
        """The branch of the user's into which its work was merged."""
        merged = self.saved.get("merged") or {}
        return merged.get("into") if merged.get("head") == self.saved.get("head") else None

    @property
    def output(self) -> str | None:
        """What its agent said last, as it is shown: without secrets. `reply` has it as it was said."""
        return None if self.reply is None else redact(self.reply.text).text

    @property
    def summary(self) -> str | None:
        """What its branch held after its last round, in one line as it is shown."""
        found = self.saved.get("summary")
        return None if found is None else redact(str(found)).text

    @property
    def cost(self) -> BudgetedCost:
        """What all its runs have cost, and may cost."""
        return self.run.cost

    @property
    def is_rejected_for_good(self) -> bool:
        """Return whether it was rejected as often as it allows, so that it is not done again."""
        return self.rejections >= self.spec.max_rejections

    @property
    def title(self) -> str:
        """Its id, with its name where it has one."""
        return task_title(self.run)

    @property
    def state(self) -> TaskState:
        """Where it stands."""
        return task_state(self.run)


class TaskQueries:
    """Reads the tasks of the pool, and changes nothing."""

    def __init__(self, backend: Backend, runs: Runs) -> None:
        self._settings, self._store, self._runs = backend.settings, backend.store, runs

    async def get(self, reference: str) -> Task:
        """Return a task by its id, the beginning of one, its name, or `last`."""
        return await self.of(await self.find(reference))

    async def of(self, run: Run) -> Task:
        """Return the task of a run, with what it has come to so far."""
        spec, slot = read_task(run.spec), await assigned_slot(self._store.journal, run.id)
        rounds = await self._rounds(run.id)
        waits = task_state(run) is TaskState.PENDING_REVIEW
        refusal, remedy = await self._refusal(run) if task_state(run) is TaskState.PENDING else ("", "")
        return Task(
            run=run,
            spec=spec,
            slot=slot,
            reply=next((entry.reply for entry in reversed(rounds) if entry.reply is not None), None),
            rounds=len(rounds),
            rejections=await self._rejections(run, len(rounds)) if spec.review else 0,
            tree=await self._told(run.id, TREE_KEY),
            saved=await self._saved(run, len(rounds)),
            permission=question_of(rounds[-1].key, rounds[-1].error) if rounds and waits else None,
            refusal=refusal,
            remedy=remedy if refusal else "",
            setup="" if slot is None or rounds else await self._setup(run, slot),
        )

    async def list(
        self,
        states: Sequence[TaskState | str] = (),
        *,
        tag: str | None = None,
        slot: str | None = None,
        limit: int = 100,
    ) -> Sequence[Task]:
        """Return the newest tasks: of some states, with a tag, given to a slot."""
        wanted = [_state(state) for state in states] or list(TaskState)
        profile = None if slot is None else self.slot(slot)
        found: list[Task] = []
        async for run in self.newest():
            if task_state(run) not in wanted or (tag is not None and tag not in run.tags):
                continue
            task = await self.of(run)
            if profile is None or (task.slot is not None and task.slot.id == profile.id):
                found.append(task)
            if len(found) >= limit:
                break
        return found

    async def unfinished(self) -> Sequence[Run]:
        """Return the runs of all tasks that are not over, the oldest first."""
        return await self._store.pool.tasks([state for state in RunState if state not in TERMINAL], MAX_UNFINISHED)

    async def counts(self) -> Mapping[TaskState, int]:
        """Return how many tasks are in each state."""
        numbers = await self._store.pool.count_tasks()
        return {state: sum(numbers.get(one, 0) for one in run_states(state)) for state in TaskState}

    async def newest(self) -> AsyncIterator[Run]:
        """Yield the newest run of every task, the newest first."""
        last: Run | None = None
        while page := await self._store.pool.newest_tasks(last, PAGE):
            for run in page:
                if self._runs.sees(run):
                    yield run
            last = page[-1]

    def slot(self, name: str) -> SlotProfile:
        """Return a slot by its name or id."""
        return SlotDirectory(self._settings).find(name)

    def most(self, spec: TaskSpec) -> Microdollars:
        """Return what a task may cost: its own budget, else the default of the pool, else nothing is known."""
        usual = self._settings.pool.default_task_budget_usd
        budget = spec.budget_usd if spec.budget_usd is not None else usual
        return NOTHING if budget is None else from_usd(budget, "budget_usd")

    def most_of(self, run: Run) -> Microdollars:
        """Return what the task of a run may cost: like `most`, and a new total that a retry was given."""
        most = self.most(read_task(run.spec))
        return run.cap if most and run.cap is not None else most

    async def find(self, reference: str) -> Run:
        """Return the newest run of a task."""
        try:
            run = await self._runs.find(await self._last() if reference == "last" else reference)
        except NotFound as error:
            ways = error.suggestions if reference == "last" else ("muster task list",)
            raise NotFound(error.message.replace("run ", "task ", 1), suggestions=ways, given=error.given) from None
        require_kind(run, TASK, word_of(run.workload))
        return await self._runs.end_of_lineage(run)

    async def _last(self) -> str:
        async for run in self.newest():
            return run.id
        raise NotFound("this store has no tasks yet", suggestions=("muster task submit PROMPT --agent AGENT",))

    async def _refusal(self, run: Run) -> tuple[str, str]:
        """Return why a pending task is not paid for, empty when it is, and the command that lets it go on."""
        return (await self._funds()).refusal(self.most_of(run)), "muster pool start --budget USD"

    async def _rounds(self, run: RunId) -> Sequence[Entry]:
        """Return the last call of every round."""
        found: list[Entry] = []
        while (entry := await self._last_call(run, work_key(len(found)))) is not None:
            found.append(entry)
        return found

    async def _last_call(self, run: RunId, key: str) -> Entry | None:
        """Return the call of a round; when that ended with questions, the call that followed the last of them."""
        last = None
        for number in itertools.count():
            entry = await self._store.journal.find(run, continued_key(key, number))
            if entry is None:
                return last
            last = entry
            if question_of(entry.key, entry.error) is None:
                return last
        return last

    async def _rejections(self, run: Run, rounds: int) -> int:
        """Return how often persons rejected a task; one that was imported has its rounds, but not what was sent."""
        reviews = await self._store.signals.read(run.lineage_level, REVIEW, limit=MAX_REVIEWS)
        decided: Sequence[Any] = [review.payload for review in reviews]
        return max(rounds - 1, sum(not one["approved"] for one in decided))

    async def _next_review(self, reference: str) -> int:
        """Return the number of the next review; it is read before the task, so that one between them is noticed."""
        address = (await self.find(reference)).lineage_level
        untaken = await self._store.signals.untaken(address, REVIEW)
        reviews = untaken or await self._store.signals.read(address, REVIEW, limit=MAX_REVIEWS)
        return (reviews[-1].seq + (not untaken)) if reviews else 1

    async def _saved(self, run: Run, number: int) -> Mapping[str, Json]:
        """Return what the branch of a task held when it was last saved, in whichever round or run that was."""
        kept = await self._store.pool.kept_work(run.lineage_level) if run.started_at or run.origin else {}
        if kept.get("run") == run.id:  # after this run had ended, so nothing is newer
            return kept
        rounds = [saved_key(round_) for round_ in reversed(range(max(1, number)))]
        told = await self._told(run.id, *(key for one in rounds for key in (one, f"{one}/{run.id}")))
        return told if not kept else kept if not told else {**told, **_kept_with(kept, told)}

    async def _setup(self, run: Run, slot: AssignedSlot) -> str:
        """Return the command that prepares the working tree of a task just now; empty when none does."""
        if run.state is not RunState.RUNNING:
            return ""
        for number in range(len(slot.setup), 0, -1):
            if (told := await self._store.journal.find(run.id, told_key(number))) is not None:
                return str(told.value["command"])
        return ""

    async def _told(self, run: RunId, *keys: str) -> Mapping[str, Json]:
        """Return the value that is remembered under the first of some keys that has one."""
        for key in keys:
            entry = await self._store.journal.find(run, key)
            if entry is not None and entry.value is not None:
                found: Mapping[str, Json] = entry.value
                return found
        return {}

    async def _funds(self) -> PoolFunds:
        balance = (await self._store.runs.balances([POOL_LEVEL])).get(POOL_LEVEL)
        return PoolFunds() if balance is None else PoolFunds(cap=balance.cap, settled=balance.settled)


def _kept_with(kept: Mapping[str, Any], told: Mapping[str, Any]) -> JsonObject:
    """Return what a retry does not make forgotten: where work was merged, what changed in the user's repository."""
    earlier, later = kept.get("repository_changes", ()), told.get("repository_changes", ())
    changes = [*earlier, *(change for change in later if change not in earlier)]
    return {"repository_changes": changes, "merged": kept.get("merged")}


def _state(name: TaskState | str) -> TaskState:
    if name not in list(TaskState):
        raise BadArgument(choice_error(tuple(TaskState), name), argument="state")
    return TaskState(name)

"""What a task may still cost: how much its next call reserves, and whether another round is worth starting."""

from muster.app.base.backend import Backend
from muster.app.pool.slots import assigned_slot
from muster.app.pool.task_queries import TaskQueries
from muster.app.runs.runs import Runs
from muster.domain.advice import ArgumentAdvice
from muster.domain.call import ask
from muster.domain.errors import BadConfiguration, BudgetExhausted
from muster.domain.money import Microdollars, show_usd
from muster.domain.run import Run, RunState
from muster.pool.tasks import TaskSpec, read_task, task_id, task_title

MIN_SHARE = 10  # a call is not worth starting with less than this part of what it may usually cost: a tenth


class TaskBudgets(TaskQueries):
    """Divides the budget of a task among its calls."""

    def __init__(self, backend: Backend, runs: Runs) -> None:
        super().__init__(backend, runs)
        self._directory = backend.directory

    def call_limit(self, agent: str, spec: TaskSpec, most: Microdollars) -> float | None:
        """Return what one call of a task may cost, in dollars, where its agent would reserve more than the task has.

        Else a call reserves what the agent says: a crash books that as uncertain, and the task must be able to go on.
        """
        found = self._directory.find(agent)  # raises for one that is gone, whatever the task may cost
        if not most or "budget_usd" not in found.profile.settable:
            return None
        usual = self._usual(agent, spec)
        return most / 1_000_000 if usual is None or usual > most else None

    def next_limit(self, agent: str, run: Run) -> float | None:
        """Return what the next call of a task may cost, in dollars, where its slot recorded another limit.

        It is less after calls were paid or became uncertain, if the agent keeps to it, and more after a retry has
        raised the budget. None: the recorded limit holds, or too little is left, and then the call is refused.
        """
        spec = read_task(run.spec)
        recorded = self._recorded(agent, spec)
        if recorded is None or "budget_usd" not in self._directory.find(agent).profile.settable:
            return None
        limit = _least(self._left(run, self.most_of(run)), self._usual(agent, spec))
        lowered = limit < recorded
        if limit == recorded or (lowered and (limit < _worth(recorded) or not self._keeps_budget(agent))):
            return None
        return limit / 1_000_000

    async def require_next_call(self, run: Run, total: Microdollars | None = None) -> None:
        """Raise BudgetExhausted when a task has too little left for the call that is next, if one is."""
        rounds = await self._rounds(run.id)
        if not rounds or rounds[-1].reply is None:
            await self.require_round(run, total)

    async def shortfall(self, run: Run) -> BudgetExhausted | None:
        """Return why a task that was interrupted cannot go on; money that a crash left uncertain fails no task."""
        if run.state is not RunState.INTERRUPTED:
            return None
        try:
            await self.require_next_call(run)
        except BudgetExhausted as error:
            return BudgetExhausted(error.message, level=error.level, suggestions=(_retry(run),))
        except BadConfiguration:  # its agent is gone, which is told when it is tried
            return None
        return None

    async def _refusal(self, run: Run) -> tuple[str, str]:
        """Return why a pending task is not paid for, empty when it is, and the command that lets it go on."""
        shortfall = await self.shortfall(run)
        if shortfall is None:
            return await super()._refusal(run)
        return shortfall.message, _retry(run)

    async def require_round(self, run: Run, total: Microdollars | None) -> None:
        """Raise BudgetExhausted when a task has too little left for another call of its agent."""
        spec, slot = read_task(run.spec), await assigned_slot(self._store.journal, run.id)
        agent = slot.agent if slot is not None else spec.agent
        recorded = self._recorded(agent, spec) if agent else None
        if recorded is None or agent is None:
            return
        needed = _worth(recorded) if self._keeps_budget(agent) else recorded
        most = total or self.most_of(run)
        left = self._left(run, most)
        if left < needed:
            spent = most - left
            raise BudgetExhausted(
                f"task {task_title(run)} has {show_usd(max(left, 0))} of its budget of {show_usd(most)} left, and "
                f"another call of agent {agent!r} needs at least {show_usd(needed)}",
                level=run.lineage_level,
                suggestions=(
                    ArgumentAdvice("budget", words=f"set a new total with {{}}, at least {show_usd(spent + needed)}"),
                ),
            )

    def _recorded(self, agent: str, spec: TaskSpec) -> Microdollars | None:
        """Return what the first call of a task reserves; None when nobody knows what it may cost."""
        most, usual = self.most(spec), self._usual(agent, spec)
        if not most or "budget_usd" not in self._directory.find(agent).profile.settable:
            return usual if most else None
        return _least(most, usual)

    def _keeps_budget(self, agent: str) -> bool:
        return self._directory.find(agent).profile.keeps_budget

    def _left(self, run: Run, most: Microdollars) -> Microdollars:
        """Return what is left of a budget; what a dead driver reserved will be uncertain, and counts."""
        return Microdollars(most - run.total.settled - run.total.reserved)

    def _usual(self, agent: str, spec: TaskSpec) -> Microdollars | None:
        """Return what a call of an agent reserves by itself; None when it has no limit of its own."""
        found = self._directory.find(agent)
        try:
            return found.quote(found.profile.complete(ask(spec.prompt))).most
        except BadConfiguration:
            return None


def _retry(run: Run) -> str:
    return f"muster task retry {task_id(run)} --budget USD"


def _least(amount: Microdollars, other: Microdollars | None) -> Microdollars:
    return amount if other is None else min(amount, other)


def _worth(usual: Microdollars) -> Microdollars:
    """Return the least amount with which a call that usually may cost another is worth starting."""
    return Microdollars(max(1, usual // MIN_SHARE))

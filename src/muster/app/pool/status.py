"""The pool as it stands: its slots, how many tasks are in which state, its budget and who drives it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from muster.app.pool.task_queries import Task
from muster.domain.money import Microdollars
from muster.domain.run import BudgetedCost, Driver
from muster.domain.task import TaskState
from muster.pool.tasks import SlotProfile
from muster.store.base import SlotRecord, SlotStanding


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A slot as it stands."""

    profile: SlotProfile
    record: SlotRecord
    task: Task | None = None  # that it works on
    session: str | None = None  # of its agent, in the last of its tasks that has one
    cost: BudgetedCost = field(default_factory=BudgetedCost)  # of all its tasks

    @property
    def state(self) -> str:
        """Return whether it is idle, busy, stopped or errored."""
        if self.record.standing in (SlotStanding.STOPPED, SlotStanding.ERRORED):
            return str(self.record.standing)
        return "idle" if self.task is None else "busy"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """The pool at a glance."""

    slots: tuple[Slot, ...]
    tasks: Mapping[TaskState, int]
    cost: BudgetedCost  # of all tasks since the first, those that were deleted too
    draining: bool
    driver: Driver | None  # a living one

    @property
    def unlisted(self) -> Microdollars:
        """What tasks have cost that belong to no slot any more: deleted ones, and those of slots that were removed."""
        return Microdollars(max(0, self.cost.total - sum(slot.cost.total for slot in self.slots)))


StatusSource = Callable[[], Awaitable[PoolStatus]]

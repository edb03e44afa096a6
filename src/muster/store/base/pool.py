"""The pool of a store: its slots and what they work on, its tasks, its budget, and the context that slots share."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from muster.domain.canonical import Json
from muster.domain.entry import NewSignal
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import BudgetedCost, Driver, Run, RunState, Spent

POOL = "default"  # the name of the only pool of a store
POOL_LEVEL = f"pool:{POOL}"  # the budget that all of its tasks count under


class SlotStanding(StrEnum):
    """Whether a slot takes tasks."""

    ACTIVE = "active"
    LEAVING = "leaving"  # it goes when its task ends
    STOPPED = "stopped"  # the pool was drained
    ERRORED = "errored"  # its agent could not be started, again and again


REACHABLE = frozenset({SlotStanding.ACTIVE, SlotStanding.LEAVING})  # whose agents get messages


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRecord:
    """A slot as it is stored."""

    name: str
    place: int  # in the order of slots
    standing: SlotStanding = SlotStanding.ACTIVE
    run: RunId | None = None  # the task that it was given
    failures: int = 0  # to start its agent, one after the other
    error: str = ""
    completed: int = 0  # tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRecord:
    """The pool as it is stored."""

    created_at: float
    drain_until: float | None = None  # new work is refused, and by then the last task is let go of
    driver: Driver | None = None
    driven_until: float = 0.0

    @property
    def draining(self) -> bool:
        """Return whether new work is refused."""
        return self.drain_until is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotOutcome:
    """How the last task of a slot ended."""

    slot: str
    completed: bool = False
    failures: int = 0  # to start its agent, one after the other
    error: str = ""
    errored: bool = False  # it takes no more tasks


class PoolTable(Protocol):
    """The pool of this store; creating it twice keeps the first.

    Written by whoever drives it and by the use cases. Of several who begin to drive it (`drive_pool`), or who give
    a slot a task (`assign`), at once, one wins; whoever drives says so again and again, and freeing a slot of
    another task changes nothing. Of a task that was resumed or tried again only the newest run is listed and
    counted.
    """

    async def slots(self) -> Sequence[SlotRecord]:
        """Return all slots in their order."""

    def add_slot(self, slot: SlotRecord) -> Awaitable[None]:
        """Store a slot; one with this name stays as it is."""

    def update_slot(self, slot: SlotRecord) -> Awaitable[None]:
        """Write whether a slot takes tasks, its failures and how many tasks it completed; not its task."""

    def remove_slot(self, name: str) -> Awaitable[bool]:
        """Forget a slot that has no task; False when it has one."""

    def message_slots(self, messages: Mapping[str, NewSignal]) -> Awaitable[Sequence[str]]:
        """Send its message to each slot that exists and is not stopped, to all or none; return their names."""

    def assign(self, slot: str, run: RunId) -> Awaitable[bool]:
        """Give a task to a slot that is active and has none; False when it is not free or another slot has the task."""

    def free(self, slot: str, run: RunId) -> Awaitable[None]:
        """Take a task from a slot."""

    def note_outcome(self, outcome: SlotOutcome) -> Awaitable[None]:
        """Write how the last task of a slot ended; whether it takes tasks changes only when it is errored by that."""

    async def tasks(self, states: Iterable[RunState], limit: int = 10_000) -> Sequence[Run]:
        """Return the runs in some states, the oldest first."""

    async def newest_tasks(self, before: Run | None = None, limit: int = 100) -> Sequence[Run]:
        """Return the newest tasks that were created before another one, the newest first."""

    async def tasks_of_slot(self, slot: str, limit: int = 10) -> Sequence[RunId]:
        """Return the newest runs of tasks that a slot was the last to have, the newest first."""

    async def count_tasks(self) -> Mapping[RunState, int]:
        """Return how many tasks are in each state."""

    def keep_work(self, lineage: str, work: Mapping[str, Json]) -> Awaitable[None]:
        """Write what the branch of a task holds, found when no driver could write it into the journal of its run."""

    async def kept_work(self, lineage: str) -> Mapping[str, Json]:
        """Return what was last written by `keep_work` for a task; nothing when nothing was."""

    async def pool(self) -> PoolRecord | None:
        """Return the pool; None when no task was ever submitted."""

    def create_pool(self, at: float) -> Awaitable[None]:
        """Store the pool with a budget that has no cap yet."""

    def drain(self, until: float | None) -> Awaitable[None]:
        """Write that new work is refused, and until when tasks may go on; None: that it is taken again."""

    def drive_pool(self, driver: Driver, until: float, *, instead: Driver) -> Awaitable[bool]:
        """Let a driver have the pool until a time; False when somebody else has it than the one it comes after.

        A driver that takes it anew ends the draining; one that keeps it does not.
        """

    def leave_pool(self, driver: Driver) -> Awaitable[None]:
        """Write that a driver drives the pool no more; of another one nothing changes."""

    def cap_pool(self, cap: Microdollars) -> Awaitable[None]:
        """Set the cap of the pool's budget."""

    async def pool_cost(self) -> BudgetedCost:
        """Return what all tasks have cost, those that were deleted too, and may cost."""

    async def slot_costs(self) -> Mapping[str, Spent]:
        """Return what the tasks of each slot have cost, by its name."""

    async def context(self) -> Mapping[str, str]:
        """Return all texts, in the order of their names."""

    def set_context(self, name: str, value: str, at: float) -> Awaitable[None]:
        """Set a text."""

    def delete_context(self, name: str) -> Awaitable[bool]:
        """Forget a text; False when there is none."""

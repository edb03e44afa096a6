"""Sums over everything in a store, for metrics, and what was spent when, by whom and under which budgets.

Tuples, because every command loads this and dataclasses take longer to define.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from muster.domain.batch import BatchState
from muster.domain.money import Microdollars
from muster.domain.run import CallCounts, Run, RunState, Spent
from muster.store.base.pool import SlotStanding


class RunGroup(NamedTuple):
    """What runs are counted by."""

    workload: str
    state: RunState


class SlotGroup(NamedTuple):
    """What slots are counted by."""

    standing: SlotStanding
    busy: bool  # it has a task


class RunTotal(NamedTuple):
    """How many runs there are of a group, and how their calls stand."""

    runs: int
    calls: CallCounts


class StoreTotals(NamedTuple):
    """What a store holds in all; the same for every process that asks, and after a restart."""

    runs: Mapping[RunGroup, RunTotal]
    batches: Mapping[BatchState, int]
    slots: Mapping[SlotGroup, int]
    spent: Spent  # by all calls ever made, also those of deleted runs


class LevelTotal(NamedTuple):
    """One level of the ledger: what was spent under it, and its cap; None: no limit."""

    id: str
    spent: Spent
    cap: Microdollars | None


class AgentTotal(NamedTuple):
    """What the ended attempts of calls to one agent cost; those whose run was deleted are not among them."""

    agent: str
    attempts: int
    spent: Spent


class StoreSpending(NamedTuple):
    """What was spent since a day began."""

    levels: Sequence[LevelTotal]  # of the days since then; of users on all days, of the pool and of servers
    agents: Sequence[AgentTotal]
    runs: Sequence[Run]  # the newest of the dearest lineages, if it was created since then; without children


class TotalsReader(Protocol):
    """Sums a store up, and says what was spent in it.

    Both may take a while where there is much, and leave the event loop free meanwhile.
    """

    async def read(self) -> StoreTotals:
        """Return the totals as they stand, from one row a run, batch, slot and day at most."""

    async def spent_since(self, at: float, runs: int) -> StoreSpending:
        """Return what was spent since the beginning of a day (UTC), with at most so many runs."""

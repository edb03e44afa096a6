"""Sums over everything in a store, for metrics: read in a few queries that touch no row of the journal.

Tuples, because every command loads this and dataclasses take longer to define.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from muster.domain.batch import BatchState
from muster.domain.run import CallCounts, RunState, Spent
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


class TotalsReader(Protocol):
    """Sums a store up. Called whenever metrics are scraped: it reads one row a run, batch, slot and day at most.

    It may take a while where there are many, and leaves the event loop free meanwhile.
    """

    async def read(self) -> StoreTotals:
        """Return the totals as they stand."""

"""What every store must say of itself in all: runs, calls, money, batches and slots, counted."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

from muster.domain.batch import BatchState
from muster.domain.budget import Level, lineage_level
from muster.domain.entry import Failed
from muster.domain.ids import RunId
from muster.domain.run import RunState, Spent
from muster.store.base import RunGroup, RunRelease, SlotGroup, SlotRecord, SlotStanding, Store, StoreTotals
from muster.testing.stores.batches import planning
from muster.testing.stores.values import DAY, NOW, Check, driven, new_run, opening, replied, settling


async def says_nothing_of_an_empty_store(store: Store) -> None:
    """An empty store holds nothing."""
    assert await store.totals.read() == StoreTotals(runs={}, batches={}, slots={}, spent=Spent())


async def counts_runs_and_their_calls(store: Store) -> None:
    """Runs are counted by workload and state, their calls by how they stand."""
    run, claim = await driven(store)
    for key, outcome in (("a", replied()), ("b", replied()), ("c", Failed(error={}, uncertain=True, gives_up=True))):
        opened = opening(run, claim.epoch, key)
        await store.journal.open(opened)
        await store.journal.settle(settling(opened, outcome))
    await store.runs.create(new_run("run2"))
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.COMPLETED, reason="done", at=NOW))
    found = (await store.totals.read()).runs
    assert {group: total.runs for group, total in found.items()} == {
        RunGroup("w", RunState.COMPLETED): 1,
        RunGroup("w", RunState.QUEUED): 1,
    }
    calls = found[RunGroup("w", RunState.COMPLETED)].calls
    assert (calls.done, calls.failed, calls.uncertain, calls.reused) == (2, 1, 1, 0)


async def adds_up_the_money_of_all_days(store: Store) -> None:
    """Money is that of all calls, by lane, also when their run is gone."""
    run, claim = await driven(store)
    paid, lost, under_way = (opening(run, claim.epoch, key) for key in ("paid", "lost", "under way"))
    for opened in (paid, lost, under_way):
        await store.journal.open(opened)
    await store.journal.settle(settling(paid, replied(cost=40)))
    await store.journal.settle(settling(lost, Failed(error={}, uncertain=True, gives_up=True)))
    spent = (await store.totals.read()).spent
    assert (spent.reserved, spent.billed, spent.imputed, spent.uncertain) == (100, 40, 0, 100)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.FAILED, reason="failed", at=NOW))
    await store.runs.delete(run, NOW)
    after = await store.totals.read()
    assert after.runs == {}
    assert after.spent.billed == 40


async def counts_batches_and_slots(store: Store) -> None:
    """Batches are counted by state, slots by whether they take tasks and have one."""
    run, claim = await driven(store)
    for name in ("b1", "b2"):
        await store.batches.plan(planning(run, claim.epoch, name=name))
    for place, name in enumerate(("one", "two", "three")):
        await store.pool.add_slot(SlotRecord(name=name, place=place))
    await store.pool.assign("two", RunId(run))
    await store.pool.update_slot(SlotRecord(name="three", place=2, standing=SlotStanding.STOPPED))
    found = await store.totals.read()
    assert found.batches == {BatchState.PLANNED: 2}
    assert found.slots == {
        SlotGroup(SlotStanding.ACTIVE, False): 1,
        SlotGroup(SlotStanding.ACTIVE, True): 1,
        SlotGroup(SlotStanding.STOPPED, False): 1,
    }


async def tells_what_was_spent_and_by_whom(store: Store) -> None:
    """Since a day began: what its level holds, what each agent cost, and runs by what their lineages cost."""
    (dear, first), (cheap, second) = await driven(store, "dear"), await driven(store, "cheap")
    for run, claim, key, outcome in (
        (dear, first, "a", replied(cost=40)),
        (dear, first, "b", Failed(error={}, uncertain=True, gives_up=True)),
        (cheap, second, "a", replied(cost=7)),
    ):
        opened = opening(run, claim.epoch, key)
        day, own = opened.levels
        opened = opened._replace(levels=(day, Level(id=lineage_level(run), cap=None), own))
        await store.journal.open(opened)
        await store.journal.settle(settling(opened, outcome))
    await store.runs.create(new_run("free"))
    began = NOW - NOW % 86_400
    found = await store.totals.spent_since(began, 10)
    assert [(one.id, one.spent.billed, one.spent.uncertain) for one in found.levels] == [(DAY.id, 47, 100)]
    assert [(one.agent, one.attempts, one.spent.settled) for one in found.agents] == [("sim/echo", 3, 147)]
    assert [(run.id, run.cost.total) for run in found.runs] == [("dear", 140), ("cheap", 7)]
    assert [run.id for run in (await store.totals.spent_since(began, 1)).runs] == ["dear"]
    later = await store.totals.spent_since(began + 86_400, 10)
    assert (later.levels, later.agents, later.runs) == ([], [], [])


CHECKS: tuple[Check, ...] = (
    says_nothing_of_an_empty_store,
    counts_runs_and_their_calls,
    adds_up_the_money_of_all_days,
    counts_batches_and_slots,
    tells_what_was_spent_and_by_whom,
)

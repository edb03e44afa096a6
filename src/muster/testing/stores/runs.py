"""What every store must do about whole runs: made, found, forgotten, moved, reviewed, and named as baselines."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

from dataclasses import replace

from muster.domain.budget import Budgets, Level, lineage_level, part_level, run_level
from muster.domain.entry import (
    Entry,
)
from muster.domain.errors import BadArgument, Conflict, NotFound
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.review import Opinion, Review
from muster.domain.rules import CURRENT_RULES
from muster.domain.run import Origin, Reuse, RunState
from muster.store.base import Baseline, RunRelease, Store
from muster.testing.stores.values import (
    DAY,
    NOW,
    SECRET,
    Check,
    driven,
    new_run,
    opening,
    raises,
    replied,
    settling,
    stored,
)


async def remembers_a_run_as_it_was_given(store: Store) -> None:
    """A run comes back with everything that it was created with."""
    new = new_run("run1", cap=500, name="nightly", tags=("a", "b"), seed=7, timeout=9.5, concurrency=3, submitted=True)
    new = replace(new, rules=1)
    await store.runs.create(new)
    run = await stored(store, new.id)
    assert (run.state, run.name, run.tags, run.seed) == (RunState.QUEUED, "nightly", ("a", "b"), 7)
    assert (run.spec, run.cap, run.timeout, run.concurrency) == ({"n": 1}, 500, 9.5, 3)
    assert run.submitted
    assert run.rules == 1
    assert run.lease.driver is None


async def finds_runs_by_what_people_write(store: Store) -> None:
    """A run is found by its id, the beginning of it, or its name, the newest first."""
    for i, name in enumerate(("abc1", "abc2", "xyz1")):
        await store.runs.create(replace(new_run(name, name="nightly"), created_at=NOW + i))
    assert [run.id for run in await store.runs.match("abc")] == ["abc2", "abc1"]
    assert [run.id for run in await store.runs.match("xyz1")] == ["xyz1"]
    assert [run.id for run in await store.runs.match("nightly")] == ["xyz1", "abc2", "abc1"]
    assert await store.runs.match("nobody") == []
    assert await store.runs.match("%") == []
    assert [run.id for run in await store.runs.select(limit=2)] == ["xyz1", "abc2"]
    assert await store.runs.select([RunState.RUNNING]) == []


async def starts_a_child_once(store: Store) -> None:
    """A second child under one key is the first one again."""
    parent = await store.runs.create(new_run("run1"))
    child = await store.runs.create(replace(new_run("run2"), parent=parent.id, parent_key="c"))
    again = await store.runs.create(replace(new_run("run3"), parent=parent.id, parent_key="c"))
    assert again.id == child.id == "run2"
    newest = await store.journal.newest_child(parent.id, "c")
    assert newest is not None
    assert newest.id == "run2"
    assert [run.id for run in await store.archive.children(parent.id)] == ["run2"]


async def forgets_a_run_with_everything_in_it(store: Store) -> None:
    """Deleting forgets a run, except while it is driven or an unfinished run comes from it."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await raises(Conflict, store.runs.delete(run, NOW))
    await store.journal.settle(settling(opened, replied()))
    ending = RunRelease(state=RunState.FAILED, reason="x", at=NOW, error={"message": "m"})
    await store.leases.release(run, claim.epoch, ending)
    heir = replace(new_run("run2"), origin=Origin(run=run, reuse=Reuse.REPLIES))
    await store.runs.create(heir)
    await raises(Conflict, store.runs.delete(run, NOW))
    await store.runs.cancel(heir.id, NOW)
    await raises(Conflict, store.runs.delete(run, NOW))  # it can still be resumed, with the replies of the first
    await store.runs.delete(heir.id, NOW)
    await store.runs.delete(run, NOW)
    assert await store.runs.get(run) is None
    assert await store.journal.find(run, "k") is None
    assert await store.events.read(run, 0, 10) == []
    await raises(NotFound, store.runs.delete(run, NOW))


async def forgets_the_budgets_of_a_lineage_with_its_last_run(store: Store) -> None:
    """Budgets of parts stay while a run of their lineage is there; those of days stay for ever."""
    run, claim = await driven(store)
    lineage = (await stored(store, run)).lineage_level
    part = Level(id=part_level(lineage, "a member"), cap=Microdollars(1000))
    neighbour = Level(id=part_level(f"{lineage}0", "a member"), cap=Microdollars(1000))
    opened = opening(run, claim.epoch, "k")
    opened = opened._replace(levels=(*opened.levels, part, neighbour))
    await store.journal.open(opened)
    await store.journal.settle(settling(opened, replied()))
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.FAILED, reason="x", at=NOW))
    heir = replace(new_run("run2"), origin=Origin(run=run, reuse=Reuse.REPLIES), budgets=Budgets(lineage=lineage))
    await store.runs.create(heir)
    all_levels = [DAY.id, run_level(run), run_level(heir.id), lineage, part.id, neighbour.id]
    await store.runs.delete(heir.id, NOW)
    assert set(await store.runs.balances(all_levels)) == {*all_levels} - {run_level(heir.id)}
    await store.runs.delete(run, NOW)
    assert set(await store.runs.balances(all_levels)) == {DAY.id, neighbour.id}


async def keeps_the_budgets_of_a_deleted_run_for_its_children(store: Store) -> None:
    """Children count under the budgets of the run above them, which go with the last of these runs."""
    parent = await store.runs.create(new_run("run1"))
    above = (run_level(parent.id), parent.lineage_level)
    for name in ("run2", "run3"):
        budgets = Budgets(lineage=lineage_level(RunId(name)), above=above)
        await store.runs.create(new_run(name, parent=parent.id, parent_key=name, budgets=budgets))
    await store.runs.cancel(parent.id, NOW)
    await store.runs.delete(parent.id, NOW)
    await store.runs.delete(RunId("run2"), NOW)
    assert set(await store.runs.balances(above)) == {*above}
    await store.runs.delete(RunId("run3"), NOW)
    assert not await store.runs.balances([*above, run_level(RunId("run2")), lineage_level(RunId("run3"))])


async def keeps_the_budgets_of_a_run_whose_child_is_deleted(store: Store) -> None:
    """What a child spent stays booked above it."""
    parent = await store.runs.create(new_run("run1"))
    above = (run_level(parent.id), parent.lineage_level)
    budgets = Budgets(lineage=lineage_level(RunId("run2")), above=above)
    child = await store.runs.create(new_run("run2", parent=parent.id, parent_key="c", budgets=budgets))
    await store.runs.cancel(parent.id, NOW)
    await store.runs.delete(child.id, NOW)
    assert set(await store.runs.balances(above)) == {*above}


async def restores_a_run_from_elsewhere(store: Store) -> None:
    """A run and its entries can be stored as they were in another store, once."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await store.journal.settle(settling(opened, replied(40)))
    ending = RunRelease(state=RunState.COMPLETED, reason="done", at=NOW, result=[1])
    over = await store.leases.release(run, claim.epoch, ending)
    entries: list[Entry] = [entry async for entry in store.archive.entries(run)]
    await store.runs.delete(run, NOW)
    await store.archive.restore_entries(entries)
    await store.archive.restore(over)
    again = await stored(store, run)
    assert (again.result, again.spent, again.calls, again.state) == (over.result, over.spent, over.calls, over.state)
    assert again.rules == over.rules == CURRENT_RULES
    assert [entry async for entry in store.archive.entries(run)] == entries
    await raises(Conflict, store.archive.restore(over))
    other, more = replace(entries[0], reply=None, request=None), replace(entries[0], key="more")
    await store.archive.restore_entries([other, more])
    assert [entry async for entry in store.archive.entries(run)] == [*entries, more]


REVIEW = Review(run=RunId("run1"), case="s/one", subject="sim/echo", epoch=1, opinion=Opinion.WRONG, at=NOW, note="no")


async def keeps_the_newest_review_of_each_person(store: Store) -> None:
    """A second review of one person takes the place of the first; others stay beside it."""
    await store.runs.create(new_run("run1"))
    others = [
        replace(REVIEW, by="ada"),
        replace(REVIEW, epoch=2),
        replace(REVIEW, subject="x"),
        replace(REVIEW, case="a"),
    ]
    for review in (REVIEW, *others):
        await store.records.add_review(review)
    second = replace(REVIEW, opinion=Opinion.RIGHT, at=NOW + 1, note="looked again")
    await store.records.add_review(second)
    await store.records.add_review(replace(REVIEW, opinion=Opinion.BORDERLINE, at=NOW - 1))  # a late arrival is no news
    found = await store.records.reviews_of(RunId("run1"))
    assert sorted(found, key=repr) == sorted((second, *others), key=repr)
    assert [review.case for review in found] == sorted(review.case for review in found)


async def reviews_only_runs_that_are_here(store: Store) -> None:
    """A review needs its run."""
    await raises(NotFound, store.records.add_review(REVIEW))
    assert list(await store.records.reviews_of(RunId("run1"))) == []


async def forgets_reviews_with_their_run(store: Store) -> None:
    """A deleted run takes its reviews along, and no others."""
    for name in ("run1", "run2"):
        await store.runs.create(new_run(name))
        await store.records.add_review(replace(REVIEW, run=RunId(name)))
    await store.runs.delete(RunId("run1"), NOW)
    assert list(await store.records.reviews_of(RunId("run1"))) == []
    assert len(await store.records.reviews_of(RunId("run2"))) == 1


async def keeps_secrets_out_of_reviews(store: Store) -> None:
    """A configured secret in a note or a name is not stored."""
    await store.runs.create(new_run("run1"))
    await store.records.add_review(replace(REVIEW, note=f"it said {SECRET}", by=SECRET))
    (found,) = await store.records.reviews_of(RunId("run1"))
    assert SECRET not in found.note + found.by
    await raises(BadArgument, _set(store, SECRET))


async def gives_a_name_to_one_run_at_a_time(store: Store) -> None:
    """A baseline is found by its name, moves to another run, and is removed once."""
    for name in ("run1", "run2"):
        await store.runs.create(new_run(name))
    await _set(store, "main")
    assert await store.records.find_baseline("main") == Baseline(name="main", run=RunId("run1"), at=NOW)
    assert await store.records.find_baseline("MAIN") is None
    moved = Baseline(name="main", run=RunId("run2"), at=NOW + 1)
    other = Baseline(name="a", run=RunId("run2"), at=NOW)
    await store.records.set_baseline(moved.name, moved.run, moved.at)
    await store.records.set_baseline(other.name, other.run, other.at)
    assert list(await store.records.baselines()) == [other, moved]
    await store.records.remove_baseline("main")
    await raises(NotFound, store.records.remove_baseline("main"))
    assert list(await store.records.baselines()) == [other]


async def names_only_runs_that_are_here(store: Store) -> None:
    """A baseline needs its run."""
    await raises(NotFound, _set(store, "main"))
    assert list(await store.records.baselines()) == []


async def keeps_a_run_that_a_baseline_names(store: Store) -> None:
    """A run with a name cannot be deleted until the name is gone; the refusal tells the name."""
    await store.runs.create(new_run("run1"))
    await _set(store, "main")
    error = await raises(Conflict, store.runs.delete(RunId("run1"), NOW))
    assert "main" in error.message
    assert await store.runs.get(RunId("run1")) is not None
    await store.records.remove_baseline("main")
    await store.runs.delete(RunId("run1"), NOW)
    assert await store.runs.get(RunId("run1")) is None


async def _set(store: Store, name: str) -> None:
    await store.records.set_baseline(name, RunId("run1"), NOW)


CHECKS: tuple[Check, ...] = (
    remembers_a_run_as_it_was_given,
    finds_runs_by_what_people_write,
    starts_a_child_once,
    forgets_a_run_with_everything_in_it,
    forgets_the_budgets_of_a_lineage_with_its_last_run,
    keeps_the_budgets_of_a_deleted_run_for_its_children,
    keeps_the_budgets_of_a_run_whose_child_is_deleted,
    restores_a_run_from_elsewhere,
    keeps_the_newest_review_of_each_person,
    reviews_only_runs_that_are_here,
    forgets_reviews_with_their_run,
    keeps_secrets_out_of_reviews,
    gives_a_name_to_one_run_at_a_time,
    names_only_runs_that_are_here,
    keeps_a_run_that_a_baseline_names,
)

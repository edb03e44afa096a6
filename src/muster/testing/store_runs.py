"""What every store must do about whole runs: made, found, forgotten, moved."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

from dataclasses import replace

from muster.domain.entry import (
    Entry,
)
from muster.domain.errors import Conflict, NotFound
from muster.domain.run import Origin, Reuse, RunState
from muster.store.base import RunRelease, Store
from muster.testing.store_stage import (
    NOW,
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
    await store.runs.create(new)
    run = await stored(store, new.id)
    assert (run.state, run.name, run.tags, run.seed) == (RunState.QUEUED, "nightly", ("a", "b"), 7)
    assert (run.spec, run.cap, run.timeout, run.concurrency) == ({"n": 1}, 500, 9.5, 3)
    assert run.submitted
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
    newest = await store.reuser.newest_child(parent.id, "c")
    assert newest is not None
    assert newest.id == "run2"
    assert [run.id for run in await store.archive.children(parent.id)] == ["run2"]


async def forgets_a_run_with_everything_in_it(store: Store) -> None:
    """Deleting forgets a run, except while it is driven or an unfinished run comes from it."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await raises(Conflict, store.commands.delete(run, NOW))
    await store.journal.settle(settling(opened, replied()))
    ending = RunRelease(state=RunState.FAILED, reason="x", at=NOW, error={"message": "m"})
    await store.leases.release(run, claim.epoch, ending)
    heir = replace(new_run("run2"), origin=Origin(run=run, reuse=Reuse.REPLIES))
    await store.runs.create(heir)
    await raises(Conflict, store.commands.delete(run, NOW))
    await store.commands.cancel(heir.id, NOW)
    await raises(Conflict, store.commands.delete(run, NOW))  # it can still be resumed, with the replies of the first
    await store.commands.delete(heir.id, NOW)
    await store.commands.delete(run, NOW)
    assert await store.runs.get(run) is None
    assert await store.journal.find(run, "k") is None
    assert await store.events.read(run, 0, 10) == []
    await raises(NotFound, store.commands.delete(run, NOW))


async def restores_a_run_from_elsewhere(store: Store) -> None:
    """A run and its entries can be stored as they were in another store, once."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await store.journal.settle(settling(opened, replied(40)))
    ending = RunRelease(state=RunState.COMPLETED, reason="done", at=NOW, result=[1])
    over = await store.leases.release(run, claim.epoch, ending)
    entries: list[Entry] = [entry async for entry in store.archive.entries(run)]
    await store.commands.delete(run, NOW)
    await store.archive.restore_entries(entries)
    await store.archive.restore(over)
    again = await stored(store, run)
    assert (again.result, again.spent, again.calls, again.state) == (over.result, over.spent, over.calls, over.state)
    assert [entry async for entry in store.archive.entries(run)] == entries
    await raises(Conflict, store.archive.restore(over))
    other, more = replace(entries[0], reply=None, request=None), replace(entries[0], key="more")
    await store.archive.restore_entries([other, more])
    assert [entry async for entry in store.archive.entries(run)] == [*entries, more]


CHECKS: tuple[Check, ...] = (
    remembers_a_run_as_it_was_given,
    finds_runs_by_what_people_write,
    starts_a_child_once,
    forgets_a_run_with_everything_in_it,
    restores_a_run_from_elsewhere,
)

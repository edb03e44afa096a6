"""What every store must do about lineages: a run and the runs it was resumed as have one end, and only one."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

import asyncio
from dataclasses import replace

from muster.domain.budget import Budgets, lineage_level
from muster.domain.errors import AlreadyContinued, Conflict
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import NewRun, Origin, Reuse, Run, RunState
from muster.store.base import RunRelease, Store
from muster.testing.stores.values import DRIVER, NOW, Check, driven, new_run, raises, stored

FIRST = lineage_level(RunId("run1"))


def heir(name: str, of: str, *, cap: int | None = None, after: float = 1.0, lineage: str = FIRST) -> NewRun:
    """Return a run that continues another in a lineage."""
    made = new_run(name, cap=cap, origin=Origin(run=RunId(of), reuse=Reuse.REPLIES), budgets=Budgets(lineage=lineage))
    return replace(made, created_at=NOW + after)


async def ended(store: Store, run: RunId, state: RunState) -> Run:
    """Drive a stored run to an end."""
    claim = await store.leases.claim(run, DRIVER, 0, NOW, NOW + 15)
    return await store.leases.release(run, claim.epoch, RunRelease(state=state, reason="x", at=NOW))


async def end_of(store: Store, run: str) -> str:
    """Return the id of the run that a run was last continued as."""
    found = await store.runs.end_of_lineage(RunId(run))
    assert found is not None
    return found.id


async def continues_a_run_once(store: Store) -> None:
    """Of all continuations that are made at once one is stored, with its cap; the others leave nothing behind."""
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.FAILED, reason="x", at=NOW))
    names = [f"run{number}" for number in range(2, 8)]
    made = await asyncio.gather(
        *(store.runs.create(heir(name, run, cap=100 + i)) for i, name in enumerate(names)), return_exceptions=True
    )
    (winner,) = [one for one in made if isinstance(one, Run)]
    assert all(isinstance(one, AlreadyContinued | Run) for one in made)
    before = await stored(store, run)
    assert before.continued_by == winner.id
    assert before.cap == winner.cap == 100 + names.index(winner.id)
    assert {one.id for one in await store.runs.select()} == {run, winner.id}
    assert await end_of(store, run) == await end_of(store, winner.id) == winner.id
    assert await store.runs.end_of_lineage(RunId("nobody")) is None


async def finds_an_end_while_runs_are_continued(store: Store) -> None:
    """The end of a lineage has no continuation, however often it is read while continuations are made."""
    last, claim = await driven(store)
    await store.leases.release(last, claim.epoch, RunRelease(state=RunState.FAILED, reason="x", at=NOW))

    async def go_on() -> None:
        for number in range(2, 14):
            await store.runs.create(heir(f"run{number}", f"run{number - 1}", after=number))

    going_on, ends = asyncio.ensure_future(go_on()), list[Run | None]()
    while not going_on.done():
        ends.append(await store.runs.end_of_lineage(last))
        await asyncio.sleep(0)
    await going_on
    assert [end.id for end in ends if end is not None and end.continued_by is not None] == []


async def counts_no_run_of_another_lineage_as_a_continuation(store: Store) -> None:
    """A fork takes replies over and has a lineage of its own: however many there are, none continues the run."""
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.FAILED, reason="x", at=NOW))
    for name in ("run2", "run3"):
        await store.runs.create(heir(name, run, lineage=lineage_level(RunId(name))))
    assert (await stored(store, run)).continued_by is None
    assert await end_of(store, run) == run


async def keeps_the_end_of_a_lineage_that_is_deleted(store: Store) -> None:
    """A completed continuation that is deleted stays named; one that did not complete leaves room for another."""
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.FAILED, reason="x", at=NOW))
    await store.runs.create(heir("run2", run))
    await ended(store, RunId("run2"), RunState.FAILED)
    await store.runs.delete(RunId("run2"), NOW)
    assert (await stored(store, run)).continued_by is None
    await store.runs.create(heir("run3", run))
    await ended(store, RunId("run3"), RunState.CANCELED)
    await store.runs.create(heir("run4", "run3"))
    await ended(store, RunId("run4"), RunState.COMPLETED)
    await store.runs.delete(RunId("run3"), NOW)
    assert (await stored(store, run)).continued_by == "run4"
    await store.runs.delete(RunId("run4"), NOW)
    assert (await stored(store, run)).continued_by == "run4"
    assert await end_of(store, run) == run
    await raises(AlreadyContinued, store.runs.create(heir("run5", run)))


async def continues_no_run_that_was_deleted(store: Store) -> None:
    """Whoever was about to continue a run that is deleted meanwhile gets nothing: its lineage would have two ends."""
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.FAILED, reason="x", at=NOW))
    await store.runs.create(heir("run2", run))
    await ended(store, RunId("run2"), RunState.FAILED)
    await store.runs.delete(RunId("run2"), NOW)
    await raises(AlreadyContinued, store.runs.create(heir("run3", "run2")))
    assert [one.id for one in await store.runs.select()] == [run]
    assert (await stored(store, run)).continued_by is None


async def keeps_the_order_of_continuations_whose_clocks_differ(store: Store) -> None:
    """After the end of a lineage is deleted the run before it is the end, also if its machine's clock was behind."""
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.FAILED, reason="x", at=NOW))
    for name, of, after in (("run2", "run1", -5.0), ("run3", "run2", 1.0)):
        await store.runs.create(heir(name, of, after=after))
        await ended(store, RunId(name), RunState.FAILED)
    await store.runs.delete(RunId("run3"), NOW)
    assert (await stored(store, run)).continued_by == "run2"
    assert (await stored(store, RunId("run2"))).continued_by is None
    assert await end_of(store, run) == await end_of(store, "run2") == "run2"


async def leaves_no_continued_run_to_workers(store: Store) -> None:
    """A run that stands still, and for which a completed one from elsewhere is the end, is not driven any more."""
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.INTERRUPTED, reason="x", at=NOW))
    await store.runs.requeue(run, NOW)
    first = await stored(store, run)
    origin = Origin(run=run, reuse=Reuse.REPLIES)
    done = replace(first, id=RunId("run2"), state=RunState.COMPLETED, created_at=NOW + 1, origin=origin)
    await store.archive.restore(done)
    before = await stored(store, run)
    assert (before.continued_by, before.state, before.submitted) == ("run2", RunState.INTERRUPTED, False)
    assert await store.queue.workloads() == []
    await raises(AlreadyContinued, store.runs.requeue(run, NOW))
    await raises(AlreadyContinued, store.leases.claim(run, DRIVER, first.lease.epoch, NOW, NOW + 15))


async def chooses_one_end_among_runs_from_elsewhere(store: Store) -> None:
    """Of restored runs of one lineage the oldest completed one is its end, else the newest, in whatever order."""
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.FAILED, reason="x", at=NOW))
    first = await stored(store, run)
    await store.runs.delete(run, NOW)
    for name, of, state, end in (
        ("run2", "run1", RunState.FAILED, "run2"),
        ("run3", "run2", RunState.INTERRUPTED, "run3"),
        ("run4", "run1", RunState.FAILED, "run4"),
        ("run1", "", RunState.FAILED, "run4"),
    ):
        origin = Origin(run=RunId(of), reuse=Reuse.REPLIES) if of else None
        made = replace(first, id=RunId(name), state=state, created_at=NOW + int(name[-1]), origin=origin)
        await store.archive.restore(made)
        assert {await end_of(store, one.id) for one in await store.runs.select()} == {end}
    for name, at in (("run5", 9.0), ("run6", 8.0)):
        origin = Origin(run=RunId("run2"), reuse=Reuse.REPLIES)
        done = replace(first, id=RunId(name), state=RunState.COMPLETED, created_at=NOW + at, origin=origin)
        await store.archive.restore(done)
        assert {await end_of(store, f"run{n}") for n in (1, 2, 3, 4)} == {name}
    assert (await stored(store, RunId("run2"))).continued_by == "run6"


async def changes_the_cap_of_a_run_that_stands_still(store: Store) -> None:
    """Only a run that stands still gets another total."""
    run, claim = await driven(store)
    await raises(Conflict, store.runs.set_cap(run, Microdollars(700), None))
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.INTERRUPTED, reason="x", at=NOW))
    await store.runs.set_cap(run, Microdollars(700), None)
    assert (await stored(store, run)).cap == 700
    await raises(Conflict, store.runs.set_cap(run, Microdollars(800), None))  # somebody else was faster
    await store.runs.cancel(run, NOW)
    await raises(Conflict, store.runs.set_cap(run, Microdollars(900), Microdollars(700)))


CHECKS: tuple[Check, ...] = (
    continues_a_run_once,
    finds_an_end_while_runs_are_continued,
    counts_no_run_of_another_lineage_as_a_continuation,
    keeps_the_end_of_a_lineage_that_is_deleted,
    continues_no_run_that_was_deleted,
    keeps_the_order_of_continuations_whose_clocks_differ,
    leaves_no_continued_run_to_workers,
    chooses_one_end_among_runs_from_elsewhere,
    changes_the_cap_of_a_run_that_stands_still,
)

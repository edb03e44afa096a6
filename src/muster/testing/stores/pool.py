"""What every store must do about the pool: one task for each slot, one list of tasks, one driver, shared texts."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

import asyncio
from dataclasses import replace

from muster.domain.budget import Budgets, Level
from muster.domain.entry import NewSignal
from muster.domain.errors import BadArgument
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import Run, RunState, Spent
from muster.store.base import POOL_LEVEL, SlotOutcome, SlotRecord, SlotStanding, Store
from muster.testing.stores.values import DRIVER, NOW, OTHER, SECRET, Check, new_run, opening, raises, replied, settling

ONE, TWO = SlotRecord(name="slot-1", place=1), SlotRecord(name="slot-2", place=2)


async def task(store: Store, name: str, *, at: float = 0.0, lineage: str | None = None) -> Run:
    """Store the run of a task."""
    budgets = Budgets(lineage=f"lineage:{lineage or name}", above=(), day_cap=None)
    new = replace(new_run(name), workload="task", created_at=NOW + at, budgets=budgets)
    return await store.runs.create(new)


async def gives_each_task_to_one_slot(store: Store) -> None:
    """Of several who assign at once one wins; neither a slot nor a task is given twice."""
    await store.pool.add_slot(ONE)
    await store.pool.add_slot(TWO)
    first, second = [(await task(store, name)).id for name in ("run1", "run2")]
    won = await asyncio.gather(store.pool.assign("slot-1", first), store.pool.assign("slot-1", second))
    assert sorted(won) == [False, True]
    given = first if won[0] else second
    assert not await store.pool.assign("slot-2", given)
    await store.pool.free("slot-1", RunId("other"))
    assert [slot.run for slot in await store.pool.slots()] == [given, None]
    await store.pool.free("slot-1", given)
    assert await store.pool.assign("slot-2", given)


async def keeps_slots_as_they_were_added(store: Store) -> None:
    """Slots come in the order of their places; adding one twice keeps the first; a busy one is not removed."""
    await store.pool.add_slot(TWO)
    await store.pool.add_slot(ONE)
    await store.pool.update_slot(replace(ONE, standing=SlotStanding.ERRORED, failures=3, error="no such file"))
    await store.pool.add_slot(ONE)
    found = list(await store.pool.slots())
    assert [(slot.name, slot.standing) for slot in found] == [("slot-1", "errored"), ("slot-2", "active")]
    assert (found[0].failures, found[0].error) == (3, "no such file")
    run = (await task(store, "run1")).id
    assert not await store.pool.assign("slot-1", run)
    assert await store.pool.assign("slot-2", run)
    assert not await store.pool.remove_slot("slot-2")
    await store.pool.free("slot-2", run)
    assert await store.pool.remove_slot("slot-2")


async def notes_how_the_last_task_of_a_slot_ended(store: Store) -> None:
    """An outcome makes an active slot errored, and never lets one take tasks again that was stopped meanwhile."""
    await store.pool.add_slot(ONE)
    await store.pool.note_outcome(SlotOutcome(slot="slot-1", completed=True))
    await store.pool.update_slot(replace(ONE, standing=SlotStanding.STOPPED, completed=1))
    await store.pool.note_outcome(SlotOutcome(slot="slot-1", completed=True, failures=3, error="gone", errored=True))
    (slot,) = await store.pool.slots()
    assert (slot.standing, slot.completed, slot.failures, slot.error) == (SlotStanding.STOPPED, 2, 3, "gone")
    await store.pool.update_slot(replace(slot, standing=SlotStanding.ACTIVE))
    await store.pool.note_outcome(SlotOutcome(slot="slot-1", failures=3, error="gone", errored=True))
    assert (await store.pool.slots())[0].standing is SlotStanding.ERRORED


async def messages_the_slots_that_are_there(store: Store) -> None:
    """A message to several slots is stored for those that exist and take tasks, and for no other."""
    for slot in (ONE, TWO, replace(ONE, name="slot-3", place=3)):
        await store.pool.add_slot(slot)
    await store.pool.update_slot(replace(TWO, standing=SlotStanding.STOPPED))
    await store.pool.remove_slot("slot-3")
    names = ("slot-1", "slot-2", "slot-3")
    sent = await store.pool.message_slots({name: _message(name) for name in names})
    assert list(sent) == ["slot-1"]
    unread = [[signal.payload for signal in await store.signals.untaken(f"to {name}", "inbox")] for name in names]
    assert unread == [["hello"], [], []]


def _message(slot: str) -> NewSignal:
    return NewSignal(address=f"to {slot}", channel="inbox", payload="hello", client_id="once", sender="", at=NOW)


async def lists_the_newest_run_of_each_task(store: Store) -> None:
    """A task that was tried again is listed and counted once, as its newest run; pages go on where the last ended."""
    await task(store, "old", at=1)
    for number in range(5):
        await task(store, f"task{number}", at=2)
    await task(store, "again", at=3, lineage="old")
    await store.runs.create(new_run("stranger"))
    names = [run.id for run in await store.pool.newest_tasks()]
    assert names == ["again", "task4", "task3", "task2", "task1", "task0"]
    page = await store.pool.newest_tasks(limit=2)
    rest = await store.pool.newest_tasks(page[-1], limit=10)
    assert [run.id for run in (*page, *rest)] == names
    assert await store.pool.count_tasks() == {RunState.QUEUED: 6}
    oldest = await store.pool.tasks([RunState.QUEUED], limit=2)
    assert [run.id for run in oldest] == ["old", "task0"]


async def keeps_the_pool_and_its_driver(store: Store) -> None:
    """Creating the pool twice keeps the first; of several drivers one wins; draining is remembered."""
    assert await store.pool.pool() is None
    await store.pool.create_pool(NOW)
    await store.pool.create_pool(NOW + 9)
    won = await asyncio.gather(
        store.pool.drive_pool(DRIVER, NOW + 15, instead=DRIVER), store.pool.drive_pool(OTHER, NOW + 15, instead=OTHER)
    )
    assert list(won) == [True, False]
    assert await store.pool.drive_pool(DRIVER, NOW + 16, instead=DRIVER)
    assert await store.pool.drive_pool(OTHER, NOW + 17, instead=DRIVER)  # which is known to be dead
    assert not await store.pool.drive_pool(DRIVER, NOW + 18, instead=DRIVER)
    await store.pool.leave_pool(DRIVER)
    await store.pool.drain(NOW + 60)
    found = await store.pool.pool()
    assert found is not None
    assert (found.created_at, found.driver, found.driven_until) == (NOW, OTHER, NOW + 17)
    assert (found.draining, found.drain_until) == (True, NOW + 60)
    await store.pool.leave_pool(OTHER)
    await store.pool.drain(None)
    found = await store.pool.pool()
    assert found is not None
    assert (found.driver, found.draining) == (None, False)


async def caps_the_budget_of_the_pool(store: Store) -> None:
    """The budget of the pool has no cap at first, and can be raised."""
    await store.pool.create_pool(NOW)
    assert (await store.runs.balances([POOL_LEVEL]))[POOL_LEVEL].cap is None
    for cap in (Microdollars(10), Microdollars(30)):
        await store.pool.cap_pool(cap)
        assert (await store.runs.balances([POOL_LEVEL]))[POOL_LEVEL].cap == cap


async def remembers_which_slot_had_a_task(store: Store) -> None:
    """A task counts for the slot that had it last, whichever of its runs; what it cost is that of all its runs."""
    await store.pool.add_slot(ONE)
    await store.pool.add_slot(TWO)
    first, other = await task(store, "run1"), await task(store, "run2", at=1)
    await store.pool.assign("slot-1", first.id)
    await store.pool.free("slot-1", first.id)
    again = await task(store, "run3", at=2, lineage="run1")
    await store.pool.assign("slot-2", again.id)
    await store.pool.assign("slot-1", other.id)
    assert list(await store.pool.tasks_of_slot("slot-1")) == [other.id]
    assert list(await store.pool.tasks_of_slot("slot-2")) == [again.id]
    claim = await store.leases.claim(again.id, DRIVER, again.lease.epoch, NOW, NOW + 15)
    opened = opening(again.id, claim.epoch, "work", most=100)
    opened = opened._replace(levels=(*opened.levels, Level(id="lineage:run1", cap=None)))
    await store.journal.open(opened)
    await store.journal.settle(settling(opened, replied(40)))
    assert (await store.pool.slot_costs()).get("slot-2") == Spent(billed=Microdollars(40))
    assert await store.pool.kept_work("lineage:run1") == {}
    await store.pool.keep_work("lineage:run1", {"branch": "muster/task-run1", "run": "run3"})
    assert (await store.pool.kept_work("lineage:run1"))["branch"] == "muster/task-run1"
    assert await store.pool.kept_work("lineage:nobody") == {}


async def keeps_shared_texts_without_secrets(store: Store) -> None:
    """Texts come in the order of their names, the last value counts, and secrets are never stored."""
    await store.pool.set_context("style", "tabs", NOW)
    await store.pool.set_context("branch", f"key {SECRET}", NOW)
    await store.pool.set_context("style", "spaces", NOW + 1)
    found = await store.pool.context()
    assert list(found) == ["branch", "style"]
    assert found["style"] == "spaces"
    assert SECRET not in found["branch"]
    await raises(BadArgument, _set(store, SECRET))
    assert await store.pool.delete_context("style")
    assert not await store.pool.delete_context("style")


async def _set(store: Store, name: str) -> None:
    await store.pool.set_context(name, "text", NOW)


CHECKS: tuple[Check, ...] = (
    gives_each_task_to_one_slot,
    keeps_slots_as_they_were_added,
    notes_how_the_last_task_of_a_slot_ended,
    messages_the_slots_that_are_there,
    lists_the_newest_run_of_each_task,
    keeps_the_pool_and_its_driver,
    caps_the_budget_of_the_pool,
    remembers_which_slot_had_a_task,
    keeps_shared_texts_without_secrets,
)

"""What every store must do about the journal and the events: written once, in order, given back whole."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

import asyncio
from dataclasses import replace

from muster.domain.budget import Granted
from muster.domain.entry import (
    EntryKind,
    EntryState,
)
from muster.domain.errors import MusterError
from muster.domain.run import Origin, Reuse
from muster.store.base import DoneEntry, Record, Store
from muster.testing.stores.values import (
    DRIVER,
    NOW,
    Check,
    driven,
    new_run,
    opening,
    replied,
    settling,
    stored,
)


async def gives_back_the_reply(store: Store) -> None:
    """What was settled is found under its key, whole."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    outcome = replied(text="schön \ud800 \x00")
    await store.journal.settle(settling(opened, outcome))
    entry = await store.journal.find(run, "k")
    assert entry is not None
    assert entry.reply == outcome.reply
    assert (entry.kind, entry.state, entry.digest, entry.attempts) == (EntryKind.CALL, EntryState.DONE, "d", 1)


async def settles_an_attempt_once(store: Store) -> None:
    """A second settlement changes nothing, also when it comes in one group with others."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    other = opening(run, claim.epoch, "other")
    await asyncio.gather(store.journal.open(opened), store.journal.open(other))
    await store.journal.settle(settling(opened, replied(40)))
    again, good = await asyncio.gather(
        store.journal.settle(settling(opened, replied(70))), store.journal.settle(settling(other, replied(5)))
    )
    assert (again.late, again.kept, good.kept) == (True, False, True)
    assert (await stored(store, run)).spent.billed == 45


async def lets_one_bad_write_harm_nobody_else(store: Store) -> None:
    """What cannot be written fails alone, also in one commit with others."""
    run, claim = await driven(store)
    opened = [opening(run, claim.epoch, f"k{i}") for i in range(5)]
    bad = Record(run=run, epoch=claim.epoch, key="bad", kind=EntryKind.STEP, digest="", value=object(), at=NOW)
    results = await asyncio.gather(
        *(store.journal.open(one) for one in opened), store.journal.record(bad), return_exceptions=True
    )
    assert results[:5] == [Granted()] * 5
    assert isinstance(results[5], MusterError)
    assert (await stored(store, run)).spent.reserved == 500


async def numbers_events_without_gaps(store: Store) -> None:
    """Events are numbered from one, in order, whoever tells them."""
    run, claim = await driven(store)
    tellings = [store.events.append(run, claim.epoch, "note", {"i": i}, NOW + i) for i in range(20)]
    opened = opening(run, claim.epoch, "k")
    await asyncio.gather(*tellings, store.journal.open(opened))
    await store.journal.settle(settling(opened, replied()))
    events = await store.events.read(run, 0, 1000)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.data["i"] for event in events if event.kind == "note"] == list(range(20))
    assert (await stored(store, run)).last_seq == len(events)
    assert [event.seq for event in await store.events.read(run, 5, 3)] == [6, 7, 8]


async def remembers_a_step_once(store: Store) -> None:
    """The first value under a key stays; a later one is given the first."""
    run, claim = await driven(store)
    record = Record(
        run=run,
        epoch=claim.epoch,
        key="s",
        kind=EntryKind.EMIT,
        digest="",
        value={"v": 1},
        at=NOW,
        kind_of_event="told",
    )
    assert await store.journal.record(record) == {"v": 1}
    assert await store.journal.record(replace(record, value={"v": 2})) == {"v": 1}
    nothing = replace(record, key="n", kind=EntryKind.STEP, value=None, kind_of_event=None)
    assert await store.journal.record(nothing) is None
    assert await store.journal.record(replace(nothing, value={"v": 2})) is None
    assert [event.kind for event in await store.events.read(run, 0, 100)].count("told") == 1


async def takes_over_entries_free_of_charge(store: Store) -> None:
    """An entry of another run is copied, counted as reused, and costs nothing."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await store.journal.settle(settling(opened, replied(40)))
    entry = await store.journal.find(run, "k")
    assert entry is not None
    origin = Origin(run=run, reuse=Reuse.REPLIES)
    heir = await store.runs.create(replace(new_run("run2"), origin=origin))
    taken = await store.leases.claim(heir.id, DRIVER, 0, NOW, NOW + 15)
    await store.journal.reuse(heir.id, taken.epoch, entry, NOW)
    copied = await store.journal.find(heir.id, "k")
    assert copied is not None
    assert (copied.reply, copied.reused_from, copied.state) == (entry.reply, run, EntryState.DONE)
    after = await stored(store, heir.id)
    assert (after.calls.total, after.calls.done, after.calls.reused, after.spent.settled) == (1, 1, 1, 0)
    assert after.origin == origin


async def orders_the_journal(store: Store) -> None:
    """Entries come in the order in which they were opened, page by page, and a position cuts them."""
    run, claim = await driven(store)
    for i in range(7):
        await store.journal.open(opening(run, claim.epoch, f"k{i}"))
    keys = [entry.key async for entry in store.archive.entries(run, page=3)]
    assert keys == [f"k{i}" for i in range(7)]
    assert await store.archive.done(run) == []
    await store.journal.record(
        Record(run=run, epoch=claim.epoch, key="step", kind=EntryKind.STEP, digest="d", value=1, at=1.0)
    )
    assert await store.archive.done(run) == [DoneEntry("step", EntryKind.STEP, "d")]
    position = await store.journal.position(run, "k3")
    assert position is not None
    assert await store.journal.find_before(run, "k3", position) is None
    older = await store.journal.find_before(run, "k2", position)
    assert older is not None
    assert older.key == "k2"
    assert await store.journal.position(run, "nothing") is None


async def overwrites_partials(store: Store) -> None:
    """Half-written text of an open call is overwritten, and gone when its call is settled."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await store.events.put_partial(opened.attempt, "hel", NOW)
    await store.events.put_partial(opened.attempt, "hello", NOW)
    assert await store.events.partials(run) == {"k": "hello"}
    last = store.events.put_partial(opened.attempt, "hello you", NOW)  # in one commit with the settlement
    await asyncio.gather(last, store.journal.settle(settling(opened, replied())._replace(streamed=True)))
    assert await store.events.partials(run) == {}


async def wakes_whoever_waits_for_a_change(store: Store) -> None:
    """A commit wakes those who wait; without one the wait ends by itself."""
    before = store.changes.commits
    waiting = asyncio.gather(*(store.changes.wait(30, before) for _ in range(3)))
    await asyncio.sleep(0)
    await store.runs.create(new_run("run1"))
    assert await waiting == [True, True, True]


async def tells_what_was_written_before_the_wait(store: Store) -> None:
    """A commit between a look and the wait for the next one ends that wait at once."""
    before = store.changes.commits
    await store.runs.create(new_run("run1"))
    assert await asyncio.wait_for(store.changes.wait(30, before), timeout=10)


async def writes_what_nobody_waits_for(store: Store) -> None:
    """Canceling the wait for a write does not cancel the write."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    waiting = asyncio.ensure_future(store.journal.settle(settling(opened, replied(40))))
    waiting.cancel()
    await store.events.append(run, claim.epoch, "after", {}, NOW)
    assert (await stored(store, run)).spent.billed == 40


CHECKS: tuple[Check, ...] = (
    gives_back_the_reply,
    settles_an_attempt_once,
    lets_one_bad_write_harm_nobody_else,
    numbers_events_without_gaps,
    remembers_a_step_once,
    takes_over_entries_free_of_charge,
    orders_the_journal,
    overwrites_partials,
    wakes_whoever_waits_for_a_change,
    tells_what_was_written_before_the_wait,
    writes_what_nobody_waits_for,
)

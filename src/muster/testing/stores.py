"""What every store must do, as checks that any implementation can be put through.

Each check takes an empty, open store and raises AssertionError when it breaks the contract of `muster.store.base`.
"""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from muster.domain.budget import Granted, Level, Refused, Wait
from muster.domain.call import Reply, Stop, Usage
from muster.domain.entry import (
    AttemptId,
    AttemptState,
    Entry,
    EntryKind,
    EntryState,
    Failed,
    Opening,
    Outcome,
    Replied,
    Settlement,
    Unsent,
)
from muster.domain.errors import Conflict, LeaseLost, MusterError, NotFound
from muster.domain.ids import RunId
from muster.domain.money import Lane, Microdollars
from muster.domain.process import OwnedProcess
from muster.domain.run import Driver, NewRun, Origin, Reuse, Run, RunState
from muster.store.base import Claim, Ending, Record, Store

DRIVER = Driver(host="here", pid=1, started="boot/1")
OTHER = Driver(host="there", pid=2, started="boot/2")
DAY = Level(id="day:2027-01-15", cap=None)
NOW = 1_800_000_000.0


def new_run(run_id: str, *, cap: int | None = None, **rest: object) -> NewRun:
    """Make a run to be stored."""
    cap_ = None if cap is None else Microdollars(cap)
    return NewRun(id=RunId(run_id), workload="w", spec={"n": 1}, created_at=NOW, cap=cap_, **rest)  # type: ignore[arg-type]


async def driven(store: Store, name: str = "run1", *, cap: int | None = None) -> tuple[RunId, Claim]:
    """Store a run and claim it."""
    run = await store.runs.create(new_run(name, cap=cap))
    return run.id, await store.leases.claim(run.id, DRIVER, run.lease.epoch, NOW, NOW + 15)


def opening(run: RunId, epoch: int, key: str, *, most: int = 100, cap: int | None = None, n: int = 1) -> Opening:
    """Make an attempt about to start."""
    cap_ = None if cap is None else Microdollars(cap)
    return Opening(
        attempt=AttemptId(run=run, key=key, n=n, epoch=epoch),
        digest="d",
        agent="sim/echo",
        request='{"messages":[]}',
        most=Microdollars(most),
        levels=(DAY, Level(id=f"run:{run}", cap=cap_)),
        at=NOW,
        first=n == 1,
    )


def settling(opened: Opening, outcome: Outcome) -> Settlement:
    """Make the settlement of an attempt."""
    return Settlement(attempt=opened.attempt, outcome=outcome, reserved=opened.most, levels=opened.levels, at=NOW + 1)


def replied(cost: int = 40, text: str = "hello") -> Replied:
    """Make a reply."""
    usage = Usage(input=3, output=2)
    return Replied(reply=Reply(text=text, stop=Stop.END, usage=usage, cost=Microdollars(cost)))


async def raises(kind: type[MusterError], work: Awaitable[object]) -> MusterError:
    """Give the error that a piece of work must raise."""
    try:
        await work
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


async def _get(store: Store, run: RunId) -> Run:
    found = await store.runs.get(run)
    assert found is not None
    return found


async def remembers_a_run_as_it_was_given(store: Store) -> None:
    """A run comes back with everything that it was created with."""
    new = new_run("run1", cap=500, name="nightly", tags=("a", "b"), seed=7, timeout=9.5, concurrency=3, submitted=True)
    await store.runs.create(new)
    run = await _get(store, new.id)
    assert (run.state, run.name, run.tags, run.seed) == (RunState.QUEUED, "nightly", ("a", "b"), 7)
    assert (run.spec, run.cap, run.timeout, run.concurrency) == ({"n": 1}, 500, 9.5, 3)
    assert run.submitted
    assert run.lease.driver is None


async def reserves_and_books_in_one_go(store: Store) -> None:
    """An attempt reserves its most; its settlement gives that back and books the cost."""
    run, claim = await driven(store, cap=1000)
    opened = opening(run, claim.epoch, "k", most=100, cap=1000)
    assert await store.journal.open(opened) == Granted()
    assert (await _get(store, run)).spent.reserved == 100
    settled = await store.journal.settle(settling(opened, replied(40)))
    after = await _get(store, run)
    assert (settled.cost, settled.kept, settled.overdraft) == (40, True, False)
    assert (after.spent.reserved, after.spent.billed, after.spent.uncertain) == (0, 40, 0)
    assert (after.calls.total, after.calls.done, after.calls.failed) == (1, 1, 0)


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


async def waits_then_refuses_at_the_cap(store: Store) -> None:
    """What may still fit waits; what can never fit is refused with the numbers; neither leaves a trace."""
    run, claim = await driven(store, cap=150)
    first = opening(run, claim.epoch, "a", most=100, cap=150)
    assert await store.journal.open(first) == Granted()
    waits = await store.journal.open(opening(run, claim.epoch, "b", most=100, cap=150))
    assert waits == Wait(level=f"run:{run}")
    await store.journal.settle(settling(first, replied(60)))
    refused = await store.journal.open(opening(run, claim.epoch, "b", most=100, cap=150))
    assert refused == Refused(
        level=f"run:{run}", cap=Microdollars(150), settled=Microdollars(60), most=Microdollars(100)
    )
    assert await store.journal.find(run, "b") is None
    assert len(await store.archive.attempts(run)) == 1
    assert await store.journal.open(opening(run, claim.epoch, "b", most=90, cap=150)) == Granted()


async def never_reserves_above_the_cap_together(store: Store) -> None:
    """Many at once: as many as fit are granted, never one more."""
    run, claim = await driven(store, cap=1000)
    openings = [opening(run, claim.epoch, f"k{i}", most=90, cap=1000) for i in range(50)]
    decisions = await asyncio.gather(*(store.journal.open(one) for one in openings))
    assert sum(isinstance(decision, Granted) for decision in decisions) == 11
    assert (await _get(store, run)).spent.reserved == 990


async def books_an_unknown_outcome_in_full(store: Store) -> None:
    """An attempt whose outcome is unknown is booked at its reservation, as uncertain."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k", most=100)
    await store.journal.open(opened)
    error = {"code": "outcome_unknown", "message": "cut"}
    await store.journal.settle(settling(opened, Failed(error=error, uncertain=True, again_in=1.0)))
    after = await _get(store, run)
    assert (after.spent.reserved, after.spent.billed, after.spent.uncertain) == (0, 0, 100)
    assert after.calls.uncertain == 1
    second = opening(run, claim.epoch, "k", n=2)._replace(first=False)
    await store.journal.open(second)
    await store.journal.settle(settling(second, replied(10)))
    states = [attempt.state for attempt in await store.archive.attempts(run)]
    assert states == [AttemptState.UNCERTAIN, AttemptState.SUCCEEDED]


async def refunds_what_never_left(store: Store) -> None:
    """An attempt that was not sent, or was refused, costs nothing."""
    run, claim = await driven(store)
    for key, outcome in (
        ("a", Unsent()),
        ("b", Failed(error={"code": "overloaded", "message": "full"}, uncertain=False, gives_up=True)),
    ):
        opened = opening(run, claim.epoch, key)
        await store.journal.open(opened)
        await store.journal.settle(settling(opened, outcome))
    after = await _get(store, run)
    assert (after.spent.reserved, after.spent.settled) == (0, 0)
    assert after.calls.failed == 1
    entry = await store.journal.find(run, "b")
    assert entry is not None
    assert entry.error == {"code": "overloaded", "message": "full"}


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
    assert (await _get(store, run)).spent.billed == 45


async def takes_back_an_opening_that_is_still_queued(store: Store) -> None:
    """Taken back right after it was queued, an opening leaves no money reserved; one that was refused is no trouble."""
    run, claim = await driven(store, cap=150)
    opened = opening(run, claim.epoch, "k", cap=150)
    refused = opening(run, claim.epoch, "too-much", most=500, cap=150)
    writes = [
        store.journal.open(opened),
        store.journal.settle(settling(opened, Unsent())),
        store.journal.open(refused),
        store.journal.settle(settling(refused, Unsent())),
    ]
    await asyncio.gather(*writes)
    after = await _get(store, run)
    assert (after.spent.reserved, after.spent.settled) == (0, 0)
    assert [attempt.state for attempt in await store.archive.attempts(run)] == [AttemptState.UNSENT]


async def flags_an_overdraft(store: Store) -> None:
    """A cost above the reservation is booked in full and told."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k", most=10)
    await store.journal.open(opened)
    settled = await store.journal.settle(settling(opened, replied(25)))
    assert settled.overdraft
    assert (await _get(store, run)).spent.billed == 25
    assert "overdraft" in [event.kind for event in await store.events.read(run, 0, 100)]


async def strands_what_a_dead_driver_left_open(store: Store) -> None:
    """A new driver finds open attempts booked as uncertain, and the old one may not write any more."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k", most=100)
    await store.journal.open(opened)
    second = await store.leases.claim(run, OTHER, claim.epoch, NOW + 20, NOW + 35)
    assert (second.epoch, second.uncertain, second.uncertain_cost) == (claim.epoch + 1, 1, 100)
    spent = (await _get(store, run)).spent
    assert (spent.reserved, spent.uncertain) == (0, 100)
    await raises(LeaseLost, store.journal.open(opening(run, claim.epoch, "other")))
    await raises(LeaseLost, store.leases.beat(run, claim.epoch, NOW + 60, 1.0, RunState.RUNNING))
    record = Record(run=run, epoch=claim.epoch, key="s", kind=EntryKind.STEP, digest="", value=1, at=NOW)
    await raises(LeaseLost, store.journal.record(record))


async def books_a_late_reply_and_keeps_it_if_none_is_there(store: Store) -> None:
    """The reply of a driver that was replaced costs what it cost, and counts only when no other is there."""
    run, claim = await driven(store)
    first, second = opening(run, claim.epoch, "a"), opening(run, claim.epoch, "b")
    await asyncio.gather(store.journal.open(first), store.journal.open(second))
    taken = await store.leases.claim(run, OTHER, claim.epoch, NOW + 20, NOW + 35)
    anew = opening(run, taken.epoch, "b", n=2)._replace(first=False)
    await store.journal.open(anew)
    await store.journal.settle(settling(anew, replied(7, "new")))
    late_a = await store.journal.settle(settling(first, replied(30, "late a")))
    late_b = await store.journal.settle(settling(second, replied(30, "late b")))
    assert (late_a.late, late_a.kept, late_b.late, late_b.kept) == (True, True, True, False)
    texts = [entry.reply.text async for entry in store.archive.entries(run) if entry.reply]
    assert texts == ["late a", "new"]
    after = await _get(store, run)
    assert (after.spent.billed, after.spent.uncertain, after.calls.done, after.calls.uncertain) == (67, 0, 2, 0)


async def lets_only_one_driver_claim(store: Store) -> None:
    """Of many who saw the same epoch one gets the run."""
    run = await store.runs.create(new_run("run1"))
    claims = [store.leases.claim(run.id, OTHER, 0, NOW, NOW + 15) for _ in range(10)]
    results = await asyncio.gather(*claims, return_exceptions=True)
    assert sum(isinstance(result, Claim) for result in results) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 9


async def keeps_terminal_states_final(store: Store) -> None:
    """A run that is over can be neither claimed nor canceled nor released again."""
    run, claim = await driven(store)
    ending = Ending(state=RunState.COMPLETED, reason="done", at=NOW + 2, result={"ok": True}, active=1.5)
    over = await store.leases.release(run, claim.epoch, ending)
    assert (over.state, over.result, over.ended_reason, over.active) == (
        RunState.COMPLETED,
        {"ok": True},
        "done",
        1.5,
    )
    assert over.lease.driver is None
    await raises(Conflict, store.leases.claim(run, OTHER, claim.epoch, NOW, NOW + 15))
    await raises(Conflict, store.desk.cancel(run, NOW))
    await raises(Conflict, store.leases.release(run, claim.epoch, ending))


async def tells_the_driver_of_a_cancel(store: Store) -> None:
    """Canceling a driven run sets a mark that its heartbeat brings; an idle one is canceled at once."""
    run, claim = await driven(store)
    assert await store.leases.beat(run, claim.epoch, NOW + 30, 1.0, RunState.RUNNING) is False
    await store.desk.cancel(run, NOW)
    assert await store.leases.beat(run, claim.epoch, NOW + 31, 1.0, RunState.RUNNING) is True
    idle = await store.runs.create(new_run("run2"))
    assert (await store.desk.cancel(idle.id, NOW)).state is RunState.CANCELED


async def buries_the_dead(store: Store) -> None:
    """The run of a dead driver is marked interrupted, its money freed, and it can be claimed again."""
    run, claim = await driven(store)
    await store.journal.open(opening(run, claim.epoch, "k", most=100))
    buried = await store.leases.bury(run, claim.epoch, NOW + 5, "its driver died")
    assert (buried.uncertain, buried.uncertain_cost) == (1, 100)
    after = await _get(store, run)
    assert (after.state, after.ended_reason, after.spent.reserved) == (RunState.INTERRUPTED, "driver_died", 0)
    await raises(Conflict, store.leases.bury(run, claim.epoch, NOW + 5, "again"))
    assert (await store.leases.claim(run, OTHER, buried.epoch, NOW, NOW + 15)).uncertain == 0


async def cancels_the_run_of_a_dead_driver_that_was_asked_to_cancel(store: Store) -> None:
    """A cancel that the driver did not live to see is carried out when it is buried."""
    run, claim = await driven(store)
    await store.desk.cancel(run, NOW)
    await store.leases.bury(run, claim.epoch, NOW + 5, "its driver died")
    after = await _get(store, run)
    assert (after.state, after.ended_at) == (RunState.CANCELED, NOW + 5)


async def settles_only_what_the_same_driver_opened(store: Store) -> None:
    """What a driver takes back never touches the attempt of another, nor one that came in the same moment."""
    run, claim = await driven(store)
    second = await store.leases.claim(run, OTHER, claim.epoch, NOW, NOW + 15)
    stale = opening(run, claim.epoch, "k")
    mine = opening(run, second.epoch, "k")
    await asyncio.gather(store.journal.open(mine), store.journal.settle(settling(stale, Unsent())))
    assert (await store.journal.settle(settling(mine, replied(40)))).kept
    assert (await _get(store, run)).spent.billed == 40


async def frees_the_money_of_attempts_that_were_never_settled(store: Store) -> None:
    """A run that is let go of, or forgotten, leaves nothing reserved anywhere."""
    run, claim = await driven(store)
    await store.journal.open(opening(run, claim.epoch, "k", most=100))
    over = await store.leases.release(run, claim.epoch, Ending(state=RunState.FAILED, reason="x", at=NOW))
    assert (over.spent.reserved, over.spent.uncertain) == (0, 100)


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
    assert (await _get(store, run)).spent.reserved == 500


async def lists_what_waits_for_a_worker_oldest_first(store: Store) -> None:
    """Old work is not hidden by new runs, nor children by their parents."""
    for i in range(5):
        await store.runs.create(replace(new_run(f"run{i}", submitted=i != 2), created_at=NOW + i))
    child = replace(new_run("child", submitted=True), parent=RunId("run0"), parent_key="c", created_at=NOW + 9)
    await store.runs.create(child)
    assert [run.id for run in await store.runs.submitted(limit=2)] == ["run0", "run1"]
    assert [run.id for run in await store.runs.submitted(limit=9)] == ["run0", "run1", "run3", "run4"]
    assert [run.id for run in await store.runs.roots(limit=2)] == ["run4", "run3"]


async def knows_which_workers_are_there(store: Store) -> None:
    """A worker is there from when it said so until it goes, or has not said so for long."""
    await store.attendance.attend(DRIVER, NOW)
    await store.attendance.attend(OTHER, NOW + 10)
    await store.attendance.attend(DRIVER, NOW + 20)
    assert await store.attendance.present(NOW + 15) == [DRIVER]
    assert await store.attendance.present(NOW + 5) == [DRIVER, OTHER]
    await store.attendance.dismiss(DRIVER)
    assert await store.attendance.present(NOW) == [OTHER]


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
    assert (await _get(store, run)).last_seq == len(events)
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
    await store.reuser.reuse(heir.id, taken.epoch, entry, NOW)
    copied = await store.journal.find(heir.id, "k")
    assert copied is not None
    assert (copied.reply, copied.reused_from, copied.state) == (entry.reply, run, EntryState.DONE)
    after = await _get(store, heir.id)
    assert (after.calls.total, after.calls.done, after.calls.reused, after.spent.settled) == (1, 1, 1, 0)
    assert after.origin == origin


async def orders_the_journal(store: Store) -> None:
    """Entries come in the order in which they were opened, page by page, and a position cuts them."""
    run, claim = await driven(store)
    for i in range(7):
        await store.journal.open(opening(run, claim.epoch, f"k{i}"))
    keys = [entry.key async for entry in store.archive.entries(run, page=3)]
    assert keys == [f"k{i}" for i in range(7)]
    position = await store.reuser.position(run, "k3")
    assert position is not None
    assert await store.reuser.find_before(run, "k3", position) is None
    older = await store.reuser.find_before(run, "k2", position)
    assert older is not None
    assert older.key == "k2"
    assert await store.reuser.position(run, "nothing") is None


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


async def overwrites_partials(store: Store) -> None:
    """Half-written text of an open call is overwritten, and gone when its call is settled."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await store.events.put_partial(run, "k", "hel", NOW)
    await store.events.put_partial(run, "k", "hello", NOW)
    assert await store.events.partials(run) == {"k": "hello"}
    last = store.events.put_partial(run, "k", "hello you", NOW)  # in one commit with the settlement
    await asyncio.gather(last, store.journal.settle(settling(opened, replied())._replace(streamed=True)))
    assert await store.events.partials(run) == {}


async def forgets_a_run_with_everything_in_it(store: Store) -> None:
    """Deleting forgets a run, except while it is driven or an unfinished run comes from it."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await raises(Conflict, store.desk.delete(run, NOW))
    await store.journal.settle(settling(opened, replied()))
    ending = Ending(state=RunState.FAILED, reason="x", at=NOW, error={"message": "m"})
    await store.leases.release(run, claim.epoch, ending)
    heir = replace(new_run("run2"), origin=Origin(run=run, reuse=Reuse.REPLIES))
    await store.runs.create(heir)
    await raises(Conflict, store.desk.delete(run, NOW))
    await store.desk.cancel(heir.id, NOW)
    await raises(Conflict, store.desk.delete(run, NOW))  # it can still be resumed, with the replies of the first
    await store.desk.delete(heir.id, NOW)
    await store.desk.delete(run, NOW)
    assert await store.runs.get(run) is None
    assert await store.journal.find(run, "k") is None
    assert await store.events.read(run, 0, 10) == []
    await raises(NotFound, store.desk.delete(run, NOW))


async def restores_a_run_from_elsewhere(store: Store) -> None:
    """A run and its entries can be stored as they were in another store, once."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await store.journal.settle(settling(opened, replied(40)))
    ending = Ending(state=RunState.COMPLETED, reason="done", at=NOW, result=[1])
    over = await store.leases.release(run, claim.epoch, ending)
    entries: list[Entry] = [entry async for entry in store.archive.entries(run)]
    await store.desk.delete(run, NOW)
    await store.archive.restore_entries(entries)
    await store.archive.restore(over)
    again = await _get(store, run)
    assert (again.result, again.spent, again.calls, again.state) == (over.result, over.spent, over.calls, over.state)
    assert [entry async for entry in store.archive.entries(run)] == entries
    await raises(Conflict, store.archive.restore(over))


async def wakes_whoever_waits_for_a_change(store: Store) -> None:
    """A commit wakes those who wait; without one the wait ends by itself."""
    waiting = asyncio.gather(*(store.changes.wait(30) for _ in range(3)))
    await asyncio.sleep(0)
    await store.runs.create(new_run("run1"))
    assert await waiting == [True, True, True]


async def writes_what_nobody_waits_for(store: Store) -> None:
    """Canceling the wait for a write does not cancel the write."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    waiting = asyncio.ensure_future(store.journal.settle(settling(opened, replied(40))))
    waiting.cancel()
    await store.events.append(run, claim.epoch, "after", {}, NOW)
    assert (await _get(store, run)).spent.billed == 40


async def changes_the_cap_of_an_unfinished_run(store: Store) -> None:
    """A budget can be raised while a run is not over."""
    run, claim = await driven(store, cap=10)
    await store.desk.set_cap(run, Microdollars(1000))
    assert (await _get(store, run)).cap == 1000
    ending = Ending(state=RunState.FAILED, reason="budget", at=NOW)
    await store.leases.release(run, claim.epoch, ending)
    await raises(Conflict, store.desk.set_cap(run, Microdollars(5)))


async def hands_a_resting_run_to_the_workers(store: Store) -> None:
    """An interrupted run can be queued; one that is driven cannot."""
    run, claim = await driven(store)
    await raises(Conflict, store.desk.requeue(run, NOW))
    await store.leases.release(run, claim.epoch, Ending(state=RunState.INTERRUPTED, reason="stop", at=NOW))
    queued = await store.desk.requeue(run, NOW)
    assert (queued.state, queued.submitted) == (RunState.QUEUED, True)


async def books_what_a_failure_says_it_cost(store: Store) -> None:
    """A failed attempt whose agent says what it cost is booked at that, in the lane that pays it."""
    run, claim = await driven(store, cap=1000)
    for key, lane in (("billed", Lane.BILLED), ("imputed", Lane.IMPUTED)):
        opened = opening(run, claim.epoch, key, most=100, cap=1000)
        await store.journal.open(opened)
        failed = Failed(error={"code": "x"}, uncertain=False, gives_up=True, cost=Microdollars(130), lane=lane)
        settled = await store.journal.settle(settling(opened, failed))
        assert (settled.cost, settled.overdraft) == (130, True)
    spent = (await _get(store, run)).spent
    assert (spent.reserved, spent.billed, spent.imputed, spent.uncertain) == (0, 130, 130, 0)


async def remembers_processes_until_they_are_seen_dead(store: Store) -> None:
    """Processes are given back by host, and forgotten once."""
    ours = OwnedProcess(token="t.1", driver=DRIVER, at=NOW, pid=7, started="boot/9", agent="critic")  # noqa: S106
    house = OwnedProcess(token="t", driver=DRIVER, at=NOW)  # noqa: S106
    theirs = OwnedProcess(token="u.1", driver=OTHER, at=NOW, pid=7, started="boot/9")  # noqa: S106
    for process in (ours, house, theirs):
        await store.processes.note(process)
    assert {process.token: process for process in await store.processes.all("here")} == {"t.1": ours, "t": house}
    await store.processes.forget("t.1")
    await store.processes.forget("t.1")
    assert await store.processes.all("here") == [house]
    assert await store.processes.all("there") == [theirs]


Check = Callable[[Store], Awaitable[None]]

CHECKS: tuple[Check, ...] = (
    remembers_a_run_as_it_was_given,
    reserves_and_books_in_one_go,
    gives_back_the_reply,
    waits_then_refuses_at_the_cap,
    never_reserves_above_the_cap_together,
    books_an_unknown_outcome_in_full,
    refunds_what_never_left,
    settles_an_attempt_once,
    takes_back_an_opening_that_is_still_queued,
    flags_an_overdraft,
    strands_what_a_dead_driver_left_open,
    books_a_late_reply_and_keeps_it_if_none_is_there,
    lets_only_one_driver_claim,
    keeps_terminal_states_final,
    tells_the_driver_of_a_cancel,
    buries_the_dead,
    cancels_the_run_of_a_dead_driver_that_was_asked_to_cancel,
    settles_only_what_the_same_driver_opened,
    frees_the_money_of_attempts_that_were_never_settled,
    lets_one_bad_write_harm_nobody_else,
    lists_what_waits_for_a_worker_oldest_first,
    knows_which_workers_are_there,
    numbers_events_without_gaps,
    remembers_a_step_once,
    takes_over_entries_free_of_charge,
    orders_the_journal,
    finds_runs_by_what_people_write,
    starts_a_child_once,
    overwrites_partials,
    forgets_a_run_with_everything_in_it,
    restores_a_run_from_elsewhere,
    wakes_whoever_waits_for_a_change,
    writes_what_nobody_waits_for,
    changes_the_cap_of_an_unfinished_run,
    hands_a_resting_run_to_the_workers,
    books_what_a_failure_says_it_cost,
    remembers_processes_until_they_are_seen_dead,
)

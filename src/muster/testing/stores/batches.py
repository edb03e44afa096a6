"""What every store must do for batches: planned with their money, claimed, moved on, settled, dismissed."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

from dataclasses import replace
from decimal import Decimal

from muster.domain.batch import Batch, BatchEndpoint, BatchState, KnownIds, Member, Plan, Tally, Tariff
from muster.domain.budget import Granted, Refused, Wait
from muster.domain.dispatch import Dispatch, Fallback, Mode
from muster.domain.entry import AttemptState, EntryState, Failed, Settlement
from muster.domain.errors import BadArgument, Conflict, KeyTaken, LeaseLost
from muster.domain.ids import BatchId, RunId
from muster.domain.money import Microdollars
from muster.domain.price import Price, Rates
from muster.domain.run import Driver, RunState
from muster.store.base import Advance, BatchClaim, Dismissal, ResultPage, RunRelease, Store
from muster.testing.stores.values import DRIVER, NOW, OTHER, SECRET, driven, new_run, opening, raises, replied, settling

ONE = Decimal(1)
RATES = Rates(input=ONE, output=5 * ONE, cache_read=ONE / 10, cache_write=ONE, cache_write_1h=2 * ONE)
TARIFF = Tariff(model="m", batch=Price(base=RATES, tiers=((200_000, RATES),)), live=None)
ENDPOINT = BatchEndpoint(kind="anthropic", base_url="http://127.0.0.1:1", account="acc", variable="KEY")


def planning(run: RunId, epoch: int, count: int = 3, *, name: str = "b1", **rest: int) -> Plan:
    """Make a batch of a run's first attempts."""
    members = [
        Member(opening=opening(run, epoch, f"{name}/{place}", **rest), place=place, size=20, max_tokens=5)
        for place in range(count)
    ]
    return Plan(
        id=BatchId(name),
        endpoint=ENDPOINT,
        nonce="nonce",
        tariffs={"sim/echo": TARIFF},
        members=members,
        bodies=[],
        bytes=0,
        at=NOW,
    )


async def stored(store: Store, name: str = "b1") -> Batch:
    """Return a batch that must be there."""
    batch = await store.batches.get(BatchId(name))
    assert batch is not None
    return batch


async def planned(store: Store, count: int = 3) -> tuple[RunId, Batch]:
    """Store a run with a planned batch."""
    run, claim = await driven(store)
    assert list(await store.batches.plan(planning(run, claim.epoch, count))) == [Granted()] * count
    return run, await stored(store)


def claiming(batch: Batch, driver: Driver = DRIVER, *, alone: bool = False) -> BatchClaim:
    """Make a request for the claim on a batch."""
    return BatchClaim(batch=batch, driver=driver, at=NOW, until=NOW + 30, alone=alone)


async def running(store: Store) -> Batch:
    """Store a batch that the provider has."""
    _, batch = await planned(store)
    claimed = await store.batches.claim(claiming(batch))
    assert claimed is not None
    has = replace(claimed, state=BatchState.RUNNING, provider_id="p1")
    assert await store.batches.advance(Advance(batch=has, was=BatchState.SENT, kind="batch.submitted", at=NOW))
    return await stored(store)


async def _settle(store: Store, batch: Batch, places: tuple[int, ...], outcome: object) -> int:
    by_place = {member.place: member for member in await store.batches.members(batch.id, 0, 1000)}
    settlements = [
        Settlement(
            attempt=by_place[place].attempt,
            outcome=outcome,  # type: ignore[arg-type]
            reserved=by_place[place].reserved,
            levels=by_place[place].levels,
            at=NOW + 5,
            live_cost=Microdollars(80),
            position=by_place[place].position,
        )
        for place in places
    ]
    page = ResultPage(batch=batch.id, settlements=settlements, lines=(b"{}\n", b"{}\n"), at=NOW + 5)
    return await store.batches.settle(page)


async def remembers_how_a_run_is_dispatched(store: Store) -> None:
    """A run comes back with the way its calls are sent."""
    dispatch = Dispatch(mode=Mode.BATCH, fallback=Fallback.LIVE, batches=7, cache=False)
    await store.runs.create(new_run("run1", dispatch=dispatch))
    await store.runs.create(new_run("run2"))
    one, two = await store.runs.get(RunId("run1")), await store.runs.get(RunId("run2"))
    assert one is not None
    assert two is not None
    assert (one.dispatch, two.dispatch.mode) == (dispatch, Mode.LIVE)


async def plans_a_batch_with_its_money_and_its_exact_bytes(store: Store) -> None:
    """The members, their money and the bytes that will be sent are there together."""
    run, claim = await driven(store, cap=1000)
    pieces = [await store.batches.pack(piece) for piece in (b"first", b"second")]
    plan = replace(planning(run, claim.epoch, 3, cap=1000), bodies=pieces, bytes=11)
    await store.batches.plan(plan)
    batch = await stored(store)
    assert (batch.state, batch.requests, batch.bytes, batch.reserved) == (BatchState.PLANNED, 3, 11, 300)
    assert (batch.endpoint, batch.tariffs["sim/echo"], batch.nonce) == (ENDPOINT, TARIFF, "nonce")
    assert [piece async for piece in store.batches.bodies(batch.id)] == [b"first", b"second"]
    found = await store.runs.get(run)
    assert found is not None
    assert (found.spent.reserved, found.calls.total) == (300, 3)
    assert await store.batches.parked(run, "b1/2") == ("b1", 2)
    assert [member.state for member in await store.batches.members(batch.id, 0, 3)] == [AttemptState.PARKED] * 3
    assert await store.batches.runs(batch.id) == {run: 3}
    assert [other.id for other in await store.batches.of_run(run)] == ["b1"]


async def lists_batches_page_by_page(store: Store) -> None:
    """The newest come first; what is older than a batch follows it, of some states or of all."""
    run, claim = await driven(store)
    for place, name in enumerate(("b1", "b2", "b3", "b4")):
        plan = planning(run, claim.epoch, 1, name=name)
        await store.batches.plan(replace(plan, at=NOW + place // 2))  # two and two at the same time
    first = await store.batches.select(limit=3)
    last = (first[-1].created_at, first[-1].id)
    assert [batch.id for batch in first] == ["b4", "b3", "b2"]
    assert [batch.id for batch in await store.batches.select(limit=3, before=last)] == ["b1"]
    assert [batch.id for batch in await store.batches.select((BatchState.PLANNED,), 3, last)] == ["b1"]
    assert await store.batches.select((BatchState.SENT,), 3, last) == []


async def plans_nothing_when_one_member_has_no_money(store: Store) -> None:
    """All members are granted or nothing is written, and every member learns its own decision."""
    run, claim = await driven(store, cap=250)
    decisions = await store.batches.plan(planning(run, claim.epoch, 3, cap=250))
    assert [type(decision) for decision in decisions] == [Granted, Granted, Wait]
    assert await store.batches.get(BatchId("b1")) is None
    found = await store.runs.get(run)
    assert found is not None
    assert (found.spent.reserved, found.calls.total) == (0, 0)
    never = await store.batches.plan(planning(run, claim.epoch, 1, most=300, cap=250))
    assert [type(decision) for decision in never] == [Refused]


async def does_not_plan_what_was_answered_meanwhile(store: Store) -> None:
    """A call that has its reply by now is refused, and with it nothing else is written."""
    run, batch = await planned(store, 1)
    await _settle(store, batch, (0,), replied(40))
    found = await store.runs.get(run)
    assert found is not None
    again = opening(run, found.lease.epoch, "b1/0", n=2)
    plan = replace(
        planning(run, found.lease.epoch, 0, name="b2"),
        members=[Member(opening=again, place=0, size=20, max_tokens=5)],
    )
    decisions = await store.batches.plan(plan)
    assert isinstance(decisions[0], KeyTaken)
    assert await store.batches.get(BatchId("b2")) is None


async def turns_away_a_driver_that_was_replaced(store: Store) -> None:
    """A plan of an older epoch is not stored."""
    run, claim = await driven(store)
    decisions = await store.batches.plan(planning(run, claim.epoch - 1, 1))
    assert isinstance(decisions[0], LeaseLost)
    assert await store.batches.get(BatchId("b1")) is None


async def lets_only_one_of_creates_that_could_be_confused_be_unresolved(store: Store) -> None:
    """The right to send is given once; asked for alone, not while another create of as many requests is unclear."""
    run, batch = await planned(store)
    claim = await store.runs.get(run)
    assert claim is not None
    for name, count, kind in (("b2", 3, "anthropic"), ("b3", 2, "anthropic"), ("b4", 3, "openai")):
        plan = planning(run, claim.lease.epoch, count, name=name)
        await store.batches.plan(replace(plan, endpoint=replace(ENDPOINT, kind=kind)))
    claimed = await store.batches.claim(claiming(batch, alone=True))
    assert claimed == await stored(store)
    assert (claimed.state, claimed.driver, claimed.epoch) == (BatchState.SENT, DRIVER, batch.epoch + 1)
    assert await store.batches.claim(claiming(batch, OTHER, alone=True)) is None
    alike = await stored(store, "b2")
    assert await store.batches.claim(claiming(alike, alone=True)) is None
    for name in ("b3", "b4"):  # which has another count, or another provider
        assert await store.batches.claim(claiming(await stored(store, name), alone=True)) is not None
    for grace_until, may_go in ((NOW + 1, False), (NOW, True)):
        unclear = replace(await stored(store), grace_until=grace_until, stalled=True, note="no answer came")
        assert await store.batches.advance(Advance(batch=unclear, was=BatchState.SENT, kind="batch.unclear", at=NOW))
        assert (await store.batches.claim(claiming(alike, alone=True)) is not None) is may_go
    assert [found.id for found in await store.batches.stalled(10)] == ["b1"]
    assert (await stored(store)).grace_until == NOW


async def gives_an_id_of_the_provider_to_one_batch(store: Store) -> None:
    """A second batch of the account cannot be given it; one that only seems to have it is told apart."""
    run, batch = await planned(store)
    claim = await store.runs.get(run)
    assert claim is not None
    await store.batches.plan(planning(run, claim.lease.epoch, 2, name="b2"))
    took = []
    for planned_batch in (batch, await stored(store, "b2")):
        claimed = await store.batches.claim(claiming(planned_batch))
        assert claimed is not None
        adopting = replace(claimed, state=BatchState.RUNNING, provider_id="p1", adopted=True)
        step = Advance(batch=adopting, was=BatchState.SENT, kind="batch.adopted", at=NOW)
        took.append(await store.batches.advance(step))
    assert took == [True, False]
    assert (await stored(store, "b2")).state is BatchState.SENT
    assert await store.batches.known(ENDPOINT) == KnownIds(assumed=frozenset({"p1"}))


async def remembers_why_a_batch_does_not_get_on(store: Store) -> None:
    """What it waits for, since when nothing was heard, how many uploads failed, and whose claim it is."""
    _, batch = await planned(store)
    waiting = replace(batch, note="it waits", stalled=True, waits_for=BatchId("b0"), uploads=2)
    assert await store.batches.advance(Advance(batch=waiting, was=BatchState.PLANNED, kind="batch.waiting", at=NOW))
    assert await stored(store) == waiting
    assert await store.batches.stalled(10) == [waiting]
    claimed = await store.batches.claim(replace(claiming(waiting), by_hand=True))
    assert claimed is not None
    assert (claimed.by_hand, claimed.stalled, claimed.waits_for, claimed.uploads) == (True, False, None, 2)
    assert await store.batches.stalled(10) == []
    assert await store.batches.release(claimed)
    assert not (await stored(store)).by_hand


async def gives_one_process_the_turn_at_a_running_batch(store: Store) -> None:
    """A turn is taken by one, kept through progress and the end of the batch, free again when it is ended.

    An operator's takes it from another process.
    """
    batch = await running(store)
    turn = claiming(batch)
    assert await store.batches.take_turn(turn)
    assert not await store.batches.take_turn(claiming(batch, OTHER))
    held = await stored(store)
    assert (held.driver, held.lease_until, held.epoch) == (DRIVER, turn.until, batch.epoch)
    for state, kind in ((BatchState.RUNNING, "batch.progress"), (BatchState.ENDED, "batch.ended")):
        step = Advance(batch=replace(held, state=state), was=BatchState.RUNNING, kind=kind, at=NOW)
        assert await store.batches.advance(step)
        assert (await stored(store)).lease_until == turn.until
    assert not await store.batches.keep_turn(batch.id, OTHER, NOW + 99)
    assert not await store.batches.end_turn(batch.id, OTHER)
    assert await store.batches.keep_turn(batch.id, DRIVER, NOW + 99)
    assert await store.batches.end_turn(batch.id, DRIVER)
    assert ((await stored(store)).driver, (await stored(store)).lease_until) == (None, 0.0)
    assert await store.batches.take_turn(claiming(await stored(store)))
    assert await store.batches.take_turn(replace(claiming(await stored(store), OTHER), by_hand=True))
    assert ((await stored(store)).driver, (await stored(store)).by_hand) == (OTHER, True)
    assert not await store.batches.keep_turn(batch.id, DRIVER, NOW + 99)
    assert await store.batches.end_turn(batch.id, OTHER)
    assert not (await stored(store)).by_hand
    assert await store.batches.take_turn(claiming(await stored(store), OTHER))
    over = await stored(store)
    collected = Advance(
        batch=replace(over, state=BatchState.COLLECTED), was=BatchState.ENDED, kind="batch.collected", at=NOW
    )
    assert await store.batches.advance(collected)
    assert not await store.batches.keep_turn(batch.id, OTHER, NOW + 99)


async def refuses_writes_under_a_claim_that_was_taken_over(store: Store) -> None:
    """Whoever claims a sent batch ends the claim before: renewing, releasing, moving on and dismissing are refused."""
    _, batch = await planned(store)
    first = await store.batches.claim(claiming(batch))
    assert first is not None
    second = await store.batches.claim(claiming(first, OTHER))
    assert second is not None
    assert (second.driver, second.epoch, second.sent_at) == (OTHER, first.epoch + 1, first.sent_at)
    assert await store.batches.claim(claiming(first)) is None
    assert not await store.batches.renew(first, NOW + 99)
    assert not await store.batches.release(first)
    running = replace(first, state=BatchState.RUNNING, provider_id="p1")
    step = Advance(batch=running, was=BatchState.SENT, kind="batch.submitted", at=NOW)
    assert not await store.batches.advance(step)
    refused = replace(first, state=BatchState.REFUSED)
    dismissal = Dismissal(
        advance=Advance(batch=refused, was=BatchState.SENT, kind="batch.refused", at=NOW),
        outcome=Failed(error={"code": "x"}, uncertain=False, gives_up=True),
    )
    assert not await store.batches.dismiss(dismissal)
    assert await stored(store) == second
    assert await store.batches.renew(second, NOW + 99)
    assert (await stored(store)).lease_until == NOW + 99
    assert await store.batches.release(second)
    assert ((await stored(store)).driver, (await stored(store)).lease_until) == (None, 0.0)


async def counts_attempts_in_batches_that_were_given_up(store: Store) -> None:
    """Only attempts after the given number count, and only those whose batch was given up."""
    run, batch = await planned(store)
    assert await store.batches.abandoned(run, "b1/0", 0) == 0
    given_up = replace(batch, state=BatchState.ABANDONED)
    advance = Advance(batch=given_up, was=BatchState.PLANNED, kind="batch.abandoned", at=NOW)
    assert await store.batches.dismiss(Dismissal(advance=advance, outcome=Failed(error={"code": "x"}, uncertain=True)))
    assert await store.batches.abandoned(run, "b1/0", 0) == 1
    assert await store.batches.abandoned(run, "b1/0", 1) == 0
    assert await store.batches.max_tokens(batch.id) == 15


async def counts_a_call_once_when_a_late_reply_was_faster_than_its_batch(store: Store) -> None:
    """A member whose call got the late reply of an older driver is paid, and the call is counted once."""
    run, claim = await driven(store)
    live = opening(run, claim.epoch, "b1/0")
    await store.journal.open(live)
    taken = await store.leases.claim(run, OTHER, claim.epoch, NOW, NOW + 15)
    again = Member(opening=opening(run, taken.epoch, "b1/0", n=2), place=0, size=20, max_tokens=5)
    other = Member(opening=opening(run, taken.epoch, "b1/1"), place=1, size=20, max_tokens=5)
    await store.batches.plan(replace(planning(run, taken.epoch, 0), members=[again, other]))
    assert (await store.journal.settle(settling(live, replied(30, "late")))).kept
    assert await _settle(store, await stored(store), (0, 1), replied(40, "new")) == 2
    entry, found = await store.journal.find(run, "b1/0"), await store.runs.get(run)
    assert entry is not None
    assert entry.reply is not None
    assert found is not None
    assert (entry.reply.text, found.calls.done, found.spent.billed) == ("late", 2, 110)


async def moves_a_batch_on_once_and_tells_why(store: Store) -> None:
    """A step from a state that it has left is refused; every step is told to the run."""
    run, batch = await planned(store)
    claimed = await store.batches.claim(claiming(batch, alone=True))
    assert claimed is not None
    running = replace(claimed, state=BatchState.RUNNING, provider_id="p1", submitted_at=NOW, note="because")
    step = Advance(batch=running, was=BatchState.SENT, kind="batch.submitted", at=NOW)
    assert await store.batches.advance(step)
    assert not await store.batches.advance(step)
    found = await stored(store)
    assert (found.state, found.provider_id, found.note) == (BatchState.RUNNING, "p1", "because")
    assert await store.batches.known(ENDPOINT) == KnownIds(sure=frozenset({"p1"}))
    assert await store.batches.known(replace(ENDPOINT, kind="openai")) == KnownIds()
    events = [event for event in await store.events.read(run, 0, 100) if event.kind == "batch.submitted"]
    assert [event.data["why"] for event in events] == ["because"]
    assert [found.id for found in await store.batches.match("p1")] == ["b1"]


async def settles_a_member_once(store: Store) -> None:
    """A page books cost, reply and counts in one go; what was settled before is passed over."""
    run, batch = await planned(store)
    assert await _settle(store, batch, (0, 1), replied(40)) == 2
    assert await _settle(store, batch, (1, 2), replied(50)) == 1
    found = await store.runs.get(run)
    assert found is not None
    assert (found.spent.reserved, found.spent.billed, found.calls.done) == (0, 130, 3)
    after = await stored(store)
    assert (after.tally, after.cost, after.live_cost) == (Tally(succeeded=3), 130, 240)
    assert (after.input_tokens, after.output_tokens) == (9, 6)
    entry = await store.journal.find(run, "b1/1")
    assert entry is not None
    assert entry.reply is not None
    assert (entry.state, entry.reply.cost) == (EntryState.DONE, 40)
    assert await _settle(store, batch, (0, 1), replied(60)) == 0
    assert [piece async for piece in store.batches.lines(batch.id)] == [b"{}\n{}\n"] * 2
    saving = await store.batches.saving(run)
    assert (saving.batches, saving.cost, saving.live_cost, saving.parked) == (1, 130, 240, 0)
    (share,) = await store.batches.shares(run, "b1/1")
    assert (share.batch, share.calls, share.cost, share.parked) == (batch.id, 1, 40, 0)
    assert await store.batches.shares(run, "b2") == []


async def tells_the_ends_of_members_apart(store: Store) -> None:
    """Errored, canceled, expired and uncertain members are counted apart; only the last keeps its money booked."""
    run, batch = await planned(store, 5)
    ends = {AttemptState.FAILED: True, AttemptState.CANCELED: True, AttemptState.EXPIRED: False}
    for place, (state, gives_up) in enumerate(ends.items()):
        outcome = Failed(error={"code": "x"}, uncertain=False, gives_up=gives_up, ended_as=state)
        await _settle(store, batch, (place,), outcome)
    await _settle(store, batch, (3,), Failed(error={"code": "x"}, uncertain=True, again_in=0.0))
    after = await stored(store)
    assert after.tally == Tally(errored=1, canceled=1, expired=1, uncertain=1)
    assert [member.place for member in await store.batches.waiting(batch.id, -1, 10)] == [4]
    found = await store.runs.get(run)
    assert found is not None
    assert (found.spent.reserved, found.spent.uncertain, found.calls.failed) == (100, 100, 2)
    entry = await store.journal.find(run, "b1/2")
    assert entry is not None
    assert entry.state is EntryState.OPEN


async def leaves_parked_calls_alone_when_a_driver_dies(store: Store) -> None:
    """What a provider holds is not uncertain because a process is gone: a later driver finds it parked."""
    run, batch = await planned(store)
    before = await store.runs.get(run)
    assert before is not None
    await store.leases.expire(run, before.lease.epoch, NOW + 1, "it died")
    claim = await store.leases.claim(run, OTHER, before.lease.epoch + 1, NOW + 2, NOW + 17)
    assert claim.uncertain == 0
    assert await store.batches.parked(run, "b1/0") == ("b1", 0)
    assert await _settle(store, batch, (0, 1, 2), replied(40)) == 3


async def lets_go_of_a_waiting_run(store: Store) -> None:
    """A run may rest without a driver while its batches are under way; workers find it, and cancel ends it."""
    run, batch = await planned(store)
    found = await store.runs.get(run)
    assert found is not None
    ending = RunRelease(state=RunState.WAITING, reason="left_waiting", at=NOW + 1)
    await store.leases.release(run, found.lease.epoch, ending)
    resting = await store.runs.get(run)
    assert resting is not None
    assert (resting.state, resting.lease.driver, resting.ended_at) == (RunState.WAITING, None, None)
    await raises(Conflict, store.leases.expire(run, resting.lease.epoch, NOW, "nobody died"))
    await raises(Conflict, store.runs.delete(run, NOW))
    canceled = await store.runs.cancel(run, NOW + 2)
    assert canceled.state is RunState.CANCELED
    await raises(Conflict, store.runs.delete(run, NOW))  # its batch still holds its money
    await _settle(store, batch, (0, 1, 2), replied(40))
    await store.runs.delete(run, NOW)


async def gives_up_a_call(store: Store) -> None:
    """A call that failed in enough batches is failed, once."""
    run, batch = await planned(store, 1)
    found = await store.runs.get(run)
    assert found is not None
    await _settle(store, batch, (0,), Failed(error={"code": "x"}, uncertain=False, ended_as=AttemptState.EXPIRED))
    for _ in range(2):
        await store.batches.give_up(run, found.lease.epoch, "b1/0", {"code": "y"}, NOW)
    entry = await store.journal.find(run, "b1/0")
    assert entry is not None
    assert (entry.state, entry.error) == (EntryState.FAILED, {"code": "y"})
    after = await store.runs.get(run)
    assert after is not None
    assert after.calls.failed == 1


async def notes_a_wish_to_cancel(store: Store) -> None:
    """A batch that is over cannot be canceled."""
    _, batch = await planned(store)
    assert await store.batches.ask_cancel(batch.id)
    assert (await stored(store)).cancel_requested
    over = replace(batch, state=BatchState.REFUSED, collected_at=NOW)
    await store.batches.advance(Advance(batch=over, was=BatchState.PLANNED, kind="batch.refused", at=NOW))
    assert not await store.batches.ask_cancel(batch.id)


async def keeps_one_nonce(store: Store) -> None:
    """The first nonce stays."""
    assert await store.batches.nonce("first") == "first"
    assert await store.batches.nonce("second") == "first"


async def refuses_bodies_with_a_secret(store: Store) -> None:
    """What is sent is stored as it is, so a configured secret cannot be in it; stores in checks have `SECRET`."""
    store.batches.check("key", "an honest request")
    for key, text in ((f"key/{SECRET}", "text"), ("key", f"say {SECRET}")):
        try:
            store.batches.check(key, text)
        except BadArgument:
            continue
        raise AssertionError("a secret would have been stored")


CHECKS = (
    remembers_how_a_run_is_dispatched,
    plans_a_batch_with_its_money_and_its_exact_bytes,
    lists_batches_page_by_page,
    plans_nothing_when_one_member_has_no_money,
    does_not_plan_what_was_answered_meanwhile,
    turns_away_a_driver_that_was_replaced,
    lets_only_one_of_creates_that_could_be_confused_be_unresolved,
    gives_an_id_of_the_provider_to_one_batch,
    remembers_why_a_batch_does_not_get_on,
    gives_one_process_the_turn_at_a_running_batch,
    refuses_writes_under_a_claim_that_was_taken_over,
    counts_attempts_in_batches_that_were_given_up,
    counts_a_call_once_when_a_late_reply_was_faster_than_its_batch,
    moves_a_batch_on_once_and_tells_why,
    settles_a_member_once,
    tells_the_ends_of_members_apart,
    leaves_parked_calls_alone_when_a_driver_dies,
    lets_go_of_a_waiting_run,
    gives_up_a_call,
    notes_a_wish_to_cancel,
    keeps_one_nonce,
    refuses_bodies_with_a_secret,
)

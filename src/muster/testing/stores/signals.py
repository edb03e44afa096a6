"""What every store must do about signals: each is stored once, taken once, in order, and wakes who waits for it."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

import asyncio
from dataclasses import replace

from muster.domain.entry import AwaitedSignal, EntryKind, NewSignal
from muster.domain.errors import AwaitsSignal, Conflict, LeaseLost
from muster.domain.ids import RunId
from muster.domain.run import RunState
from muster.store.base import RunRelease, SignalTaking, Store
from muster.testing.stores.values import NOW, OTHER, SECRET, Check, driven, new_run, raises, stored

REVIEW = NewSignal(address="lineage:run1", channel="review", payload={"approved": True}, client_id="c1", at=NOW)


def taking(run: RunId, epoch: int, key: str, *, most: int = 1, even_none: bool = False) -> SignalTaking:
    """Make a request for the next signals of the channel."""
    return SignalTaking(
        run=run,
        epoch=epoch,
        key=key,
        digest="d",
        address=REVIEW.address,
        channel=REVIEW.channel,
        at=NOW + 2,
        most=most,
        even_none=even_none,
    )


def waiting(*awaited: AwaitedSignal) -> RunRelease:
    """Make the release of a run that waits for signals only."""
    return RunRelease(state=RunState.WAITING, reason=AwaitsSignal.code, at=NOW + 1, awaited=awaited)


AWAITED = AwaitedSignal(address=REVIEW.address, channel=REVIEW.channel)


async def takes_each_signal_once_and_in_order(store: Store) -> None:
    """Signals are numbered in their channel, and each is taken by one key, with an entry that remembers it."""
    run, claim = await driven(store)
    for number in range(3):
        sent = await store.signals.send(replace(REVIEW, client_id=f"c{number}", payload=number))
        assert sent.seq == number + 1
    await store.signals.send(replace(REVIEW, client_id="elsewhere", channel="stop"))
    first, second = await asyncio.gather(
        store.signals.take(taking(run, claim.epoch, "a")), store.signals.take(taking(run, claim.epoch, "b"))
    )
    assert [one.payload for one in (*(first or ()), *(second or ()))] == [0, 1]
    rest = await store.signals.take(taking(run, claim.epoch, "c", most=10))
    assert [one.payload for one in rest or ()] == [2]
    assert await store.signals.take(taking(run, claim.epoch, "d")) is None
    assert await store.journal.find(run, "d") is None
    entry = await store.journal.find(run, "a")
    assert entry is not None
    assert (entry.kind, entry.value[0]["payload"]) == (EntryKind.SIGNAL, 0)
    again = await store.signals.take(taking(run, claim.epoch, "a"))
    assert again is not None
    assert [one.payload for one in again] == [0]
    assert [one.payload for one in await store.signals.read(REVIEW.address, "review")] == [0, 1, 2]
    assert not await store.signals.untaken(REVIEW.address, "review")


async def gives_no_run_what_was_read_outside(store: Store) -> None:
    """What is marked as read is returned once, in order, and stays in the history of its channel."""
    run, claim = await driven(store)
    for number in range(3):
        await store.signals.send(replace(REVIEW, client_id=f"c{number}", payload=number))
    assert [one.payload for one in await store.signals.mark_read(REVIEW.address, "review", 2)] == [0, 1]
    taken = await store.signals.take(taking(run, claim.epoch, "k", most=10))
    assert [one.payload for one in taken or ()] == [2]
    assert not await store.signals.mark_read(REVIEW.address, "review", 2)
    assert len(await store.signals.read(REVIEW.address, "review")) == 3


async def takes_only_the_signals_that_are_named(store: Store) -> None:
    """Others stay where they are, and one that somebody else has taken is not taken again."""
    run, claim = await driven(store)
    for number in range(3):
        await store.signals.send(replace(REVIEW, client_id=f"c{number}", payload=number))
    taken = await store.signals.take(replace(taking(run, claim.epoch, "a", most=10), only=(2,)))
    assert [one.payload for one in taken or ()] == [1]
    assert await store.signals.take(replace(taking(run, claim.epoch, "b", most=10), only=(2,))) is None
    assert [one.payload for one in await store.signals.untaken(REVIEW.address, "review", 10)] == [0, 2]


async def remembers_that_there_was_no_signal(store: Store) -> None:
    """A key that was asked for what is there, and found nothing, stays empty whatever comes later."""
    run, claim = await driven(store)
    assert await store.signals.take(taking(run, claim.epoch, "k", even_none=True)) == []
    await store.signals.send(REVIEW)
    assert await store.signals.take(taking(run, claim.epoch, "k", even_none=True)) == []
    assert len(await store.signals.untaken(REVIEW.address, "review")) == 1


async def stores_a_client_id_once(store: Store) -> None:
    """Sending again changes nothing, also after the signal was taken; the id of another signal is refused."""
    run, claim = await driven(store)
    first = await store.signals.send(REVIEW)
    await store.signals.take(taking(run, claim.epoch, "k"))
    assert await store.signals.send(replace(REVIEW, at=NOW + 9)) == first
    assert not await store.signals.untaken(REVIEW.address, "review")
    await raises(Conflict, store.signals.send(replace(REVIEW, payload={"approved": False})))
    other = await store.signals.send(replace(REVIEW, address="lineage:run2"))
    assert other.seq == 1


async def lets_only_the_driver_take_signals(store: Store) -> None:
    """A driver that was replaced takes nothing, and the signal stays for the next one."""
    run, claim = await driven(store)
    await store.signals.send(REVIEW)
    second = await store.leases.claim(run, OTHER, claim.epoch, NOW + 20, NOW + 35)
    await raises(LeaseLost, store.signals.take(taking(run, claim.epoch, "k")))
    taken = await store.signals.take(taking(run, second.epoch, "k"))
    assert taken is not None
    assert len(taken) == 1


async def queues_a_run_whose_signal_arrives(store: Store) -> None:
    """A run that was let go of for a signal is left alone until one arrives on that channel, then it is submitted."""
    run, claim = await driven(store)
    released = await store.leases.release(run, claim.epoch, waiting(AWAITED))
    assert (released.state, released.ended_reason) == (RunState.WAITING, AwaitsSignal.code)
    await store.signals.send(replace(REVIEW, channel="stop", client_id="other"))
    assert not await store.runs.submitted(10)
    await store.signals.send(REVIEW)
    assert [one.id for one in await store.runs.submitted(10)] == [run]
    assert (await stored(store, run)).state is RunState.QUEUED
    again = await store.leases.claim(run, OTHER, claim.epoch, NOW + 2, NOW + 17)
    await store.signals.send(replace(REVIEW, client_id="late"))  # while it is driven
    assert (await stored(store, run)).state is RunState.RUNNING
    await store.leases.release(run, again.epoch, waiting(AWAITED))
    assert (await stored(store, run)).state is RunState.QUEUED, "the signal that came before the release is lost"


async def queues_a_run_whose_time_to_wait_is_over(store: Store) -> None:
    """A run with a limit to its waiting is queued when that is over, and not before."""
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, waiting(replace(AWAITED, until=NOW + 50)))
    assert not (await store.queue.left_behind(NOW + 49)).signals_due
    assert await store.signals.wake(NOW + 49) == 0
    assert (await store.queue.left_behind(NOW + 50)).signals_due
    assert await store.signals.wake(NOW + 50) == 1
    assert (await stored(store, run)).state is RunState.QUEUED
    assert await store.signals.wake(NOW + 51) == 0


async def queues_the_root_when_a_child_receives(store: Store) -> None:
    """Children are driven with the run above them: that one is queued."""
    root, claim = await driven(store)
    child = await store.runs.create(new_run("child1", parent=root, parent_key="c"))
    its = await store.leases.claim(child.id, OTHER, child.lease.epoch, NOW, NOW + 15)
    address = child.lineage_level
    await store.leases.release(child.id, its.epoch, waiting(replace(AWAITED, address=address)))
    await store.signals.send(replace(REVIEW, address=address))
    await store.leases.release(root, claim.epoch, waiting())
    assert (await stored(store, root)).state is RunState.QUEUED, "the child was answered before its parent let go"
    assert [one.id for one in await store.runs.submitted(10)] == [root]


async def forgets_what_a_canceled_run_waited_for(store: Store) -> None:
    """A canceled run is final, whatever arrives."""
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, waiting(AWAITED))
    await store.runs.cancel(run, NOW + 2)
    await store.signals.send(REVIEW)
    assert (await stored(store, run)).state is RunState.CANCELED
    await store.runs.delete(run, NOW + 3)
    assert not await store.signals.read(REVIEW.address, "review")


async def forgets_what_a_deleted_run_waited_for(store: Store) -> None:
    """A run whose time is over is queued; deleted then, it is waited for by nobody."""
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, waiting(replace(AWAITED, until=NOW + 50)))
    assert await store.signals.wake(NOW + 50) == 1
    await store.runs.delete(run, NOW + 51)
    assert not (await store.queue.left_behind(NOW + 60)).signals_due


async def stores_no_secret_of_a_signal(store: Store) -> None:
    """Secrets are taken out of payloads and senders."""
    await store.signals.send(replace(REVIEW, payload={"text": f"use {SECRET}"}, sender=SECRET))
    (sent,) = await store.signals.read(REVIEW.address, "review")
    assert SECRET not in str(sent)


CHECKS: tuple[Check, ...] = (
    takes_each_signal_once_and_in_order,
    gives_no_run_what_was_read_outside,
    takes_only_the_signals_that_are_named,
    remembers_that_there_was_no_signal,
    stores_a_client_id_once,
    lets_only_the_driver_take_signals,
    queues_a_run_whose_signal_arrives,
    queues_a_run_whose_time_to_wait_is_over,
    queues_the_root_when_a_child_receives,
    forgets_what_a_canceled_run_waited_for,
    forgets_what_a_deleted_run_waited_for,
    stores_no_secret_of_a_signal,
)

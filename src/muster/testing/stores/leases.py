"""What every store must do about drivers: who may write, and what becomes of the work of the dead."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace

from muster.domain.entry import (
    EntryKind,
    Unsent,
)
from muster.domain.errors import Conflict, LeaseLost
from muster.domain.ids import RunId
from muster.domain.run import Driver, Lease, OwnedProcess, RunState
from muster.store.base import Claim, Record, RunRelease, Store
from muster.testing.stores.values import (
    DRIVER,
    NOW,
    OTHER,
    Check,
    driven,
    new_run,
    opening,
    raises,
    replied,
    settling,
    stored,
)


async def settles_what_a_dead_driver_left_open(store: Store) -> None:
    """A new driver finds open attempts booked as uncertain, and the old one may not write any more."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k", most=100)
    await store.journal.open(opened)
    second = await store.leases.claim(run, OTHER, claim.epoch, NOW + 20, NOW + 35)
    assert (second.epoch, second.uncertain, second.uncertain_cost) == (claim.epoch + 1, 1, 100)
    spent = (await stored(store, run)).spent
    assert (spent.reserved, spent.uncertain) == (0, 100)
    await raises(LeaseLost, store.journal.open(opening(run, claim.epoch, "other")))
    await raises(LeaseLost, store.leases.beat(run, claim.epoch, NOW + 60, 1.0, RunState.RUNNING))
    record = Record(run=run, epoch=claim.epoch, key="s", kind=EntryKind.STEP, digest="", value=1, at=NOW)
    await raises(LeaseLost, store.journal.record(record))


async def keeps_one_reply_when_a_late_one_was_faster(store: Store) -> None:
    """A late reply that became the reply stays it: the attempt of the new driver is paid, and told that it was late."""
    run, claim = await driven(store)
    first = opening(run, claim.epoch, "k")
    await store.journal.open(first)
    taken = await store.leases.claim(run, OTHER, claim.epoch, NOW + 20, NOW + 35)
    second, other = opening(run, taken.epoch, "k", n=2), opening(run, taken.epoch, "other")
    await asyncio.gather(store.journal.open(second), store.journal.open(other))
    late = await store.journal.settle(settling(first, replied(30, "late")))
    new, beside = await asyncio.gather(
        store.journal.settle(settling(second, replied(40, "new"))), store.journal.settle(settling(other, replied(5)))
    )
    assert (late.kept, new.kept, beside.kept) == (True, False, True)
    entry = await store.journal.find(run, "k")
    assert entry is not None
    assert entry.reply is not None
    assert entry.reply.text == "late"
    after = await stored(store, run)
    assert (after.calls.done, after.spent.billed, after.spent.uncertain) == (2, 75, 0)


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
    after = await stored(store, run)
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
    ending = RunRelease(state=RunState.COMPLETED, reason="done", at=NOW + 2, result={"ok": True}, active=1.5)
    over = await store.leases.release(run, claim.epoch, ending)
    assert (over.state, over.result, over.ended_reason, over.active) == (
        RunState.COMPLETED,
        {"ok": True},
        "done",
        1.5,
    )
    assert over.lease.driver is None
    await raises(Conflict, store.leases.claim(run, OTHER, claim.epoch, NOW, NOW + 15))
    await raises(Conflict, store.runs.cancel(run, NOW))
    await raises(Conflict, store.leases.release(run, claim.epoch, ending))


async def tells_the_driver_of_a_cancel(store: Store) -> None:
    """Canceling a driven run sets a mark that its heartbeat brings; an idle one is canceled at once."""
    run, claim = await driven(store)
    assert await store.leases.beat(run, claim.epoch, NOW + 30, 1.0, RunState.RUNNING) is False
    await store.runs.cancel(run, NOW)
    assert await store.leases.beat(run, claim.epoch, NOW + 31, 1.0, RunState.RUNNING) is True
    idle = await store.runs.create(new_run("run2"))
    assert (await store.runs.cancel(idle.id, NOW)).state is RunState.CANCELED


async def expires_the_run_of_a_dead_driver(store: Store) -> None:
    """The run of a dead driver is marked interrupted, its money freed, and it can be claimed again."""
    run, claim = await driven(store)
    await store.journal.open(opening(run, claim.epoch, "k", most=100))
    expired = await store.leases.expire(run, claim.epoch, NOW + 5, "its driver died")
    assert (expired.uncertain, expired.uncertain_cost) == (1, 100)
    after = await stored(store, run)
    assert (after.state, after.ended_reason, after.spent.reserved) == (RunState.INTERRUPTED, "driver_died", 0)
    await raises(Conflict, store.leases.expire(run, claim.epoch, NOW + 5, "again"))
    assert (await store.leases.claim(run, OTHER, expired.epoch, NOW, NOW + 15)).uncertain == 0


async def leaves_a_run_to_a_driver_that_renewed_its_lease(store: Store) -> None:
    """Whoever read a lease long ago cannot take the run from a driver that has renewed it since."""
    run, claim = await driven(store)
    seen = (await stored(store, run)).lease
    await store.leases.beat(run, claim.epoch, NOW + 30, 1.0, RunState.RUNNING)
    late = (seen.epoch, NOW + 20, NOW + 35)
    await raises(Conflict, store.leases.claim(run, OTHER, *late, seen_until=seen.until))
    await raises(Conflict, store.leases.expire(run, seen.epoch, NOW + 20, "it seems dead", seen_until=seen.until))
    assert (await stored(store, run)).lease == Lease(epoch=claim.epoch, driver=DRIVER, until=NOW + 30)
    expired = await store.leases.expire(run, seen.epoch, NOW + 31, "it died", seen_until=NOW + 30)
    await store.leases.claim(run, OTHER, expired.epoch, NOW + 31, NOW + 46, seen_until=0.0)


async def cancels_the_run_of_a_dead_driver_that_was_asked_to_cancel(store: Store) -> None:
    """A cancel that the driver did not live to see is carried out when its lease expires."""
    run, claim = await driven(store)
    await store.runs.cancel(run, NOW)
    await store.leases.expire(run, claim.epoch, NOW + 5, "its driver died")
    after = await stored(store, run)
    assert (after.state, after.ended_at) == (RunState.CANCELED, NOW + 5)


async def cancels_a_run_that_its_driver_lets_go_of_before_it_saw_the_cancel(store: Store) -> None:
    """A driver that was stopped just then leaves no run behind that can neither be resumed nor is canceled."""
    run, claim = await driven(store)
    await store.runs.cancel(run, NOW)
    ending = RunRelease(state=RunState.INTERRUPTED, reason="interrupted", at=NOW + 5)
    over = await store.leases.release(run, claim.epoch, ending)
    assert (over.state, over.ended_reason, over.ended_at) == (RunState.CANCELED, "canceled", NOW + 5)


async def cancels_a_run_whose_result_comes_after_the_cancel(store: Store) -> None:
    """A cancel wins over a result or a failure of which its driver tells before it has seen the cancel."""
    for name, state in (("done", RunState.COMPLETED), ("broken", RunState.FAILED)):
        run, claim = await driven(store, name)
        await store.runs.cancel(run, NOW)
        ending = RunRelease(state=state, reason="late", at=NOW + 5, result={"text": "late"})
        over = await store.leases.release(run, claim.epoch, ending)
        assert (over.state, over.ended_reason, over.result) == (RunState.CANCELED, "canceled", None)


async def settles_only_what_the_same_driver_opened(store: Store) -> None:
    """What a driver takes back never touches the attempt of another, nor one that came in the same moment."""
    run, claim = await driven(store)
    second = await store.leases.claim(run, OTHER, claim.epoch, NOW, NOW + 15)
    stale = opening(run, claim.epoch, "k")
    mine = opening(run, second.epoch, "k")
    await asyncio.gather(store.journal.open(mine), store.journal.settle(settling(stale, Unsent())))
    assert (await store.journal.settle(settling(mine, replied(40)))).kept
    assert (await stored(store, run)).spent.billed == 40


async def lists_what_waits_for_a_worker_oldest_first(store: Store) -> None:
    """Old work is not hidden by new runs, nor children by their parents."""
    for i in range(5):
        await store.runs.create(replace(new_run(f"run{i}", submitted=i != 2), created_at=NOW + i))
    child = replace(new_run("child", submitted=True), parent=RunId("run0"), parent_key="c", created_at=NOW + 9)
    await store.runs.create(child)
    assert [run.id for run in await store.runs.submitted(limit=2)] == ["run0", "run1"]
    assert [run.id for run in await store.runs.submitted(limit=9)] == ["run0", "run1", "run3", "run4"]
    first = await store.runs.submitted(limit=2)
    assert [run.id for run in await store.runs.submitted(2, after=first[-1])] == ["run3", "run4"]
    assert [run.id for run in await store.runs.submitted(2, [first[0].workload], first[0])] == ["run1", "run3"]
    assert not await store.runs.submitted(2, ["another"])
    assert [run.id for run in await store.runs.roots(limit=2)] == ["run4", "run3"]


async def knows_which_workers_are_there(store: Store) -> None:
    """A worker is there until it goes, or has not said so for long; after a day it is forgotten."""

    async def present(since: float) -> Mapping[Driver, Collection[str]]:
        return {worker.driver: worker.queues for worker in await store.processes.present(since)}

    await store.processes.register(DRIVER, NOW, {"runs"})
    await store.processes.register(OTHER, NOW + 10)
    await store.processes.register(DRIVER, NOW + 20, {"runs", "battles"})
    assert await present(NOW + 15) == {DRIVER: {"battles", "runs"}}
    assert await present(NOW + 5) == {DRIVER: {"battles", "runs"}, OTHER: set()}
    await store.processes.dismiss(DRIVER)
    assert await present(NOW) == {OTHER: set()}
    await store.processes.register(DRIVER, NOW + 2 * 86_400)
    assert await present(0.0) == {DRIVER: set()}


async def hands_a_resting_run_to_the_workers(store: Store) -> None:
    """An interrupted run can be queued; one that is driven cannot."""
    run, claim = await driven(store)
    await raises(Conflict, store.runs.requeue(run, NOW))
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.INTERRUPTED, reason="stop", at=NOW))
    queued = await store.runs.requeue(run, NOW)
    assert (queued.state, queued.submitted) == (RunState.QUEUED, True)


async def remembers_processes_until_they_are_seen_dead(store: Store) -> None:
    """Processes are given back by host, and forgotten once."""
    ours = OwnedProcess(token="t.1", driver=DRIVER, at=NOW, pid=7, started="boot/9", agent="critic")  # noqa: S106
    registration = OwnedProcess(token="t", driver=DRIVER, at=NOW)  # noqa: S106
    theirs = OwnedProcess(token="u.1", driver=OTHER, at=NOW, pid=7, started="boot/9")  # noqa: S106
    for process in (ours, registration, theirs):
        await store.processes.note(process)
    assert {process.token: process for process in await store.processes.all("here")} == {"t.1": ours, "t": registration}
    await store.processes.forget("t.1")
    await store.processes.forget("t.1")
    assert await store.processes.all("here") == [registration]
    assert await store.processes.all("there") == [theirs]


CHECKS: tuple[Check, ...] = (
    settles_what_a_dead_driver_left_open,
    books_a_late_reply_and_keeps_it_if_none_is_there,
    keeps_one_reply_when_a_late_one_was_faster,
    lets_only_one_driver_claim,
    keeps_terminal_states_final,
    tells_the_driver_of_a_cancel,
    expires_the_run_of_a_dead_driver,
    leaves_a_run_to_a_driver_that_renewed_its_lease,
    cancels_the_run_of_a_dead_driver_that_was_asked_to_cancel,
    cancels_a_run_that_its_driver_lets_go_of_before_it_saw_the_cancel,
    cancels_a_run_whose_result_comes_after_the_cancel,
    settles_only_what_the_same_driver_opened,
    lists_what_waits_for_a_worker_oldest_first,
    knows_which_workers_are_there,
    hands_a_resting_run_to_the_workers,
    remembers_processes_until_they_are_seen_dead,
)

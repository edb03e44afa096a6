"""Who is woken by what on PostgreSQL: workers by runs of theirs that became due, watchers by any commit."""

import asyncio
from dataclasses import replace

import psycopg

from muster.domain.run import RunState
from muster.store.base import Changes, OfferWatch, RunRelease
from muster.store.postgres.changes import SETTLE_SECONDS
from muster.testing.stores import NOW, driven, new_run, opening

from .test_postgres import opened


async def quiet(changes: Changes) -> None:
    """Begin to listen, and wait until nothing is told any more."""
    while await changes.wait(SETTLE_SECONDS + 0.3, changes.commits):
        pass


async def quiet_offers(taker: OfferWatch) -> None:
    """Begin to listen for offers, and wait until none is told any more."""
    while await taker.wait(SETTLE_SECONDS + 0.3):
        pass


async def test_only_a_run_that_became_due_wakes_whoever_takes_its_workload(database_url: str) -> None:
    async with opened(database_url) as here, opened(database_url) as there:
        takers = {name: here.offers.watch({name}.__contains__) for name in ("ask", "battle")}
        for taker in takers.values():
            await quiet_offers(taker)
        waiting = {name: asyncio.ensure_future(taker.wait(60)) for name, taker in takers.items()}
        run, claim = await driven(there)  # not submitted
        await there.journal.open(opening(run, claim.epoch, "k"))
        child = replace(new_run("child", submitted=True), workload="battle", parent=run, parent_key="c")
        await there.runs.create(child)
        await there.leases.release(run, claim.epoch, RunRelease(state=RunState.COMPLETED, reason="done", at=NOW))
        await there.runs.create(replace(new_run("run2", submitted=True), workload="ask"))
        assert await waiting["ask"]
        assert not waiting["battle"].done()
        await there.runs.create(replace(new_run("run3", submitted=True), workload="battle"))
        assert await waiting["battle"]
        assert not await takers["ask"].wait(0.3)


async def test_many_workloads_that_do_not_fit_into_a_notification_wake_everybody(database_url: str) -> None:
    async with opened(database_url) as here, opened(database_url) as there:
        taker = here.offers.watch(lambda workload: False)
        await quiet_offers(taker)
        waiting = asyncio.ensure_future(taker.wait(60))
        names = [f"{number:03}{'x' * 200}" for number in range(50)]
        await asyncio.gather(
            *(there.runs.create(replace(new_run(name[:3], submitted=True), workload=name)) for name in names)
        )
        assert await waiting


async def test_commits_of_calls_notify_only_while_somebody_waits_for_changes(database_url: str) -> None:
    """A notification costs a transaction in every session that listens."""
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("LISTEN muster")
        async with opened(database_url) as here, opened(database_url) as there:
            run, claim = await driven(there)
            await there.journal.open(opening(run, claim.epoch, "a"))
            listener.execute("NOTIFY muster, 'end'")
            assert [note.payload for note in listener.notifies(timeout=60, stop_after=1)] == ["end"]
            await quiet(here.changes)
            changed = asyncio.ensure_future(here.changes.wait(60, here.changes.commits))
            await there.journal.open(opening(run, claim.epoch, "b"))
            assert await changed
            assert [note.payload for note in listener.notifies(timeout=60, stop_after=1)] != ["end"]


async def test_a_commit_that_was_under_way_when_somebody_began_to_wait_is_seen(database_url: str) -> None:
    async with opened(database_url) as here:
        with psycopg.connect(database_url) as other:
            other.execute("INSERT INTO traits (name, value) VALUES ('a', 'b')")
            while await here.changes.wait(
                SETTLE_SECONDS / 2, here.changes.commits
            ):  # what was committed before wakes it once
                pass
            other.commit()
        assert await here.changes.wait(60, here.changes.commits)

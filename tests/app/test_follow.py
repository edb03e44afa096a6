"""Runs followed by many watchers: every event once and in order, whoever joins, leaves or lags."""

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muster
from muster.app.base.feeds import (
    MAX_BEHIND,
    PAGE,
    Resync,
    ResyncReason,
    RunEnd,
    RunFeeds,
    RunUpdate,
    RunWatcher,
    TextDelta,
    grown,
)
from muster.domain.entry import Event
from muster.domain.errors import BadArgument, NotFound
from muster.domain.ids import RunId
from muster.domain.run import RunState
from muster.settings import load_settings
from muster.store.base import Claim, RunRelease
from muster.store.sqlite.store import SqliteStore, open_sqlite
from muster.testing.stores.values import DRIVER, NOW, new_run, opening, replied, settling

RUN = RunId("run1")

# Appends events to the run of a store that another process has open.
WRITER = """
import asyncio, sys
from pathlib import Path
from muster.store.sqlite.store import open_sqlite

async def main(path, run, epoch, count):
    store = open_sqlite(Path(path))
    for number in range(count):
        await store.events.append(run, epoch, "elsewhere", {"n": number}, 1.0)
    await store.maintenance.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""


class CountedEvents:
    """Counts how often events are read."""

    def __init__(self, events: Any) -> None:
        self._events, self.reads = events, 0

    async def read(self, run: RunId, after: int, limit: int) -> Sequence[Event]:
        self.reads += 1
        found: Sequence[Event] = await self._events.read(run, after, limit)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)


class CountedStore:
    """A store that counts how often its events are read."""

    def __init__(self, store: SqliteStore) -> None:
        self._store, self.events = store, CountedEvents(store.events)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class FollowedRun:
    """A run at work that tests write events of, and its feeds."""

    def __init__(self, store: SqliteStore, claim: Claim) -> None:
        self.store, self.claim = store, claim
        self.counted = CountedStore(store)
        self.feeds = RunFeeds(self.counted, self._sweep)

    async def _sweep(self) -> None:
        """Leave the driver alone: it has no process."""

    async def tell(self, count: int = 1) -> None:
        for _ in range(count - 1):
            self.store.events.append(RUN, self.claim.epoch, "told", {}, NOW)
        await self.store.events.append(RUN, self.claim.epoch, "told", {}, NOW)

    async def end(self) -> None:
        ending = RunRelease(state=RunState.COMPLETED, reason="completed", at=NOW)
        await self.store.leases.release(RUN, self.claim.epoch, ending)

    async def follow(self, after: int = 0) -> RunWatcher:
        run = await self.store.runs.get(RUN)
        assert run is not None
        return self.feeds.follow(run, after)

    async def last(self) -> int:
        run = await self.store.runs.get(RUN)
        assert run is not None
        return run.last_seq


@asynccontextmanager
async def followed(folder: Path) -> AsyncIterator[FollowedRun]:
    store = open_sqlite(folder / "muster.db")
    run = await store.runs.create(new_run(RUN))
    found = FollowedRun(store, await store.leases.claim(run.id, DRIVER, run.lease.epoch, NOW, NOW + 1e6))
    try:
        yield found
    finally:
        await found.feeds.close()
        await store.maintenance.close()


def numbers(updates: Sequence[RunUpdate]) -> list[int]:
    return [update.seq for update in updates if isinstance(update, Event)]


async def until(watcher: RunWatcher, seq: int) -> list[RunUpdate]:
    """Take updates until the event with a number is among them."""
    found: list[RunUpdate] = []
    while not numbers(found) or numbers(found)[-1] < seq:
        found += await watcher.take(30)
    return found


async def test_a_watcher_gets_stored_events_then_live_ones_then_the_end(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        await run.tell(3)
        watcher = await run.follow()
        stored = await until(watcher, await run.last())
        await run.tell(2)
        await run.end()
        live = [update async for update in watcher]
        assert numbers([*stored, *live]) == list(range(1, await run.last() + 1))
        assert isinstance(live[-1], RunEnd)
        assert live[-1].run.state is RunState.COMPLETED


async def test_a_watcher_that_has_all_events_is_given_the_end_that_was_told_before_it_came(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        await run.end()
        slow = await run.follow()
        await asyncio.sleep(0)  # the reader of the feed has told everything
        late = await run.follow(await run.last())
        assert [type(update) async for update in late] == [RunEnd]
        slow.close()


async def test_a_thousand_watchers_cost_no_more_reads_than_one(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        watchers = [await run.follow() for _ in range(1000)]
        assert run.feeds.open == 1
        for _ in range(5):
            await run.tell()
            last = await run.last()
            for found in await asyncio.gather(*(until(watcher, last) for watcher in watchers)):
                assert numbers(found)[-1] == last
        assert run.counted.events.reads < 30


async def test_watchers_that_have_the_same_are_given_the_same_object(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        watchers = [await run.follow() for _ in range(3)]
        for watcher in watchers:
            await until(watcher, 2)
        waiting = asyncio.gather(*(watcher.take(30) for watcher in watchers))
        await run.tell(2)
        first, *others = await waiting
        assert numbers(first) == [3, 4]
        assert all(found is first for found in others)


async def test_each_wait_has_its_own_time(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        watcher = await run.follow()
        await until(watcher, 2)
        await run.tell()
        while not (found := await watcher.take(0.1)):
            pass
        assert numbers(found) == [3]
        loop = asyncio.get_running_loop()
        passed = loop.create_future()
        loop.call_later(0.25, passed.set_result, None)
        assert not await watcher.take(0.3)  # and not when the time of the wait before is over
        assert passed.done()
        waiting = asyncio.ensure_future(watcher.take(1000))
        await run.tell()
        assert numbers(await waiting) == [4]
        assert not await watcher.take(0.01)


async def test_the_reader_ends_with_the_last_watcher_and_begins_again_with_the_next(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        first, second = await run.follow(), await run.follow()
        assert run.feeds.watchers == 2
        await until(first, 2)
        first.close()
        assert run.feeds.open == 1
        second.close()
        assert run.feeds.open == 0
        reads = run.counted.events.reads
        await run.tell(10)
        assert run.counted.events.reads == reads
        async with await run.follow(5) as third:
            assert numbers(await until(third, await run.last())) == list(range(6, await run.last() + 1))


async def test_events_of_another_process_are_seen(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        watcher = await run.follow()
        command = [sys.executable, "-c", WRITER, str(tmp_path / "muster.db"), RUN, str(run.claim.epoch), "40"]
        writing = asyncio.ensure_future(asyncio.to_thread(subprocess.run, command, check=True, timeout=100))
        found = await until(watcher, 42)
        assert numbers(found) == list(range(1, 43))
        await writing


async def test_a_watcher_that_does_not_take_its_updates_is_dropped_and_joins_again_where_it_was(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        slow, quick = await run.follow(), await run.follow()
        seen = numbers(await until(slow, 2))
        await until(quick, 2)
        await run.tell(2 * MAX_BEHIND)
        assert numbers(await until(quick, await run.last())) == list(range(3, await run.last() + 1))
        updates = [update async for update in slow]
        assert updates == [Resync(run=RUN, reason=ResyncReason.SLOW, after=2)]
        again = await run.follow(2)
        seen += numbers(await until(again, await run.last()))
        assert seen == list(range(1, await run.last() + 1))


async def test_a_long_history_is_read_in_pages_and_nothing_is_missing(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        await run.tell(3 * MAX_BEHIND)
        watcher = await run.follow()
        found = await watcher.take(30)
        assert len(found) == PAGE
        await run.tell(PAGE)
        await run.end()
        assert numbers([*found, *[update async for update in watcher]]) == list(range(1, await run.last() + 1))


async def test_a_number_that_the_run_does_not_have_begins_anew(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        watcher = await run.follow(10_000)
        assert await watcher.take(30) == [Resync(run=RUN, reason=ResyncReason.AHEAD, after=0)]
        assert numbers(await until(watcher, 2)) == [1, 2]
        with pytest.raises(BadArgument, match="negative"):
            await run.follow(-1)


async def test_a_run_that_is_over_is_told_from_the_store(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        await run.tell(3)
        await run.end()
        updates = [update async for update in await run.follow(4)]
        assert numbers(updates) == [5, 6]
        assert isinstance(updates[-1], RunEnd)
        assert [type(update) for update in [one async for one in await run.follow(6)]] == [RunEnd]
        assert run.feeds.open == 0


async def test_a_run_that_is_deleted_ends_its_watchers(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        watcher = await run.follow()
        await until(watcher, 2)
        await run.store.leases.release(
            RUN, run.claim.epoch, RunRelease(state=RunState.INTERRUPTED, reason="interrupted", at=NOW)
        )
        await until(watcher, 3)
        await run.store.runs.delete(RUN, NOW)
        with pytest.raises(NotFound, match="deleted"):
            await until(watcher, 4)


async def test_half_written_text_is_told_as_it_grows_and_whole_to_whoever_joins(tmp_path: Path) -> None:
    async with followed(tmp_path) as run:
        opened = opening(RUN, run.claim.epoch, "ask")
        await run.store.journal.open(opened)
        watcher = await run.follow()
        await run.store.events.put_partial(opened.attempt, "once", NOW)
        first = await deltas(watcher)
        await run.store.events.put_partial(opened.attempt, "once upon a time", NOW)
        more = await deltas(watcher)
        late = await deltas(await run.follow(await run.last()))
        await run.store.events.put_partial(opened.attempt, "another attempt", NOW)
        anew = await deltas(watcher)
        assert (first, more, late, anew) == (
            [(0, "once")],
            [(4, " upon a time")],
            [(0, "once upon a time")],
            [(0, "another attempt")],
        )
        await run.store.journal.settle(settling(opened, replied()))
        assert [update.kind for update in await watcher.take(30) if isinstance(update, Event)] == ["call.done"]


async def deltas(watcher: RunWatcher) -> list[tuple[int, str]]:
    """Take updates until some text is among them; one told twice, as to whoever joins just then, adds nothing."""
    while True:
        found = [one for one in await watcher.take(30) if isinstance(one, TextDelta)]
        if found:
            return list(dict.fromkeys((one.offset, one.text) for one in found))


@given(st.lists(st.text(max_size=6), max_size=8))
def test_deltas_add_up_to_the_text_whatever_it_becomes(texts: list[str]) -> None:
    told, shown = "", ""
    for text in texts:
        for delta in grown({"key": told}, {"key": text}, RUN):
            shown = shown[: delta.offset] + delta.text
        told = text
        assert shown == told


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.chaos) for seed in range(1, 4))])
async def test_watchers_that_join_leave_and_lag_at_random_see_every_number_once(tmp_path: Path, seed: int) -> None:
    """Each watcher leaves, lags or is dropped, and goes on with its last number; two processes write meanwhile."""
    chance = random.Random(seed)
    async with followed(tmp_path) as run:
        command = [sys.executable, "-c", WRITER, str(tmp_path / "muster.db"), RUN, str(run.claim.epoch), "300"]
        elsewhere = asyncio.ensure_future(asyncio.to_thread(subprocess.run, command, check=True, timeout=100))
        watching = [asyncio.ensure_future(watched(run, random.Random(f"{seed}/{one}"))) for one in range(25)]
        while not elsewhere.done():
            await run.tell(chance.choice([1, 3, 40, MAX_BEHIND]))
            await asyncio.sleep(chance.random() / 20)
        await elsewhere
        await run.end()
        wanted = list(range(1, await run.last() + 1))
        for seen in await asyncio.gather(*watching):
            assert seen == wanted
        assert run.feeds.open == 0


async def watched(run: FollowedRun, chance: random.Random) -> list[int]:
    """Follow a run to its end, with interruptions of all kinds."""
    seen: list[int] = []
    while True:
        async with await run.follow(seen[-1] if seen else 0) as watcher:
            while updates := await watcher.take(0.2 if chance.random() < 0.5 else 5):
                seen += numbers(updates)
                if isinstance(updates[-1], RunEnd):
                    return seen
                if isinstance(updates[-1], Resync) or chance.random() < 0.1:
                    break
                await asyncio.sleep(chance.choice([0, 0, 0.001, 0.3]))


async def test_closing_the_store_lets_watchers_go(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "home", folder=tmp_path, environment={})
    async with muster.open(settings=settings) as m:
        submitted = await m.submit("ask", {"agent": "sim/echo", "prompt": "hello"})
        watcher = await m.runs.follow(submitted.id)
        found = await watcher.take(30)
        waiting = asyncio.ensure_future(watcher.take(1000))
        await asyncio.sleep(0)
    assert numbers(found) == [1]
    assert await waiting == []


async def test_a_question_is_followed_to_its_end_by_python(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "home", folder=tmp_path, environment={})
    async with muster.open(settings=settings) as m:
        handle = await m.start("ask", {"agent": "sim/echo", "prompt": "hello"})
        updates = [update async for update in await m.runs.follow(handle.id)]
        stored = await m.runs.events(handle.id)
        assert [update for update in updates if isinstance(update, Event)] == list(stored)
        assert isinstance(updates[-1], RunEnd)
        assert await handle.result() is not None

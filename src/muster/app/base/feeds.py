"""Runs followed by many watchers: one reader for each run and process reads the store and feeds all of them.

A watcher gets the stored events after its number first and then the live ones, each once and in order. It never slows
the run or other watchers: one that is too far behind is dropped with a `Resync`, and can join again where it was.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Self

from muster.domain.entry import Event
from muster.domain.errors import BadArgument, NotFound
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run
from muster.store.base import Store

MAX_BEHIND = 1_000  # updates that a watcher may be behind before it is dropped
PAGE = 250  # events that are read at once; several pages fit between a watcher and the end of its patience
REST_SECONDS = 0.05  # between two reads: what is written meanwhile is read together
PAGE_SECONDS = 0.02  # in which watchers take a page before the next
LOOK_SECONDS = 1.0  # after which a run that tells nothing is looked at


class ResyncReason(StrEnum):
    """Why a watcher cannot go on where it was."""

    SLOW = "slow"  # it did not take updates as fast as they came
    AHEAD = "ahead"  # it asked for events after one that the run does not have


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """Text of a reply that is being written, from an offset on; 0 when it begins. It is not durable."""

    run: RunId
    key: str
    offset: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resync:
    """Tells a watcher that it was dropped, or that its number was wrong; it has everything up to `after`."""

    run: RunId
    reason: ResyncReason
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """The run is over; nothing follows its last event."""

    run: Run
    seq: int  # of the last event


RunUpdate = Event | TextDelta | Resync | RunEnd


def grown(before: Mapping[str, str], now: Mapping[str, str], run: RunId) -> list[TextDelta]:
    """Return what was added to half-written texts; a text that began anew is told from its beginning."""
    found = []
    for key, text in now.items():
        told = before.get(key, "")
        offset = len(told) if text.startswith(told) else 0
        if text[offset:] or (told and not offset):
            found.append(TextDelta(run=run, key=key, offset=offset, text=text[offset:]))
    return found


class RunWatcher:
    """Follows one run: an async iterator of its updates that ends with `RunEnd`, or with `Resync` when it is dropped.

    Close it, or use it in `async with`, when it is not iterated to its end.
    """

    def __init__(self, feed: "RunFeed", store: Store, after: int) -> None:
        self._feed, self._store = feed, store
        self._seq = after  # of the last event that it was given
        self._position: int | None = None  # of the next update in the feed; None while it reads the store by itself
        self._first: list[RunUpdate] = []  # what it is given before anything else
        self._taken: deque[RunUpdate] = deque()  # by `take`, for the iterator
        self._waiter: asyncio.Future[None] | None = None
        self._due = 0.0  # when whoever waits goes on without an update
        self._timer: asyncio.TimerHandle | None = None  # at that time or before it
        self._over = False
        if after > feed.known:
            self._seq = 0
            self._first.append(Resync(run=feed.run, reason=ResyncReason.AHEAD, after=0))

    @property
    def over(self) -> bool:
        """Return whether nothing follows: the run is over, or this watcher was dropped or closed."""
        return self._over

    async def take(self, seconds: float) -> Sequence[RunUpdate]:
        """Return all updates that are there; waits at most so long for the first, and returns none at the end."""
        updates = self._next()
        while not updates and not self._over:
            if self._feed.closed:
                self.close()
                break
            if self._position is None:
                return await self._catch_up()
            if not await self._wait(seconds):
                break
            updates = self._next()
        return updates

    def close(self) -> None:
        """Stop following; whoever waits for an update goes on without one."""
        self._over = True
        self._feed.leave(self)
        self._stop_timer()
        self.wake()

    def wake(self) -> None:
        """Let whoever waits look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RunUpdate:
        while not self._taken:
            self._taken.extend(await self.take(LOOK_SECONDS))
            if not self._taken and self._over:
                raise StopAsyncIteration
        return self._taken.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _next(self) -> Sequence[RunUpdate]:
        """Return what the feed has for this watcher; joins the feed as soon as it reaches back far enough."""
        if self._over:
            return []
        if self._first:
            first, self._first = self._first, []
            return first
        joined: Sequence[TextDelta] = ()
        if self._position is None:
            self._position = self._feed.position_after(self._seq)
            if self._position is None:
                return []
            joined = self._feed.written()
        if self._position < self._feed.start:
            self.close()
            return [Resync(run=self._feed.run, reason=ResyncReason.SLOW, after=self._seq)]
        updates, self._position = self._feed.updates_from(self._position), self._feed.end
        return self._given((*updates, *joined) if joined else updates)

    def _given(self, updates: Sequence[RunUpdate]) -> Sequence[RunUpdate]:
        """Return the updates without events that were given before, and note how far it is now."""
        found: list[RunUpdate] = []
        for update in updates:
            if isinstance(update, Event):
                if update.seq <= self._seq:
                    continue
                self._seq = update.seq
            found.append(update)
        if found and isinstance(found[-1], RunEnd):
            self.close()
        return updates if len(found) == len(updates) else found

    async def _catch_up(self) -> Sequence[RunUpdate]:
        """Read a page of the events that are older than those of the feed."""
        events = await self._store.events.read(self._feed.run, self._seq, PAGE)
        if not events:
            raise NotFound(f"run {self._feed.run} was deleted while it was followed")
        return self._given(events)

    async def _wait(self, seconds: float) -> bool:
        """Wait until there may be something new; False when the time is over."""
        self._feed.require_reader()
        loop = asyncio.get_running_loop()
        self._due = loop.time() + seconds
        self._set_timer(loop)
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        return loop.time() < self._due

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have one timer for many waits: one that fires too early is kept, and set again then.

        One for each wait would be canceled nearly every time, and cost as much as the wait itself.
        """
        if self._timer is None or self._timer.when() > self._due:
            self._stop_timer()
            self._timer = loop.call_at(self._due, self._on_timer, loop)

    def _on_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if loop.time() >= self._due:
            self.wake()
        elif self._waiter is not None:
            self._set_timer(loop)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class RunFeed:
    """The updates of one run that watchers may still need, and the task that reads them from the store."""

    def __init__(
        self, run: Run, store: Store, sweep: Callable[[], Awaitable[None]], on_leave: "Callable[[RunFeed], None]"
    ) -> None:
        self.run = run.id
        self.known = run.last_seq  # the highest number that the run is known to have
        self.closed = False  # nothing more is read
        self.start = self.end = 0  # positions: of the oldest update that is here, and of the next one
        self._seq = self._left = max(0, run.last_seq - MAX_BEHIND // 2)  # of the last event read, and let go of
        self._store, self._sweep, self._on_leave = store, sweep, on_leave
        self._updates: deque[RunUpdate] = deque()
        self._newest: tuple[RunUpdate, ...] = ()  # of them: the last that were read together
        self._written: Mapping[str, str] = {}
        self._watchers: set[RunWatcher] = set()
        self._reader: asyncio.Task[None] | None = None

    @property
    def watchers(self) -> int:
        """Return how many watchers there are."""
        return len(self._watchers)

    def join(self, after: int) -> RunWatcher:
        """Return a new watcher; the first one starts the reader."""
        watcher = RunWatcher(self, self._store, after)
        self._watchers.add(watcher)
        if self._reader is None:
            self._reader = asyncio.get_running_loop().create_task(self._read())
            self._reader.add_done_callback(self._on_reader_done)
        return watcher

    def leave(self, watcher: RunWatcher) -> None:
        """Forget a watcher; the reader ends with the last one."""
        self._watchers.discard(watcher)
        if not self._watchers and self._reader is not None:
            self._reader.cancel()
            self._on_leave(self)

    async def close(self) -> None:
        """Read a last time and let all watchers go, each when it has taken what is here."""
        if self._reader is not None and not self._reader.done():
            self._reader.cancel()
            await asyncio.wait({self._reader})
            await self._read_events()
        self.closed = True
        for watcher in tuple(self._watchers):
            watcher.wake()

    def require_reader(self) -> None:
        """Raise what ended the reader, if it failed."""
        if self._reader is not None and self._reader.done() and not self._reader.cancelled():
            self._reader.result()

    def position_after(self, seq: int) -> int | None:
        """Return the position of the first event after a number; None when it is older than what is here."""
        if seq < self._left:
            return None
        if seq >= self._seq:
            return self.end - 1 if self._updates and isinstance(self._updates[-1], RunEnd) else self.end
        updates = enumerate(self._updates, self.start)
        return next((at for at, update in updates if isinstance(update, Event) and update.seq > seq), self.end)

    def written(self) -> Sequence[TextDelta]:
        """Return what is being written now, from its beginning."""
        return grown({}, self._written, self.run)

    def updates_from(self, position: int) -> Sequence[RunUpdate]:
        """Return all updates from a position on; to watchers that had all but the newest the same object."""
        updates, behind = self._updates, self.end - position
        return self._newest if behind == len(self._newest) else [updates[at] for at in range(-behind, 0)]

    async def _read(self) -> None:
        """Read whenever something was written, until the run is over."""
        quiet = True  # for a while; then its state is looked at
        while True:
            seen = self._store.changes.commits
            told_state = await self._read_events()
            if (told_state or quiet) and await self._end_if_over():
                return
            quiet = not await self._store.changes.wait(LOOK_SECONDS, seen)
            if quiet:
                await self._sweep()
            await asyncio.sleep(REST_SECONDS)

    async def _read_events(self) -> bool:
        """Publish all new events and what is being written; return whether an event told of the state of the run."""
        told_state = False
        while True:
            events = await self._store.events.read(self.run, self._seq, PAGE)
            if events:
                self._seq = events[-1].seq
                self.known = max(self.known, self._seq)
                told_state = told_state or any(event.kind.startswith("run.") for event in events)
            if len(events) < PAGE:
                break
            self._publish(events)
            await asyncio.sleep(PAGE_SECONDS)
        written = await self._store.events.partials(self.run)
        self._publish([*events, *grown(self._written, written, self.run)])
        self._written = written
        return told_state

    async def _end_if_over(self) -> bool:
        """Publish the end of a run that is over, after all that was told before it."""
        run = await self._store.runs.get(self.run)
        if run is None:
            raise NotFound(f"run {self.run} was deleted while it was followed")
        if run.state not in TERMINAL:
            return False
        await self._read_events()
        self._publish([RunEnd(run=run, seq=self._seq)])
        return True

    def _publish(self, updates: Sequence[RunUpdate]) -> None:
        if not updates:
            return
        self._newest = tuple(updates)
        self._updates.extend(updates)
        self.end += len(updates)
        while len(self._updates) > MAX_BEHIND:
            oldest = self._updates.popleft()
            self.start += 1
            if isinstance(oldest, Event):
                self._left = oldest.seq
        for watcher in tuple(self._watchers):
            watcher.wake()

    def _on_reader_done(self, reader: "asyncio.Task[None]") -> None:
        for watcher in tuple(self._watchers):
            watcher.wake()
        if not reader.cancelled():
            reader.exception()  # watchers raise it


class RunFeeds:
    """The feeds of all runs that somebody in this process follows."""

    def __init__(self, store: Store, sweep: Callable[[], Awaitable[object]]) -> None:
        self._store, self._sweep_store = store, sweep
        self._feeds: dict[RunId, RunFeed] = {}
        self._swept_at = 0.0

    @property
    def open(self) -> int:
        """Return how many runs are being read."""
        return len(self._feeds)

    @property
    def watchers(self) -> int:
        """Return how many watchers there are."""
        return sum(feed.watchers for feed in self._feeds.values())

    def follow(self, run: Run, after: int) -> RunWatcher:
        """Return a watcher of a run that is given every event after a number; `run` must have been read just now."""
        if after < 0:
            raise BadArgument("must not be negative", argument="after")
        feed = self._feeds.get(run.id)
        if feed is None:
            feed = self._feeds[run.id] = RunFeed(run, self._store, self._sweep, self._drop)
        feed.known = max(feed.known, run.last_seq)
        return feed.join(after)

    async def close(self) -> None:
        """Let all watchers go."""
        feeds, self._feeds = self._feeds, {}
        for feed in feeds.values():
            await feed.close()

    def _drop(self, feed: RunFeed) -> None:
        if self._feeds.get(feed.run) is feed:
            del self._feeds[feed.run]

    async def _sweep(self) -> None:
        """Find out whether drivers are still alive, once for all feeds that wonder."""
        now = asyncio.get_running_loop().time()
        if now - self._swept_at >= LOOK_SECONDS:
            self._swept_at = now
            await self._sweep_store()

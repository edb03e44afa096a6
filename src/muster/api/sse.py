"""Server-sent events: frames, each encoded once for all watchers, and the response that sends them."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import msgspec
from fastapi.responses import StreamingResponse

from muster.app import Muster
from muster.app.battles.battles import Standing
from muster.app.runs.follow import Resync, ResyncReason, RunEnd, RunUpdate, RunWatcher
from muster.app.views.stream import update_view
from muster.domain.entry import Event
from muster.domain.errors import BadArgument, MusterError
from muster.domain.run import Run

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_SECONDS = 15.0  # shorter than proxies and clients wait in silence
RETRY_MS = 2_000  # after which a client connects again
HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}
HEARTBEAT = b": heartbeat\n\n"
OPENING = b"retry: %d\n\n" % RETRY_MS
MOST_FRAMES, MOST_FRAME_BYTES = 4_096, 16 * 1024 * 1024
_LINE_END = re.compile(rb"\r\n|\r|\n")
Stood = Callable[[Event | RunEnd], Awaitable[Standing | None]]  # returns how a run stood after an update
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NUMBER = re.compile(r"[0-9]{1,30}", re.ASCII)


def frame(name: str, data: bytes, id_: int | None = None) -> bytes:
    """Return one event as bytes; raises ValueError for a name that could not stand on a line of its own."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of an event")
    number = b"" if id_ is None else b"id: %d\n" % id_
    lines = b"".join(b"data: %b\n" % line for line in _LINE_END.split(data))
    return b"%bevent: %b\n%b\n" % (number, name.encode("ascii"), lines)


def update_frame(update: RunUpdate, standing: Standing | None = None) -> bytes:
    """Return an update as bytes; what can be asked for again has the number of its event as id."""
    name, view = update_view(update, standing)
    return frame(name, msgspec.json.encode(view), _id_of(update))


def _id_of(update: RunUpdate) -> int | None:
    if isinstance(update, Event | RunEnd):
        return update.seq
    if isinstance(update, Resync) and update.reason is ResyncReason.AHEAD:
        return update.after  # a client that connects again does not repeat its wrong number
    return None


class FrameCache:
    """The frames of the newest events, so that an event is encoded once for all watchers."""

    def __init__(self, most: int = MOST_FRAMES, most_bytes: int = MOST_FRAME_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._frames: dict[tuple[object, ...], bytes] = {}
        self._bytes = 0
        self._locks: dict[tuple[object, ...], asyncio.Lock] = {}  # of the frames that are being made

    def of(self, update: RunUpdate, standing: Standing | None = None) -> bytes:
        """Return the frame of an update."""
        key = _key(update)
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = update_frame(update, standing)
            self._bytes += len(found)
            while len(self._frames) > self._most or (self._bytes > self._most_bytes and len(self._frames) > 1):
                self._bytes -= len(self._frames.pop(next(iter(self._frames))))
        return found

    async def told(self, update: RunUpdate, stood: Stood) -> bytes:
        """Return the frame of an update with how its run stood then, which one watcher asks for all."""
        key = _key(update)
        if key in self._frames or not isinstance(update, Event | RunEnd):
            return self.of(update)
        async with self._locks.setdefault(key, asyncio.Lock()):
            try:
                return self._frames.get(key) or self.of(update, await stood(update))
            finally:
                self._locks.pop(key, None)


def _key(update: RunUpdate) -> tuple[object, ...]:
    if isinstance(update, Event):
        return (update.run, update.seq, update.at)  # a run that was deleted and imported has other times
    if isinstance(update, RunEnd):
        return (update.run.id, update.seq, update.run.state, update.run.ended_at)
    return (update,)


def last_event_id(given: str | None) -> int:
    """Return the number of the event that a client had last; raises BadArgument for anything else."""
    text = (given or "").strip()
    if not text:
        return 0
    if not _NUMBER.fullmatch(text):
        raise BadArgument("must be the number of the last event that was received, like 12", argument="Last-Event-ID")
    return int(text)


def accepts_stream(accept: str | None) -> bool:
    """Return whether a client asks for a stream of events instead of JSON."""
    kinds = (part.partition(";")[0].strip().lower() for part in (accept or "").split(","))
    return MEDIA_TYPE in kinds


async def frames_of(
    watcher: RunWatcher, cache: FrameCache, stood: Stood, heartbeat: float = HEARTBEAT_SECONDS
) -> AsyncIterator[bytes]:
    """Yield the frames of a watcher until it is over; those that are there together are sent together."""
    yield OPENING
    while True:
        updates = await watcher.take(heartbeat)
        if updates:
            yield b"".join([await cache.told(update, stood) for update in updates])
        elif watcher.over:
            return
        else:
            yield HEARTBEAT


def stream_response(muster: Muster, cache: FrameCache, run: Run, after: int) -> StreamingResponse:
    """Return the response that streams a run after an event; it ends with the run, or when the server stops."""

    async def content() -> AsyncIterator[bytes]:
        # Joined here and not before: what is not begun is never closed.
        try:
            async with await muster.runs.follow(run.id, after) as watcher:
                async for part in frames_of(watcher, cache, partial(muster.battles.standing, run)):
                    yield part
        except MusterError:
            return  # a run that was deleted, a disk that is full: whoever connects again is told in full

    return StreamingResponse(content(), media_type=MEDIA_TYPE, headers=HEADERS)

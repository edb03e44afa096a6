"""Server-sent events: frames, each encoded once for all watchers, and the response that sends them."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muster.app import Muster
from muster.app.base.feeds import Resync, ResyncReason, RunEnd, RunUpdate, RunWatcher
from muster.app.battles.battles import Standing
from muster.app.views.stream import update_view
from muster.domain.entry import Event
from muster.domain.errors import BadArgument, MusterError
from muster.domain.run import Run
from muster.text.views import json_bytes

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_SECONDS = 15.0  # shorter than proxies and clients wait in silence
RETRY_MS = 2_000  # after which a client connects again
HEADERS = {"cache-control": "no-store, no-transform", "x-accel-buffering": "no"}
HEARTBEAT = b": heartbeat\n\n"
OPENING = b"retry: %d\n\n" % RETRY_MS
MAX_FRAMES, MAX_FRAME_BYTES = 4_096, 16 * 1024 * 1024
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
    return frame(name, json_bytes(view), _id_of(update))


def _id_of(update: RunUpdate) -> int | None:
    if isinstance(update, Event | RunEnd):
        return update.seq
    if isinstance(update, Resync) and update.reason is ResyncReason.AHEAD:
        return update.after  # a client that connects again does not repeat its wrong number
    return None


class FrameCache:
    """The frames of the newest events, so that an event is encoded once for all watchers."""

    def __init__(self, most: int = MAX_FRAMES, most_bytes: int = MAX_FRAME_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._frames: dict[tuple[object, ...], bytes] = {}
        self._bytes = 0
        self._joined: tuple[Sequence[RunUpdate], bytes] = ((), b"")  # the last that were sent together
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

    async def joined(self, updates: Sequence[RunUpdate], stood: Stood) -> bytes:
        """Return the frames of updates in one piece; watchers that are given the same object share it."""
        if self._joined[0] is not updates:
            self._joined = (updates, b"".join([await self.told(update, stood) for update in updates]))
        return self._joined[1]

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


class EventStreamResponse(Response):
    """Streams a run after an event to one client, until the run is over, the client is gone or the server stops."""

    media_type = MEDIA_TYPE

    def __init__(
        self, muster: Muster, cache: FrameCache, run: Run, after: int, heartbeat: float = HEARTBEAT_SECONDS
    ) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._muster, self._cache, self._run, self._after = muster, cache, run, after
        self._heartbeat = heartbeat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head, then all that is told, then the end."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        with suppress(MusterError):  # a run that was deleted, a disk that is full: who connects again is told in full
            async with await self._muster.runs.follow(self._run.id, self._after) as watcher:
                listening = asyncio.ensure_future(_close_on_disconnect(watcher, receive))
                try:
                    # A task of its own: every wake-up of this one goes through all middlewares around it.
                    await asyncio.ensure_future(self._stream(watcher, send))
                finally:
                    listening.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stream(self, watcher: RunWatcher, send: Send) -> None:
        """Send what a watcher is given until it is over; updates that are there together are sent together."""
        stood, part = partial(self._muster.battles.standing, self._run), OPENING
        while part:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            updates = await watcher.take(self._heartbeat)
            part = await self._cache.joined(updates, stood) or (b"" if watcher.over else HEARTBEAT)


async def _close_on_disconnect(watcher: RunWatcher, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass  # the body of the request, which nobody needs
    watcher.close()

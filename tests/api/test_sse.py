"""Frames of server-sent events: what they look like, and that nothing can be smuggled into them."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muster
from muster.agents.http.sse import EventParser
from muster.api.sse import (
    HEARTBEAT,
    OPENING,
    EventStreamResponse,
    FrameCache,
    accepts_stream,
    frame,
    last_event_id,
    update_frame,
)
from muster.app import Muster
from muster.app.base.feeds import Resync, ResyncReason, RunEnd, RunUpdate, TextDelta
from muster.domain.entry import Event
from muster.domain.errors import BadArgument
from muster.domain.ids import RunId
from muster.settings import load_settings

RUN = RunId("run1")


def event(seq: int, **data: str) -> Event:
    return Event(run=RUN, seq=seq, kind="tick", at=1_800_000_000.0 + seq, data=data)


def test_a_frame_has_its_id_its_name_and_its_data() -> None:
    assert frame("tick", b'{"n":1}', 7) == b'id: 7\nevent: tick\ndata: {"n":1}\n\n'
    assert frame("delta", b"{}") == b"event: delta\ndata: {}\n\n"


@pytest.mark.parametrize("name", ["", "a b", "tick\ndata: forged", "tick\r", "tïck", "a" * 65])
def test_a_name_that_could_end_its_line_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name"):
        frame(name, b"{}")


@given(st.text(alphabet=st.sampled_from("a\n\r:id \u2028é"), max_size=40))
def test_any_data_arrives_as_one_event_whatever_its_line_ends(text: str) -> None:
    data = text.encode()
    found = EventParser().feed(frame("tick", data, 3))
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert [(one.name, one.data, one.id) for one in found] == [("tick", lines, "3")]


def test_text_with_line_ends_stays_inside_of_its_json() -> None:
    sent = update_frame(event(1, text="a\n\ndata: forged\r\nevent: end"))
    assert sent.count(b"\n") == 4
    assert json.loads(EventParser().feed(sent)[0].data)["data"] == {"text": "a\n\ndata: forged\r\nevent: end"}


def test_only_what_can_be_asked_for_again_has_an_id() -> None:
    updates: list[RunUpdate] = [
        event(9),
        TextDelta(run=RUN, key="ask", offset=0, text="once"),
        Resync(run=RUN, reason=ResyncReason.SLOW, after=4),
        Resync(run=RUN, reason=ResyncReason.AHEAD, after=0),
    ]
    parsed = EventParser().feed(b"".join(update_frame(update) for update in updates))
    assert [(one.name, one.id) for one in parsed] == [
        ("event", "9"),
        ("delta", None),
        ("resync", None),
        ("resync", "0"),
    ]


def test_an_event_is_encoded_once_for_all() -> None:
    cache = FrameCache()
    assert cache.of(event(1)) is cache.of(event(1))
    assert cache.of(event(1)) != cache.of(event(2))


def test_the_cache_forgets_the_oldest_and_stays_small() -> None:
    cache = FrameCache(most=2)
    first = cache.of(event(1))
    cache.of(event(2))
    cache.of(event(3))
    assert cache.of(event(1)) is not first
    small = FrameCache(most_bytes=400)
    first = small.of(event(1, text="x" * 300))
    small.of(event(2, text="x" * 300))
    assert small.of(event(1, text="x" * 300)) is not first


class StreamClient:
    """A client of one response, without a server between them: takes what is sent, and leaves when it is told to."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.parts: list[bytes] = []
        self.is_complete = False
        self._more = asyncio.Condition()

    async def receive(self) -> dict[str, object]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        async with self._more:
            self.parts.append(message.get("body", b""))
            self.is_complete = message["type"] == "http.response.body" and not message["more_body"]
            self._more.notify_all()

    async def until(self, part: bytes, times: int) -> None:
        """Wait until a part was sent so often."""
        async with self._more:
            await self._more.wait_for(lambda: self.parts.count(part) >= times)


@asynccontextmanager
async def streamed(folder: Path, heartbeat: float) -> AsyncIterator[tuple[Muster, StreamClient, asyncio.Task[None]]]:
    """Stream a run that nobody drives."""
    async with muster.open(settings=load_settings(folder / "home", folder=folder, environment={})) as m:
        run = await m.runs.find((await m.submit("ask", {"agent": "sim/echo", "prompt": "hello"})).id)
        client, response = StreamClient(), EventStreamResponse(m, FrameCache(), run, 0, heartbeat)
        yield m, client, asyncio.ensure_future(response({}, client.receive, client.send))


async def test_a_heartbeat_is_sent_whenever_nothing_is_told_for_a_while(tmp_path: Path) -> None:
    async with streamed(tmp_path, heartbeat=0.01) as (_, client, streaming):
        await client.until(HEARTBEAT, 3)
        client.gone.set()
        await streaming
    assert [one.id for one in EventParser().feed(b"".join(client.parts))] == ["1"]


async def test_a_client_that_disconnects_is_followed_no_longer(tmp_path: Path) -> None:
    async with streamed(tmp_path, heartbeat=1000) as (m, client, streaming):
        await client.until(OPENING, 1)
        assert m.runs.watchers == 1
        client.gone.set()
        await streaming
        assert m.runs.watchers == 0


async def test_a_stopping_server_completes_its_streams(tmp_path: Path) -> None:
    async with streamed(tmp_path, heartbeat=1000) as (_, client, streaming):
        await client.until(OPENING, 1)
    await streaming
    assert client.is_complete


async def test_updates_that_watchers_share_are_put_together_once() -> None:
    cache, asked = FrameCache(), []

    async def stood(update: Event | RunEnd) -> None:
        asked.append(update)

    shared = [event(1), event(2)]
    both = await cache.joined(shared, stood)
    assert await cache.joined(shared, stood) is both
    assert both == update_frame(event(1)) + update_frame(event(2))
    assert await cache.joined([event(2), event(3)], stood) == update_frame(event(2)) + update_frame(event(3))
    assert asked == [event(1), event(2), event(3)]


def test_the_last_event_id_is_a_number_or_nothing() -> None:
    assert [last_event_id(text) for text in (None, "", " ", "0", " 12 ", "9" * 20)] == [0, 0, 0, 0, 12, 10**20 - 1]


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", "1e3", "٣", "9" * 31, "1 2"])
def test_any_other_last_event_id_is_refused(text: str) -> None:
    with pytest.raises(BadArgument, match="Last-Event-ID must be the number"):
        last_event_id(text)


def test_a_stream_is_asked_for_by_name() -> None:
    assert accepts_stream("text/event-stream")
    assert accepts_stream("application/json;q=0.5, Text/Event-Stream;q=1")
    assert not any(map(accepts_stream, (None, "", "*/*", "application/json", "text/event-streams")))

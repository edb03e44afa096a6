"""Frames of server-sent events: what they look like, and that nothing can be smuggled into them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.http.sse import EventParser
from muster.api.sse import FrameCache, accepts_stream, frame, last_event_id, update_frame
from muster.app.runs.follow import Resync, ResyncReason, RunUpdate, TextDelta
from muster.domain.entry import Event
from muster.domain.errors import BadArgument
from muster.domain.ids import RunId

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

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.http.sse import EventParser, ServerSentEvent
from muster.domain.errors import OutcomeUnknown


def parse(*chunks: bytes) -> list[ServerSentEvent]:
    parser = EventParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def test_an_event_has_a_name_and_data() -> None:
    assert parse(b"event: ping\ndata: {}\n\n") == [ServerSentEvent("ping", b"{}")]


def test_an_event_without_a_name_is_a_message() -> None:
    assert parse(b"data: [DONE]\n\n") == [ServerSentEvent("message", b"[DONE]")]


def test_data_lines_are_joined_by_line_feeds() -> None:
    assert parse(b"data: a\ndata:b\ndata\n\n") == [ServerSentEvent("message", b"a\nb\n")]


def test_only_one_space_after_the_colon_is_dropped() -> None:
    assert parse(b"data:  a\n\n") == [ServerSentEvent("message", b" a")]


def test_comments_ids_and_retries_say_nothing() -> None:
    assert parse(b": OPENROUTER PROCESSING\n\nid: 7\nretry: 10\n\ndata: x\n\n") == [ServerSentEvent("message", b"x")]


def test_an_id_belongs_to_its_own_event() -> None:
    assert parse(b"id: 7\nevent: tick\ndata: x\n\ndata: y\n\n") == [
        ServerSentEvent("tick", b"x", "7"),
        ServerSentEvent("message", b"y"),
    ]
    assert parse(b"id: 7\0\ndata: x\n\n") == [ServerSentEvent("message", b"x")]


def test_a_name_does_not_outlive_its_event() -> None:
    assert parse(b"event: a\n\ndata: x\n\n") == [ServerSentEvent("message", b"x")]


def test_an_event_that_is_not_finished_is_not_given() -> None:
    assert parse(b"data: x\n") == []


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse(b"\xef\xbb", b"\xbfdata: x\n\n") == [ServerSentEvent("message", b"x")]


def test_carriage_returns_end_lines_even_across_chunks() -> None:
    assert parse(b"data: a\r", b"\n\r", b"\ndata: b\r\rdata: c\r\n\r\n") == [
        ServerSentEvent("message", b"a"),
        ServerSentEvent("message", b"b"),
        ServerSentEvent("message", b"c"),
    ]


@pytest.mark.parametrize("flood", [b"data: " + b"x" * 200, b"data: xxxxxxxxx\n" * 30])
def test_an_endless_event_is_given_up(flood: bytes) -> None:
    parser = EventParser(most_bytes=100)
    pieces = [flood[start : start + 10] for start in range(0, len(flood), 10)]
    with pytest.raises(OutcomeUnknown, match="longer than 100 bytes"):
        [parser.feed(piece) for piece in pieces]


def test_many_small_events_are_no_endless_event() -> None:
    parser = EventParser(most_bytes=100)
    assert sum(len(parser.feed(b": comment\ndata: x\n\n")) for _ in range(100)) == 100


LINES = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)
EVENTS = st.lists(st.tuples(LINES.filter(bool), st.lists(LINES, min_size=1, max_size=3)), max_size=5)


@given(EVENTS, st.sampled_from(["\n", "\r", "\r\n"]), st.data())
def test_events_survive_any_cutting(events: list[tuple[str, list[str]]], end: str, data: st.DataObject) -> None:
    written = b""
    for name, lines in events:
        written += f"event: {name}{end}".encode() + b"".join(f"data: {x}{end}".encode() for x in lines) + end.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=10)))
    edges = [0, *cuts, len(written)]
    chunks = [written[a:b] for a, b in pairwise(edges)]
    expected = [ServerSentEvent(name, "\n".join(lines).encode()) for name, lines in events]
    assert parse(*chunks) == expected
    assert parse(*(bytes([byte]) for byte in written)) == expected


@given(st.lists(st.binary(max_size=50), max_size=10))
def test_any_bytes_can_be_fed_and_cutting_changes_nothing(chunks: list[bytes]) -> None:
    assert parse(*chunks) == parse(b"".join(chunks))

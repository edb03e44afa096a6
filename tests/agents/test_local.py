"""What agents in processes share: transcripts, lines, and what is not part of a digest."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.local import LineBuffer, folder_of, object_of, session_of, transcript_of
from muster.domain.call import Message, Request, Role, ToolCall, ask
from muster.domain.canonical import Json

TURNS = Request(
    system="Be brief.",
    messages=(
        Message(role=Role.USER, text="Weather?"),
        Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="1", name="look", arguments={"at": "sky"}),)),
        Message(role=Role.TOOL, text="sunny", tool_call_id="1"),
        Message(role=Role.ASSISTANT, text="Sunny."),
        Message(role=Role.USER, text="And tomorrow?"),
    ),
)


def test_one_message_stands_as_it_is() -> None:
    assert transcript_of(ask("User: {hello}\n")) == "User: {hello}\n"
    assert transcript_of(ask("hello", system="Be brief.")) == "Be brief.\n\nhello"


def test_several_messages_are_turns() -> None:
    assert transcript_of(TURNS) == (
        'Be brief.\n\nUser: Weather?\n\nAssistant: [look {"at": "sky"}]\n\nTool: sunny\n\n'
        "Assistant: Sunny.\n\nUser: And tomorrow?"
    )


def test_the_system_prompt_can_be_left_out() -> None:
    assert transcript_of(ask("hello", system="Be brief."), system=False) == "hello"


def test_a_single_message_needs_no_name_of_who_speaks() -> None:
    assert transcript_of(Request(messages=(Message(role=Role.SYSTEM, text="Begin."),))) == "Begin."
    used = Message(role=Role.ASSISTANT, text="Wait.", tool_calls=(ToolCall(id="1", name="look"),))
    assert transcript_of(Request(messages=(used,))) == "Wait.\n[look {}]"


LINES = st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), max_size=8)


@given(LINES, st.lists(st.integers(0, 200), max_size=10))
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    together, found = LineBuffer(), []
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    for start, end in pairwise(edges):
        found += together.feed(data[start:end])
    assert (found, together.rest(), together.waiting) == (lines, b"", 0)


@given(st.lists(st.binary(min_size=1, max_size=9).filter(lambda part: b"\n" not in part)), st.integers(1, 40))
def test_the_end_and_the_kind_of_a_line_that_goes_on_are_known(parts: list[bytes], most: int) -> None:
    together = LineBuffer()
    for part in parts:
        together.feed(part)
    whole = b"".join(parts)
    assert together.end_of_rest(most) == whole[-most:]
    assert together.may_be_object() == whole.lstrip().startswith(b"{")


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[1]", b'"text"', b"null", b"{bad}", b"\xff\xfe", b'{"a": 1} trailing', b'{"a":' * 9_000]
)
def test_a_line_that_is_no_object_is_none(line: bytes) -> None:
    assert object_of(line) is None


def test_a_line_is_an_object_even_with_bytes_that_are_no_text() -> None:
    assert object_of(b' {"a": "x\xffy \xc3\xbc"}\r') == {"a": "x\\xffy ü"}


def telling(**volatile: Json) -> Request:
    return replace(ask("x"), volatile=volatile)


def test_a_session_is_named() -> None:
    assert session_of(telling(session="abc")) == "abc"
    assert session_of(ask("x")) is None


@pytest.mark.parametrize("session", [None, "", 7, ["abc"]])
def test_a_session_that_is_no_name_is_none(session: Json) -> None:
    assert session_of(telling(session=session)) is None


@pytest.mark.parametrize(
    ("folder", "found"), [("part", "/work/part"), ("/other", "/other"), (7, "/work"), ("", "/work")]
)
def test_a_folder_is_relative_to_the_usual_one(folder: Json, found: str) -> None:
    assert folder_of(telling(cwd=folder), Path("/work")) == Path(found)

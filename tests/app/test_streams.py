"""`ask` after a conversation, and `stream`: text while it is written, and the reply at the end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import muster
from muster import sync

TURNS = (
    muster.Message(role=muster.Role.USER, text="My name is Ada."),
    muster.Message(role=muster.Role.ASSISTANT, text="Hello Ada."),
)


async def memory(request: muster.Request) -> str:
    return " / ".join(f"{message.role}: {message.text}" for message in request.messages)


@dataclass(frozen=True)
class Word:
    """What is asked for."""

    word: str


async def test_a_question_comes_after_the_turns_of_a_conversation(tmp_path: Path) -> None:
    async with muster.open(tmp_path, agents={"memory": memory}, allow_unpriced=True) as m:
        reply = await m.ask("memory", "Who am I?", messages=TURNS, name="talk")
        assert reply.text == "user: My name is Ada. / assistant: Hello Ada. / user: Who am I?"
        replayed = await m.runs.drive(await m.runs.replay("talk")).wait()
        assert replayed.state is muster.RunState.COMPLETED


async def test_a_turn_that_is_no_message_says_what_to_write(tmp_path: Path) -> None:
    wrong: Any = [{"role": "user", "content": "hi"}]
    async with muster.open(tmp_path) as m:
        with pytest.raises(muster.BadArgument, match=r"messages must be of muster\.Message") as raised:
            await m.ask("sim/echo", "hi", messages=wrong)
        assert "muster.Message(role=" in raised.value.suggestions[0]


async def test_text_is_told_while_it_is_written_and_the_reply_comes_last(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        told = [part async for part in m.stream("sim/echo", "one two three")]
        *texts, last = told
        assert isinstance(last, muster.Reply)
        assert "".join(str(text) for text in texts) == last.text == "one two three"
        assert texts


async def test_the_reply_of_a_stream_has_data_of_its_type(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        parts = [part async for part in m.stream("sim/echo", '{"word": "yes"}', schema=Word)]
        last = parts[-1]
        assert isinstance(last, muster.Reply)
        assert last.data == Word("yes")
        with pytest.raises(muster.BadOutput):
            [part async for part in m.stream("sim/echo", "{}", schema=Word)]


async def test_what_fails_is_raised_where_the_stream_is_read(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        with pytest.raises(muster.RunFailed):
            [part async for part in m.stream("sim/fail", "hi")]
        with pytest.raises(muster.BadConfiguration):
            [part async for part in m.stream("nobody/at-all", "hi")]


async def test_whoever_stops_listening_finds_the_reply_in_the_store(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        async for _ in m.stream("sim/echo", "one two three", name="left"):
            break
        run = await m.runs.watch(await m.runs.find("left")).wait()
        assert (await m.answer_of(run.id)).text == "one two three"


def test_a_script_iterates_over_a_stream(tmp_path: Path) -> None:
    with sync.open(tmp_path) as m:
        *_, last = m.stream("sim/echo", "hello")
        assert isinstance(last, muster.Reply)
        assert last.text == "hello"

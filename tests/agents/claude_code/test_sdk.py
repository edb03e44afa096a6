"""Frames over a real process; the program at the other end is the test's own."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from muster.agents.claude_code.conversation import ClaudeConversation
from muster.agents.claude_code.sdk import ProcessTransport, message_frame
from muster.agents.processes.feed import MessageFeed
from muster.agents.processes.process import ProcessCommand
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.processes.system import this_process
from muster.domain.agent import Timeouts
from muster.domain.errors import AgentFailed, BadExit, BadOutput, Stalled, TimedOut
from muster.domain.run import OwnedProcess
from muster.testing.agents import MemoryInbox

PATIENT = Timeouts()
HEAD = """
import json, os, sys, time
def say(**frame):
    print(json.dumps(frame), flush=True)
greet = dict(type="control_response", response={})
done = dict(type="result", subtype="success", result="Done.")
tool = dict(type="assistant", message={"content": [{"type": "tool_use", "id": "a", "name": "Bash"}]})
"""


class Nowhere:
    """A registry that remembers nothing."""

    async def note(self, process: OwnedProcess) -> None:
        pass

    async def forget(self, token: str) -> None:
        pass


@asynccontextmanager
async def playing(
    folder: Path, play: str, timeouts: Timeouts = PATIENT
) -> AsyncIterator[tuple[ProcessTransport, ClaudeConversation]]:
    script = folder / "play.py"
    script.write_text(HEAD + play)
    processes = ProcessRegistry(Nowhere(), this_process())
    order = ProcessCommand(agent="coder", command=(sys.executable, str(script)), input=b"", stays_open=True)
    conversation = ClaudeConversation()
    try:
        async with processes.process(order) as process:
            yield ProcessTransport(process, timeouts, conversation), conversation
    finally:
        await processes.close()


async def frames(pipe: ProcessTransport) -> list[dict[str, Any]]:
    return [frame async for frame in pipe.read_messages()]


async def failing(folder: Path, play: str, timeouts: Timeouts = PATIENT) -> AgentFailed:
    async with playing(folder, play, timeouts) as (pipe, _):
        with pytest.raises(AgentFailed) as caught:
            await frames(pipe)
    return caught.value


async def test_frames_come_as_they_were_written_until_the_result(tmp_path: Path) -> None:
    play = (
        'print("[a word of its own]\\n\\n", flush=True); say(**greet); say(type="new", text="ä" * 300_000); say(**done)'
    )
    async with playing(tmp_path, play + '; say(type="after")') as (pipe, conversation):
        found = await frames(pipe)
    assert [frame["type"] for frame in found] == ["control_response", "new", "result"]
    assert found[1]["text"] == "ä" * 300_000
    assert conversation.result is not None


async def test_a_frame_may_come_in_pieces(tmp_path: Path) -> None:
    play = """
say(**greet)
text = json.dumps(done).encode() + b"\\n"
for byte in text:
    os.write(1, bytes([byte]))
    sys.stdin.readline() if byte == ord(",") else None
"""
    async with playing(tmp_path, play) as (pipe, _):
        for _ in range(2):
            await pipe.write("go on\n")
        assert [frame["type"] for frame in await frames(pipe)] == ["control_response", "result"]


async def test_what_is_written_arrives_and_the_end_of_it_too(tmp_path: Path) -> None:
    play = 'say(**greet); say(**{**done, "result": sys.stdin.read()})'
    async with playing(tmp_path, play) as (pipe, conversation):
        assert pipe.is_ready()
        await pipe.connect()
        await pipe.write('{"a": "ä"}\n')
        await pipe.write("x" * 1_000_000)
        await pipe.end_input()
        await frames(pipe)
        assert conversation.result is not None
        assert conversation.result.result == '{"a": "ä"}\n' + "x" * 1_000_000
        assert await pipe.wait_for_exit() == ""
        assert not pipe.is_ready()
        await pipe.close()


async def test_a_result_before_the_greeting_does_not_leave_the_sdk_waiting(tmp_path: Path) -> None:
    async with playing(tmp_path, "say(**done)") as (pipe, conversation):
        with pytest.raises(BadExit):
            await frames(pipe)
    assert conversation.result is not None


async def test_an_exit_before_the_result_says_how_and_what_was_last_written(tmp_path: Path) -> None:
    error = await failing(tmp_path, 'say(**greet); print("one\\ntwo\\n", file=sys.stderr); sys.exit(3)')
    assert isinstance(error, BadExit)
    assert error.message == "agent 'coder': Claude Code exited with code 3 before it answered: two"
    assert error.log == "one\ntwo\n\n"


async def test_one_that_closes_its_output_and_stays_is_given_up(tmp_path: Path) -> None:
    error = await failing(tmp_path, "say(**greet); os.close(1); time.sleep(60)")
    assert isinstance(error, BadExit)
    assert "closed its output" in error.message


async def test_what_was_written_just_before_the_exit_is_heard(tmp_path: Path) -> None:
    async with playing(tmp_path, "say(**greet); say(**done); os._exit(1)") as (pipe, conversation):
        await frames(pipe)
    assert conversation.result is not None


async def test_a_line_that_is_no_json_is_bad_output(tmp_path: Path) -> None:
    error = await failing(tmp_path, 'print("{no json", flush=True); time.sleep(60)')
    assert isinstance(error, BadOutput)


async def test_silence_is_bounded_and_names_the_tool(tmp_path: Path) -> None:
    error = await failing(tmp_path, "say(**greet); say(**tool); time.sleep(60)", Timeouts(idle=8.0))
    assert isinstance(error, Stalled)
    assert (error.tool, "at the tool Bash" in error.message) == ("Bash", True)


async def test_time_is_bounded_for_one_that_never_stops_talking(tmp_path: Path) -> None:
    play = "say(**greet)\nwhile True: say(type='new'); time.sleep(0.01)"
    error = await failing(tmp_path, play, Timeouts(call=0.5))
    assert isinstance(error, TimedOut)
    assert error.tool is None


async def test_one_that_does_not_exit_after_its_answer_is_noted(tmp_path: Path) -> None:
    play = "say(**greet); say(**done)\nwhile True: say(type='new'); time.sleep(0.01)"
    async with playing(tmp_path, play) as (pipe, _):
        await frames(pipe)
        began = asyncio.get_running_loop().time()
        assert "was stopped" in await pipe.wait_for_exit()
        assert asyncio.get_running_loop().time() - began < 60


async def test_it_is_known_when_the_first_word_came(tmp_path: Path) -> None:
    async with playing(tmp_path, "say(**greet); say(**tool); say(**done)") as (pipe, _):
        await frames(pipe)
        assert pipe.first_word is not None
        assert 0 < pipe.first_word < 10


BEGIN = """
say(**greet); say(type="system", subtype="init")
told = json.loads(sys.stdin.readline())
replay = dict(type="user", isReplay=True, **{"uuid": told["uuid"], "message": told["message"]})
"""


@pytest.mark.parametrize(
    ("play", "results", "told"),
    [
        ("say(**replay); say(**done)", 1, ["hello"]),
        ("say(**done); say(**replay); say(**tool); say(**done)", 2, ["hello"]),
        ("say(**{**done, 'is_error': True}); say(**replay); say(**done)", 1, []),
    ],
)
async def test_what_it_was_told_has_its_turn_before_the_conversation_is_over(
    tmp_path: Path, play: str, results: int, told: list[str]
) -> None:
    inbox = MemoryInbox("hello")
    async with (
        playing(tmp_path, BEGIN + play) as (pipe, _),
        MessageFeed(pipe.process, inbox, message_frame) as pipe.feed,
    ):
        found = await frames(pipe)
        assert sum(frame["type"] == "result" for frame in found) == results
    assert inbox.taken_in == told


async def test_one_that_dies_before_the_turn_that_it_owes_has_not_answered(tmp_path: Path) -> None:
    async with (
        playing(tmp_path, BEGIN + "say(**done); say(**replay)") as (pipe, _),
        MessageFeed(pipe.process, MemoryInbox("hello"), message_frame) as pipe.feed,
    ):
        with pytest.raises(BadExit):
            await frames(pipe)
        assert pipe.goes_on

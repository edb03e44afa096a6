"""A CLI agent that reads JSON lines: the prompt is the first of them, and more may follow while it works."""

import sys
from typing import Any

import pytest

from muster.agents.base import InteractiveAgent
from muster.domain.call import Reply, ask
from muster.domain.errors import BadExit
from muster.testing.agents import MemoryInbox
from tests.agents.cli.stage import PATIENT, Stage, section_of

# Repeats what it reads with its id; says it all at the end.
ECHO = """
import json, sys
said = []
for line in sys.stdin:
    frame = json.loads(line)
    said.append(frame["content"])
    print(json.dumps({"uuid": frame["uuid"]}), flush=True)
    if len(said) == int(sys.argv[1]):
        break
if sys.argv[1] == "3":
    sys.exit(4)
print(json.dumps({"result": "; ".join(said), "turns": len(said)}), flush=True)
sys.stdin.read()
"""
MESSAGE = {"type": "user", "uuid": "{id}", "content": "{message}"}


def agent(stage: Stage, lines: int, **changes: Any) -> InteractiveAgent:
    section = section_of(
        command=[sys.executable, "-c", ECHO, str(lines)],
        output="jsonl",
        answer="$.result",
        ends="$.turns",
        message=MESSAGE,
        message_taken="$.uuid",
        **changes,
    )
    found = stage.agent(section)
    assert isinstance(found, InteractiveAgent)
    assert found.takes_messages
    return found


async def test_the_prompt_comes_first_and_messages_after_it(stage: Stage) -> None:
    inbox = MemoryInbox("one", 'say "two"\n{id}')
    reply = await agent(stage, 2).converse(ask("begin"), PATIENT, inbox)
    assert reply.text == "begin; one"
    assert inbox.taken_in == ["one"]


async def test_one_that_nobody_tells_more_has_the_end_of_its_input_after_the_prompt(stage: Stage) -> None:
    found = stage.agent(
        section_of(
            command=[sys.executable, "-c", ECHO, "9"],
            output="jsonl",
            answer="$.result",
            ends="$.turns",
            message=MESSAGE,
            message_taken="$.uuid",
        )
    )
    reply: Reply = await found.call(ask("begin"), PATIENT)
    assert reply.text == "begin"


async def test_what_a_failing_agent_had_taken_in_is_known(stage: Stage) -> None:
    inbox = MemoryInbox("one", "two", "three")
    with pytest.raises(BadExit):
        await agent(stage, 3).converse(ask("begin"), PATIENT, inbox)
    assert inbox.taken_in == ["one", "two"]


def test_an_agent_without_messages_takes_none(stage: Stage) -> None:
    found = stage.agent(section_of(command=["cat"]))
    assert isinstance(found, InteractiveAgent)
    assert not found.takes_messages

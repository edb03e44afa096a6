"""Errors of tools speak of parameters and tools: a model that reads them knows neither options nor commands."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from muster.cli.commands import COMMANDS
from muster.domain.advice import ArgumentAdvice
from muster.domain.errors import BadArgument, LimitReached, MusterError
from muster.mcp.control_inputs import ControlInput
from muster.mcp.errors import LISTS, error_answer, tool_for
from muster.mcp.inputs import ToolInput
from muster.mcp.server import TOOLS
from tests.mcp.coordinated import coordinated

ASK, SUITE, TASK = (TOOLS[name].takes for name in ("ask", "run_suite", "submit_task"))
DEAR = """
schema_version: 1
skill_or_agent: judged
cases:
  - id: judged/one
    input: { messages: [{ role: user, content: hello }] }
    expected: { rubric: [{ id: kind, description: it is kind, weight: 1.0 }] }
    evaluator_config: { evaluator: judge }
"""


def told(error: MusterError, takes: type[ToolInput]) -> dict[str, Any]:
    return error_answer(error, takes, lambda text: text)


def ways(takes: type[ToolInput], *suggestions: str) -> list[str]:
    found: list[str] = told(MusterError("no", suggestions=suggestions), takes).get("suggestions", [])
    return found


def test_an_argument_has_the_name_that_it_has_in_the_tool() -> None:
    error = BadArgument("must be more than 0", argument="budget")
    assert told(error, ASK)["message"] == "budget_usd must be more than 0"
    assert told(BadArgument("is wrong", argument="name"), ASK)["message"] == "name is wrong"
    assert told(BadArgument("is wrong", argument="elsewhere"), ASK)["message"] == "elsewhere is wrong"


def test_a_suggestion_names_the_parameter_of_the_tool_and_one_that_it_does_not_have_is_left_out() -> None:
    assert ways(SUITE, ArgumentAdvice("judge", "AGENT")) == ['add judge="AGENT"']
    assert ways(SUITE, ArgumentAdvice("agent", "anthropic/MODEL")) == ['add agents=["anthropic/MODEL"]']
    assert ways(TASK, ArgumentAdvice("continue", words="leave out {}")) == ["leave out continues"]
    assert ways(SUITE, ArgumentAdvice("evaluator", "rules"), "or not") == ["or not"]


def test_at_the_command_line_the_same_suggestion_names_the_option() -> None:
    assert ArgumentAdvice("judge", "AGENT") == "add --judge AGENT"
    assert ArgumentAdvice("max_tokens", words="lower {}") == "lower --max-tokens"
    assert ArgumentAdvice("input", "…", entry="topic", words="{}") == "--input topic=…"
    assert type(MusterError("no", suggestions=(ArgumentAdvice("judge"),)).record()["suggestions"][0]) is str


def test_a_command_is_told_as_the_tool_that_does_it_or_is_the_operators() -> None:
    assert ways(ControlInput, "muster runs show r1 --call 'a b' --json") == ["result(id='r1', part='call', key='a b')"]
    assert ways(ControlInput, "muster pool start") == ["the operator can run: muster pool start"]
    assert ways(ControlInput, "muster ask 'PROMPT") == ["the operator can run: muster ask 'PROMPT"]


@pytest.mark.parametrize(
    "command",
    [
        *LISTS,
        "runs show RUN",
        "runs show RUN --calls",
        "runs show RUN --call KEY",
        "runs resume RUN",
        "runs resume RUN --budget USD",
        "task result TASK",
        "task retry TASK",
        "task allow TASK",
        "task deny TASK",
        "answer RUN --call KEY TEXT",
        "ask AGENT PROMPT",
    ],
)
def test_each_command_exists_and_its_tool_and_parameters_too(command: str) -> None:
    words = [word for word in command.split() if word.islower() and not word.startswith("-")]
    table: Any = COMMANDS
    for word in words:
        assert word in table
        table = table[word].commands or {}
    call = tool_for(command.split())
    assert call is not None
    name, _, arguments = call.partition("(")
    tool = TOOLS[name.split()[0]]
    assert set(re.findall(r"(\w+)=", arguments)) <= set(tool.takes.model_fields)


def test_a_limit_says_when_to_try_again() -> None:
    found = told(LimitReached("too many starts", retry_after=12.34), ASK)
    assert (found["error"], found["retry_after_secs"]) == ("limit", 12.3)


@pytest.mark.parametrize(
    ("tool", "arguments", "suggested"),
    [
        ("run_chain", {"chain": "greet"}, 'input={"topic": "…"}'),
        ("run_suite", {"suites": ["smoke"]}, 'add agents=["anthropic/MODEL"]'),
        ("run_suite", {"suites": ["judged"], "agents": ["sim/echo"]}, 'add judge="AGENT"'),
        ("start_battle", {"agent": "paid", "goal": "tea"}, 'name one: judge="AGENT"'),
        ("submit_task", {"prompt": "x", "after": ["nothing"]}, "list_work(kind='task') names what there is"),
        ("submit_task", {"prompt": "x", "agent": "me"}, "ask(agent='me', prompt=…)"),
        ("submit_task", {"prompt": "x", "slot": "nobody"}, "pool() lists the slots"),
        ("ask", {"agent": "nobody", "prompt": "x"}, "known agents: held, me, paid, sim/echo, sim/slow"),
        ("result", {"id": "nothing"}, "list_work names what there is"),
        ("messages", {"action": "unread", "slot": "nobody"}, "pool() lists the slots"),
        (
            "wait",
            {"ids": ["b0123456789abcdef"]},
            "result(id='b0123456789abcdef') shows it; wait for the runs whose calls it holds",
        ),
        ("context", {"action": "delete", "name": "tone"}, "context(action='list') names the texts"),
    ],
)
async def test_what_a_refused_call_suggests_can_be_done_by_its_reader(
    tmp_path: Path, tool: str, arguments: dict[str, Any], suggested: str
) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "judged.yaml").write_text(DEAR)
    async with coordinated(tmp_path, drives=False) as (desk, _):
        found = await desk.refused(tool, **arguments)
        assert suggested in found["suggestions"], found
        assert not re.search(r"(^|[ \"])--[a-z]", json.dumps(found)), found

"""Tool cases: the agent really calls tools with scripted results, and what was observed decides."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from muster.domain.case import Status
from muster.domain.run import RunState
from muster.sim.options import Options
from muster.suites.values.case import MAX_TOOL_TURNS
from tests.suites.stage import MODEL, Cases, a_case, a_suite, playing, program, stage, statuses

LOOK = {"name": "look", "arguments": {"city": "Bern", "unit": "C"}}
ASTRAY = {"name": "look", "arguments": {"city": "Rome", "unit": "C"}}
BOOK = {"name": "book", "arguments": {"seats": 2, "day": {"name": "Mon", "hour": 9}}}
DONE = "It is done."

# What is called when this was said last, by the user or by a tool.
CUES = {
    "forwards|go look": LOOK,
    "backwards|lacking|go book": BOOK,
    "astray": ASTRAY,
    "nowhere": {"name": "fly", "arguments": {}},
    "no tool 'fly'": {"name": "look", "arguments": {"city": "Oslo"}},
}
MODEL_SCRIPT = playing(
    *({"text": text, "answer": {"tool_calls": [call]}} for text, call in CUES.items()), {"answer": DONE}
)
PROGRAM = f"""
import json, re, sys
request = json.load(sys.stdin)
last = request["messages"][-1]["content"]
calls = [call for text, call in {CUES!r}.items() if re.search(text, last)]
print(json.dumps({{"tool_calls": calls[:1]}} if calls else {{"text": {DONE!r}}}))
"""
CLI = """
[agents.coder]
kind = "cli"
command = [{python}, "-m", "muster.sim.cli_agent", "--script", "steps.json"]
output = "jsonl"
answer = "$.result"
cost_usd = "$.total_cost_usd"
ends = "$.num_turns"
tool_name = "$.message.content[?@.type=='tool_use'].name"
tool_id = "$.message.content[?@.type=='tool_use'].id"
tool_arguments = "$.message.content[?@.type=='tool_use'].input"
tool_done = "$.message.content[?@.type=='tool_result'].tool_use_id"
tool_result = "$.message.content[?@.type=='tool_result'].content"
budget_usd = 0.50
"""
STEPS = {"forwards": (LOOK, BOOK), "backwards": (BOOK, LOOK), "astray": (ASTRAY, BOOK), "lacking": (BOOK,)}


def the_tools(look: str, book: str) -> list[dict[str, Any]]:
    """Make two tools that say what is to be called next."""
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    places = [{"args_match": {"city": "Bern"}, "result": look}, {"args_match": {"city": "Rome"}, "result": look}]
    return [{"name": "look", "parameters": city, "results": places}, {"name": "book", "results": [{"result": book}]}]


FORWARDS = the_tools("go book", "fine")
BACKWARDS = the_tools("fine", "go look")
LACKING = the_tools("fine", "fine")


def expecting(name: str, said: str, tools: list[dict[str, Any]], *calls: dict[str, Any], order: str = "") -> Cases:
    sequence = [{"order": order, **call} if order else call for call in calls]
    return a_case(name, said, input={"tools": tools}, expected={"tool_sequence": sequence})


BERN = {"tool": "look", "args_match": {"city": "Bern"}}
MONDAY = {"tool_name": "book", "args_match": {"day": {"name": "Mon"}}}

CASES: dict[Status, tuple[Cases, ...]] = {
    Status.PASSED: (
        expecting("subsequence", "forwards", FORWARDS, BERN, MONDAY),
        expecting("strict", "forwards", FORWARDS, BERN, MONDAY, order="strict"),
        expecting("unordered", "backwards", BACKWARDS, BERN, MONDAY, order="unordered"),
        expecting("one-of-two", "forwards", FORWARDS, MONDAY),
    ),
    Status.FAILED: (
        expecting("turned", "backwards", BACKWARDS, BERN, MONDAY),
        expecting("turned-strict", "backwards", BACKWARDS, BERN, MONDAY, order="strict"),
        expecting("too-many", "forwards", FORWARDS, BERN, order="strict"),
        expecting("argument", "astray", FORWARDS, BERN, MONDAY, order="unordered"),
        expecting("missing", "lacking", LACKING, BERN, MONDAY, order="unordered"),
    ),
}


def declared(folder: Path) -> str:
    """Declare a program and a CLI agent that call the same tools as the model does."""
    rules = [
        {
            "match": word,
            "steps": [
                *({"tool": {"name": c["name"], "input": c["arguments"], "result": "ok"}} for c in calls),
                {"say": DONE},
            ],
        }
        for word, calls in STEPS.items()
    ]
    (folder / "steps.json").write_text(json.dumps(rules), encoding="utf-8")
    return program(folder, "helper", PROGRAM) + CLI.format(python=json.dumps(sys.executable))


@pytest.mark.parametrize("agent", [MODEL, "helper", "coder"])
async def test_the_right_calls_pass_and_wrong_order_argument_or_a_missing_call_fail(tmp_path: Path, agent: str) -> None:
    async with stage(tmp_path, MODEL_SCRIPT, toml=declared(tmp_path)) as s:
        a_suite(tmp_path, *(case for cases in CASES.values() for case in cases))
        run = await s.run(agents=[agent], budget="10")
        found = statuses(await s.results(run))
        assert found == {case["id"][2:]: status for status, cases in CASES.items() for case in cases}
        assert run.result == {"ok": False, "units": 9, "cases": 9, "counts": {"passed": 4, "failed": 5}}


async def test_results_of_tools_are_sent_back_and_calls_are_kept_with_their_arguments(tmp_path: Path) -> None:
    async with stage(tmp_path, MODEL_SCRIPT) as s:
        a_suite(tmp_path, CASES[Status.PASSED][0])
        run = await s.run()
        result = await s.result(run)
        first, second, third = await s.requests(run, result.keys)
        assert result.tools == ("look", "book")
        assert [tool["name"] for tool in first["tools"]] == ["look", "book"]
        assert [message["role"] for message in third["messages"]] == ["user", "assistant", "tool", "assistant", "tool"]
        (called,) = second["messages"][1]["tool_calls"]
        assert (called["name"], called["arguments"]) == ("look", LOOK["arguments"])
        assert second["messages"][2] == {"role": "tool", "text": "go book", "tool_call_id": called["id"]}
        assert s.agent.audit.calls == 3
        assert (result.input_tokens > 0, result.cost) == (True, run.spent.billed)


async def test_a_tool_that_is_not_there_and_arguments_without_a_result_are_told_as_errors(tmp_path: Path) -> None:
    async with stage(tmp_path, MODEL_SCRIPT) as s:
        a_suite(tmp_path, expecting("errors", "nowhere", FORWARDS, {"tool": "fly"}, {"tool": "look"}))
        run = await s.run()
        result = await s.result(run)
        told = [
            message for message in (await s.requests(run, result.keys))[-1]["messages"] if message["role"] == "tool"
        ]
        assert [message["text"] for message in told] == [
            "error: there is no tool 'fly'",
            "error: look has no result for these arguments",
        ]
        assert (result.status, result.tools) == (Status.PASSED, ("fly", "look"))


async def test_an_agent_that_calls_tools_without_end_is_an_error(tmp_path: Path) -> None:
    async with stage(tmp_path, playing({"answer": {"tool_calls": [LOOK]}})) as s:
        result = await s.one(expecting("endless", "go", FORWARDS, BERN))
        assert (result.status, (result.error or {})["code"]) == (Status.ERROR, "tool_turns")
        assert len(result.keys) == s.agent.audit.calls == MAX_TOOL_TURNS + 1


async def test_several_calls_at_once_are_all_answered(tmp_path: Path) -> None:
    both = playing({"text": "both", "answer": {"text": "Both.", "tool_calls": [LOOK, BOOK]}}, {"answer": DONE})
    async with stage(tmp_path, both) as s:
        a_suite(tmp_path, expecting("both", "do both", LACKING, BERN, MONDAY, order="strict"))
        run = await s.run()
        result = await s.result(run)
        last = (await s.requests(run, result.keys))[-1]["messages"]
        assert result.status is Status.PASSED
        assert [message.get("tool_call_id") for message in last[2:]] == [c["id"] for c in last[1]["tool_calls"]]


async def test_a_model_that_wants_a_tool_though_the_case_has_none_is_observed_and_not_asked_on(tmp_path: Path) -> None:
    case = a_case("none", "forwards", expected={"tool_sequence": [BERN]})
    async with stage(tmp_path, MODEL_SCRIPT) as s:
        result = await s.one(case)
        assert (result.status, result.tools, s.agent.audit.calls) == (Status.PASSED, ("look",), 1)


async def test_an_answer_of_nothing_but_calls_that_nobody_declared_is_empty(tmp_path: Path) -> None:
    case = a_case("none", "forwards", expected={"output": [{"kind": "not_contains", "value": "sorry"}]})
    async with stage(tmp_path, MODEL_SCRIPT) as s:
        result = await s.one(case)
        assert (result.status, str(result.quality), result.tools) == (Status.FAILED, "empty", ("look",))


async def test_an_answer_that_stops_to_use_tools_and_calls_none_is_unfinished(tmp_path: Path) -> None:
    script = playing({"answer": {"text": "Let me look.", "stop": "tool_use"}})
    case = a_case("none", "forwards", expected={"output": [{"kind": "contains", "value": "look"}]})
    async with stage(tmp_path, script) as s:
        result = await s.one(case)
        assert (result.status, str(result.quality)) == (Status.FAILED, "unfinished")
        assert "names tools that were not called" in result.why


async def test_tools_go_on_over_the_turns_of_the_user(tmp_path: Path) -> None:
    tools = the_tools("fine", "fine")
    case = a_case(
        "turns",
        "forwards",
        input={"tools": tools, "follow_ups": ["go book"]},
        expected={
            "tool_sequence": [BERN | {"order": "strict"}, MONDAY | {"order": "strict"}],
            "output": [{"kind": "equals", "value": DONE, "turn": 1}],
        },
    )
    async with stage(tmp_path, MODEL_SCRIPT) as s:
        result = await s.one(case)
        assert (result.status, result.tools, len(result.keys)) == (Status.PASSED, ("look", "book"), 4)


async def test_an_agent_that_fails_is_an_error_of_its_own_case_alone(tmp_path: Path) -> None:
    async with stage(tmp_path, Options()) as s:
        a_suite(tmp_path, a_case("good"), a_case("bad", agent="sim/fail"))
        run = await s.run()
        assert run.state is RunState.COMPLETED
        assert statuses(await s.results(run)) == {"good": Status.PASSED, "bad": Status.ERROR}

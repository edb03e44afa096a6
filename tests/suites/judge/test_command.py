"""A command of the user's as judge: real processes, told in JSON and heard in JSON."""

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from muster.app import open_muster
from muster.domain.call import Message, Quality, Role, ToolCall
from muster.domain.canonical import Json
from muster.domain.money import Microdollars
from muster.domain.run import Run, RunState
from muster.engine.context import Context
from muster.engine.workload import REGISTRY
from muster.settings import load_settings
from muster.suites.judge.command import ask_command, case_json, read_answer, result_json
from muster.suites.values.case import Anchor, CheckKind, Evaluator, Golden, OutputCheck, RubricItem, ToolExpectation
from muster.suites.values.rules import rules_in
from muster.suites.values.verdict import Judgement, Observation
from tests.suites.judge.stage import SEEN, case, reply

SCORES: list[Any] = [{"rubric_id": "right", "score": 1, "rationale": "yes"}, {"rubric_id": "brief", "score": 0.25}]


@dataclass
class Heard:
    run: Run
    judgement: Judgement


async def heard(folder: Path, script: str, *, seen: Observation = SEEN, **changes: Any) -> Heard:
    """Have an answer judged by some lines of Python."""
    found: list[Judgement] = []
    asked = case(**{"process": (sys.executable, "-c", script), "process_folder": str(folder), **changes})

    @REGISTRY.workload("test-judge-command")
    async def work(ctx: Context, spec: Any) -> Any:
        found.append(await ask_command(ctx, asked, seen, key="case/x/s/1"))

    settings = load_settings(folder=folder, environment={"PATH": os.environ["PATH"]})
    async with open_muster(settings=settings) as muster:
        run = await (await muster.start("test-judge-command", {})).wait()
    assert run.state is RunState.COMPLETED, run.error
    return Heard(run, found[0])


def says(value: Json) -> str:
    return f"import sys; sys.stdin.read(); print({json.dumps(value)!r})"


async def test_a_command_sees_the_case_and_the_result_and_scores_every_item(tmp_path: Path) -> None:
    script = """
import json, os, sys
told = json.load(sys.stdin)
open("told.json", "w").write(json.dumps(told))
right = "Paris" in told["result"]["output"] and os.environ["MODE"] == "strict"
scores = [{"rubric_id": item["id"], "score": float(right), "rationale": "saw it"} for item in told["case"]["expected"]["rubric"]]
print("looking at it", file=sys.stderr)
print(json.dumps({"scores": scores, "passed": right}))
"""  # noqa: E501
    found = await heard(tmp_path, script, environment={"MODE": "strict"})
    assert [(item.id, item.score, item.by, item.weight, item.rationale) for item in found.judgement.items] == [
        ("right", 1.0, "process", 0.7, "saw it"),
        ("brief", 1.0, "process", 0.3, "saw it"),
    ]
    assert (found.judgement.passed, found.judgement.failures, found.judgement.version) == (True, (), "process/2")
    assert found.judgement.keys == ("case/x/s/1/process",)
    assert found.judgement.by.startswith(sys.executable)
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["case"]["input"]["messages"] == [{"role": "user", "content": "What is the capital of France?"}]
    assert told["result"] == {
        "output": SEEN.text,
        "answers": [SEEN.text],
        "tool_calls": [],
        "quality": "good",
        "cost_usd": 0.0,
        "seconds": 0.0,
    }


async def test_a_command_may_say_passed_outright(tmp_path: Path) -> None:
    found = await heard(tmp_path, says({"passed": False}))
    assert (found.judgement.passed, found.judgement.items, found.judgement.failed) == (False, (), False)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import sys; sys.stdin.read(); print('no idea', file=sys.stderr); sys.exit(3)", "no idea"),
        ("import sys; sys.stdin.read(); print('fine, I think')", "holds no JSON"),
        ("import sys; sys.stdin.read()", "it gave no output"),
        (says({"scores": [{"rubric_id": "right", "score": 7}]}), "does not fit"),
        (f"{says({'passed': False})}; print('debug: it said {{\"passed\": true}}')", "not one JSON document"),
    ],
    ids=["exit", "prose", "silence", "out of range", "out-voted by what it quotes"],
)
async def test_a_command_that_fails_is_a_failed_judgement(tmp_path: Path, script: str, words: str) -> None:
    judgement = (await heard(tmp_path, script)).judgement
    assert judgement.failed
    assert words in judgement.failures[0]
    assert judgement.keys == ("case/x/s/1/process",)


async def test_a_command_has_the_time_of_its_case(tmp_path: Path) -> None:
    judgement = (await heard(tmp_path, "import time; time.sleep(60)", timeout=0.3)).judgement
    assert judgement.failed
    assert "timed_out" in judgement.failures[0]


async def test_a_command_that_is_not_there_is_a_failed_judgement(tmp_path: Path) -> None:
    judgement = (await heard(tmp_path, "", process=("./no-such-command", "$HOME"))).judgement
    assert judgement.failed
    assert "no-such-command" in judgement.failures[0]
    assert judgement.by == "./no-such-command '$HOME'"


async def test_a_case_without_a_command_is_a_failed_judgement(tmp_path: Path) -> None:
    judgement = (await heard(tmp_path, "", process=())).judgement
    assert (judgement.failed, judgement.keys) == (True, ())


def answered(answer: Any, **changes: Any) -> Judgement:
    return read_answer(case(**changes), "check", reply(json.dumps(answer)), "k")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"scores": SCORES[:1]}, "not scored: brief"),
        ({"scores": [*SCORES, SCORES[0]]}, "scored twice: right"),
        ({"scores": [*SCORES, {"rubric_id": "extra", "score": 1}]}, "not in the rubric: extra"),
        ({"scores": [*SCORES, {"rubric_id": "extra", "score": 1}], "passed": True}, "not in the rubric: extra"),
        ({"scores": []}, "neither scores nor"),
        ({"passed": None}, "neither scores nor"),
        ({"scores": [{"rubric_id": "right", "score": -0.01}], "passed": True}, "does not fit"),
        ({"scores": [{"rubric_id": "right", "score": True}], "passed": True}, "does not fit"),
        ({"passed": "yes"}, "does not fit"),
        ({"verdict": "good"}, "does not fit"),
    ],
)
def test_an_answer_that_cannot_be_used_fails_with_the_reason(answer: Json, why: str) -> None:
    judgement = answered(answer)
    assert judgement.failed
    assert why in judgement.failures[0]


@pytest.mark.parametrize(
    "text",
    [
        '{"passed": false, "passed": true}',
        '{"scores": [{"rubric_id": "right", "score": 0, "score": 1}], "passed": true}',
        '{"passed": true}{"passed": true}',
        '{"passed": true} # sure',
        '```json\n{"passed": true}\n```',
        '[{"passed": true}]',
    ],
)
def test_the_whole_output_is_one_document_that_says_one_thing(text: str) -> None:
    said = reply(text, data={"passed": True})  # what somebody searched out of it counts for nothing
    judgement = read_answer(case(), "check", said, "k")
    assert (judgement.passed, judgement.failed) == (None, True)
    assert "is not one JSON document" in judgement.failures[0]


def test_missing_scores_do_when_passed_is_said() -> None:
    judgement = answered({"scores": SCORES[:1], "passed": True})
    assert [(item.id, item.score) for item in judgement.items] == [("right", 1.0)]
    assert judgement.passed is True


def test_items_have_the_order_and_the_weights_of_the_rubric() -> None:
    judgement = answered({"scores": SCORES[::-1]})
    assert [(item.id, item.score, item.critical) for item in judgement.items] == [
        ("right", 1.0, True),
        ("brief", 0.25, False),
    ]
    assert judgement.passed is None


def test_without_a_rubric_the_command_names_its_scores_itself() -> None:
    judgement = answered({"scores": [{"rubric_id": "tone", "score": 0.5}]}, rubric=())
    assert [(item.id, item.score, item.weight) for item in judgement.items] == [("tone", 0.5, 1.0)]


def test_a_case_is_told_in_the_words_of_the_format() -> None:
    check = OutputCheck(kind=CheckKind.JSON_SCHEMA, schema={"type": "object"})
    golden = OutputCheck(kind=CheckKind.GOLDEN_DIFF, golden=Golden(path="g.txt", text="G"), turn=1)
    asked = case(
        tags=("smoke",),
        timeout=5.0,
        seed=7,
        messages=(
            Message(role=Role.USER, text="hi"),
            Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="1", name="look"),)),
            Message(role=Role.TOOL, text="seen", tool_call_id="1"),
        ),
        follow_ups=("more",),
        context=0,
        environment={"A": "b"},
        evaluator=Evaluator.PROCESS,
        process=("check",),
        threshold=0.0,
        golden=Golden(path="golden/x.txt", text="x"),
        judge_prompt="p",
        output=(check, golden),
        tool_sequence=(ToolExpectation(tool="look", args_match={"a": 1}),),
        rubric=(RubricItem(id="r", description="d", auto_check=check, anchors=(Anchor(score=0.5, text="half"),)),),
    )
    assert case_json(asked) == {
        "id": "geo/capital",
        "skill_or_agent": "geo",
        "description": "Knows capitals",
        "tags": ["smoke"],
        "timeout_secs": 5.0,
        "seed": 7,
        "input": {
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "", "tool_calls": [{"tool": "look", "arguments": {}}]},
                {"role": "tool", "content": "seen", "tool_call_id": "1"},
            ],
            "follow_ups": ["more"],
            "context": 0,
            "env_overrides": {"A": "b"},
        },
        "expected": {
            "tool_sequence": [{"tool": "look", "args_match": {"a": 1}, "order": "subsequence"}],
            "output": [
                {"kind": "json_schema", "schema": {"type": "object"}},
                {"kind": "golden_diff", "golden_path": "g.txt", "turn": 1},
            ],
            "rubric": [
                {
                    "id": "r",
                    "description": "d",
                    "weight": 1.0,
                    "critical": False,
                    "auto_check": {"kind": "json_schema", "schema": {"type": "object"}},
                    "anchors": [{"score": 0.5, "text": "half"}],
                }
            ],
        },
        "evaluator_config": {
            "evaluator": "process",
            "golden_path": "golden/x.txt",
            "golden_threshold": 0.9,
            "process_cmd": ["check"],
            "judge_prompt": "p",
            "effectiveness_threshold": 0.0,
        },
    }


def test_a_result_tells_answers_tools_and_what_it_took() -> None:
    seen = replace(
        SEEN,
        answers=("a", "b"),
        tool_calls=(ToolCall(id="1", name="look", arguments={"x": 1}, result="seen"),),
        quality=Quality.CUT,
        cost=Microdollars(1_500_000),
        seconds=2.5,
    )
    assert result_json(seen) == {
        "output": "b",
        "answers": ["a", "b"],
        "tool_calls": [{"tool": "look", "arguments": {"x": 1}, "result": "seen", "failed": False}],
        "quality": "cut",
        "cost_usd": 1.5,
        "seconds": 2.5,
    }


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"scores": SCORES, "pased": False}, "unknown key 'pased'; did you mean passed?"),
        ({"scores": SCORES, "Passed": False}, "unknown key 'Passed'; did you mean passed?"),
        ({"passed": True, "score": SCORES}, "unknown key 'score'; did you mean scores?"),
        ({"scores": [{**SCORES[0], "rationle": "x"}, SCORES[1]]}, "unknown key 'rationle'; did you mean rationale?"),
    ],
)
def test_a_key_close_to_a_known_one_makes_the_answer_unusable(said: Json, words: str) -> None:
    answered = reply(json.dumps(said))
    found = read_answer(case(), "check", answered, "key")
    assert found.failed
    assert words in found.failures[0]
    assert not read_answer(case(), "check", answered, "key", rules_in({})).failed  # as in runs of an older version


@pytest.mark.parametrize("said", [{"scores": SCORES, "ok": False}, {"passed": True, "error": "boom"}])
def test_a_pass_beside_a_key_that_says_no_is_none_except_in_runs_of_an_older_version(said: Json) -> None:
    answered = reply(json.dumps(said))
    (why,) = read_answer(case(), "check", answered, "key").failures
    assert 'and not "passed": false' in why
    assert not read_answer(case(), "check", answered, "key", rules_in({"scoring_rules": 3})).failed


def test_a_command_may_say_no_in_its_own_words_beside_ours() -> None:
    said = {"scores": [{**SCORES[0], "score": 0.1, "passed": False}, SCORES[1]], "passed": False, "ok": False}
    assert read_answer(case(), "check", reply(json.dumps(said)), "key").passed is False


def test_other_keys_are_the_commands_own() -> None:
    said = {"scores": [{**SCORES[0], "model": "m"}, SCORES[1]], "version": 3, "error": None, "failed": 0, "ok": True}
    assert not read_answer(case(), "check", reply(json.dumps(said)), "key").failed

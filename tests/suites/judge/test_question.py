"""The question that a judge is asked: everything it needs is there, and it is always the same."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.call import Message, Quality, Role, ToolCall, identify, request_json
from muster.domain.canonical import canonical
from muster.domain.money import Microdollars
from muster.suites.judge.question import SCHEMA, VERSION, pose, pose_again
from muster.suites.values.case import Anchor, RubricItem
from muster.suites.values.verdict import Observation
from muster.text.schemas.json_schema import require_schema
from tests.suites.judge.stage import RUBRIC, SEEN, case


def text_of(**changes: object) -> str:
    return pose(case(**changes), SEEN).request.messages[0].text


def test_description_prompt_rubric_and_weights_reach_the_judge() -> None:
    text = text_of(judge_prompt="Be harsh about spelling.")
    assert "# What is tested\nKnows capitals" in text
    assert "# How to judge\nBe harsh about spelling." in text
    assert "- id: right (weight 0.7, critical)\n  Names the capital\n  0 = not met at all\n  1 = fully met" in text
    assert "- id: brief (weight 0.3)\n" in text
    assert "Score these items: right, brief. " in text


def test_anchors_are_shown_from_low_to_high_and_the_ends_are_always_there() -> None:
    anchors = (Anchor(score=1.0, text="all of it"), Anchor(score=0.5, text="half of it"))
    text = text_of(rubric=(RubricItem(id="a", description="d", anchors=anchors),))
    assert "  0 = not met at all\n  0.5 = half of it\n  1 = all of it" in text
    assert "fully met" not in text


def test_the_conversation_is_told_in_its_order() -> None:
    messages = (
        Message(role=Role.SYSTEM, text="Be kind."),
        Message(role=Role.USER, text="Hello?"),
        Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="1", name="look"),)),
    )
    asked = case(messages=messages, follow_ups=("And?", "Never said"), context={"city": "Bonn"})
    text = pose(asked, Observation(answers=("one", "two"))).request.messages[0].text
    told = ['{"city":"Bonn"}', "Be kind.", "Hello?", '"tool":"look"', "\none\n", "\nAnd?\n", "\ntwo\n"]
    assert [text.index(part) for part in told] == sorted(text.index(part) for part in told)
    assert "Never said" not in text
    assert "message 4 from user" in text


def test_observed_tool_calls_are_shown_with_what_they_gave() -> None:
    calls = (
        ToolCall(id="x1", name="weather", arguments={"city": "Bonn"}, result="sunny"),
        ToolCall(id="x2", name="mail"),
    )
    text = pose(case(), replace(SEEN, tool_calls=calls)).request.messages[0].text
    assert '{"arguments":{"city":"Bonn"},"failed":false,"result":"sunny","tool":"weather"}' in text
    assert '{"arguments":{},"tool":"mail"}' in text
    assert "x1" not in text
    assert "It used no tool." in text_of()


@pytest.mark.parametrize("quality", [Quality.CUT, Quality.REFUSED, Quality.EMPTY, Quality.UNFINISHED])
def test_an_answer_that_is_not_good_is_told_as_such(quality: Quality) -> None:
    assert pose(case(), replace(SEEN, quality=quality)).request != pose(case(), SEEN).request


def test_what_changes_from_run_to_run_is_no_part_of_the_question() -> None:
    other = replace(SEEN, seconds=9.0, cost=Microdollars(7), model="m-2", keys=("k",), input_tokens=3, output_tokens=4)
    assert pose(case(), other) == pose(case(), SEEN)


def test_the_same_question_is_spelled_alike_in_every_process() -> None:
    script = (
        "from muster.domain.call import identify\n"
        "from muster.suites.judge.question import pose\n"
        "from tests.suites.judge.stage import SEEN, case\n"
        "print(identify('j', pose(case(context={'b': 1, 'a': 2}), SEEN).request).digest)"
    )

    def digest(seed: str) -> str:
        environment, root = {"PYTHONHASHSEED": seed}, Path(__file__).parents[3]
        return subprocess.check_output([sys.executable, "-c", script], env=environment, cwd=root, text=True).strip()

    digests = {digest("1"), digest("2")}
    assert digests == {identify("j", pose(case(context={"a": 2, "b": 1}), SEEN).request).digest}


def test_a_request_has_room_for_every_item_and_a_schema_and_no_temperature() -> None:
    request = pose(case(), SEEN).request
    assert request.usual_tokens == 1024 + 300 * len(RUBRIC)
    assert (request.temperature, request.seed) == (None, None)
    require_schema(request)
    assert request.schema == SCHEMA
    assert VERSION == "rubric/1"


def test_a_repair_holds_the_conversation_the_reply_and_the_flaw() -> None:
    question = pose(case(), SEEN)
    again = pose_again(question, "my reply", "one item is missing")
    assert again.messages[0] == question.request.messages[0]
    assert again.messages[1] == Message(role=Role.ASSISTANT, text="my reply")
    assert "one item is missing" in again.messages[2].text
    assert (again.system, again.schema) == (question.request.system, SCHEMA)
    same = pose_again(question, "my reply", "one item is missing")
    assert canonical(request_json(again)) == canonical(request_json(same))

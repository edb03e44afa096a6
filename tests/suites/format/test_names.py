"""Field names that nobody knows: misspelt, misplaced, or meant for other tools."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muster.suites.format.suite import examine
from tests.suites.format.suites import a_case, checked_by, judged_by, the_flaw, write_suite

CHECK = {"kind": "contains", "value": "x"}
ITEM = {"id": "kind", "description": "It is kind.", "weight": 1.0}
ASKED = {"messages": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (a_case(expected={"output": [CHECK], "tool_sequnce": [{"tool": "t"}]}), "expected.tool_sequnce tool_sequence"),
        (judged_by({**ITEM, "critcal": True}), "expected.rubric[0].critcal critical"),
        (a_case(thresold=1.0), "thresold threshold"),
        (a_case(input={**ASKED, "follow_up": ["y"]}), "input.follow_up follow_ups"),
        (a_case(evaluator_cfg={"evaluator": "judge"}), "evaluator_cfg evaluator_config"),
        (a_case(timeout_sec=5), "timeout_sec timeout_secs"),
        (a_case(Tags=["smoke"]), "Tags tags"),
        (a_case(tagz=["smoke"]), "tagz tags"),
        (a_case(tasg=["smoke"]), "tasg tags"),
        (a_case(skpi="later"), "skpi skip"),
        (a_case(evaluator_config={"golden_treshold": 1}), "evaluator_config.golden_treshold golden_threshold"),
        (checked_by({**CHECK, "feild": "a"}), "expected.output[0].feild field"),
        (judged_by({**ITEM, "auto_check": {**CHECK, "valeu": "x"}}), "expected.rubric[0].auto_check.valeu value"),
        (
            checked_by({"kind": "json_schema", "schema": {"type": "object"}, "shema": {}}),
            "expected.output[0].shema schema",
        ),
        (a_case(input={"messages": [{"role": "user", "content": "x", "rol": "y"}]}), "input.messages[0].rol role"),
        (a_case(rubric=[ITEM]), "rubric expected.rubric of a case"),
        (a_case(follow_up=["y"]), "follow_up input.follow_ups of a case"),
    ],
)
def test_a_name_close_to_a_known_one_is_wrong(tmp_path: Path, case: dict[str, Any], message: str) -> None:
    place, _, meant = message.partition(" ")
    found = the_flaw(write_suite(tmp_path, case))
    assert found.startswith(f"{place}: unknown field")
    assert found.endswith(f"; did you mean {meant}?")


def test_what_a_case_is_asked_with_is_wrong_where_it_would_be_ignored(tmp_path: Path) -> None:
    shown = a_case(input={"messages": [{"role": "user", "content": "a"}], "model_effort": "high"}, env_overrides={})
    found = examine(write_suite(tmp_path, shown, defaults={"model_effort": "low"}))
    assert sorted(flaw.message.partition(" ")[0] + flaw.message.rpartition(";")[2] for flaw in found.flaws) == [
        "defaults.model_effort: did you mean model_effort of a case?",
        "env_overrides: did you mean input.env_overrides of a case?",
        "input.model_effort: did you mean model_effort of a case?",
    ]


def test_misspelt_names_at_the_top_are_wrong_too(tmp_path: Path) -> None:
    wrong: dict[str, Any] = {"tag": ["x"], "evaluator_cfg": {}, "thresold": None}
    found = examine(write_suite(tmp_path, a_case(), risk_teir="low", tool_sequnce=[], defaults=wrong))
    assert sorted((flaw.line, flaw.message) for flaw in found.flaws) == [
        (2, "defaults.evaluator_cfg: unknown field here; did you mean evaluator_config of a case?"),
        (2, "defaults.tag: unknown field; did you mean tags?"),
        (2, "defaults.thresold: unknown field here; did you mean threshold of a case?"),
        (2, "risk_teir: unknown field; did you mean risk_tier?"),
        (2, "tool_sequnce: unknown field here; did you mean expected.tool_sequence of a case?"),
    ]


FOREIGN = (
    *("assert", "asserts", "assertions", "checks", "criteria", "expects", "expected_output", "ground_truth", "ideal"),
    *("metrics", "must_contain", "not_contains", "output", "outputs", "rubrics", "scorers", "validators", "graders"),
    *("min_score", "minScore", "pass-threshold", "passing_score", "score_threshold", "thresholds", "max_latency"),
    *("llm_rubric", "llm-rubric", "expected_json", "expected_tool_sequence", "target", "should", "must_not", "fail_if"),
    *("reference", "referenceOutputs", "testing_criteria", "expected_schema", "gold", "evaluation_steps", "icontains"),
    *("timeout", "timeout_ms", "time_limit", "max_turns", "similarity_threshold", "tolerance", "min_pass"),
    *("only", "focus", "disabled", "enabled", "if", "skip_if", "filter", "include", "labels", "matrix", "tests"),
)
PLACES: dict[str, Callable[[dict[str, Any]], tuple[dict[str, Any], dict[str, Any]]]] = {
    "case": lambda more: (a_case(**more), {}),
    "input": lambda more: (a_case(input={**ASKED, **more}), {}),
    "top": lambda more: (a_case(), more),
    "defaults": lambda more: (a_case(), {"defaults": more}),
}


@pytest.mark.parametrize("place", PLACES)
def test_expectations_thresholds_and_selections_of_other_tools_are_wrong_around_a_case(
    tmp_path: Path, place: str
) -> None:
    above = place in ("top", "defaults")
    names = {*FOREIGN, *(("expected", "threshold", "evaluator_config", "skip", "dataset") if above else ())}
    allowed = []
    for name in names:
        case, head = PLACES[place]({name: ["x"]})
        if not examine(write_suite(tmp_path, case, **head)).flaws:
            allowed.append(name)
    assert allowed == []


def test_a_name_of_another_tool_is_told_with_what_to_write_instead(tmp_path: Path) -> None:
    assert the_flaw(write_suite(tmp_path, a_case(output=[CHECK]))) == (
        "output: unknown field here, it would be ignored; "
        "what is expected belongs into expected of a case: output, tool_sequence or rubric"
    )
    assert the_flaw(write_suite(tmp_path, a_case(), defaults={"expected": {"output": [CHECK]}})) == (
        "defaults.expected: unknown field here; did you mean expected of a case?"
    )


@pytest.mark.parametrize(
    "case",
    [
        checked_by({**CHECK, "severity": "high"}),
        judged_by({**ITEM, "owner": "me"}),
        a_case(expected={"output": [CHECK], "latency": 5}),
        a_case(expected={"tool_sequence": [{"tool": "t", "times": 3}]}),
        a_case(evaluator_config={"retries": 3}),
    ],
)
def test_any_unknown_name_is_wrong_where_it_is_decided_what_passes(tmp_path: Path, case: dict[str, Any]) -> None:
    assert the_flaw(write_suite(tmp_path, case)).endswith(": unknown field")


def test_other_unknown_names_are_doubtful_and_stop_nothing(tmp_path: Path) -> None:
    said = {"messages": [{"role": "user", "content": "x", "timestamp": "now"}], "attachments": []}
    case = a_case(title="n", uid=1, owner="o", notes="n", input=said)
    found = examine(write_suite(tmp_path, case, bundle={}, version=1, description="d", defaults={"owner": 1}))
    assert (found.cases, found.flaws) == (1, ())
    assert [doubt.message.partition(":")[0] for doubt in found.doubts] == [
        *("bundle", "version", "description", "defaults.owner"),
        *("input.messages[0].timestamp", "input.attachments", "title", "uid", "owner", "notes"),
    ]


def test_mappings_with_keys_of_the_users_own_are_free(tmp_path: Path) -> None:
    free = {"thresold": "1", "rubric": "2"}
    said = {**ASKED, "context": free, "env_overrides": free}
    expected = {"output": [CHECK], "tool_sequence": [{"tool": "t", "args_match": free}]}
    found = examine(write_suite(tmp_path, a_case(input=said, expected=expected, variables=free)))
    assert (found.cases, found.flaws, found.doubts) == (1, (), ())

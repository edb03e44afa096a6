"""Defaults, files and the rules that make a case one."""

from pathlib import Path
from typing import Any

import pytest

from muster.domain.errors import BadFile
from muster.suites.format.suite import open_suite
from muster.suites.values.case import Evaluator
from tests.suites.format.suites import (
    a_case,
    asking,
    checked_by,
    flaws,
    judged_by,
    the_case,
    the_flaw,
    write,
    write_suite,
)

NOTHING = "nothing is expected of the answer: add a check, a rubric, a golden file or a command"


def test_defaults_hold_for_cases_that_say_nothing(tmp_path: Path) -> None:
    defaults = {"timeout_secs": 45, "tags": ["nightly"], "evaluator": "judge"}
    own = a_case("two", tags=["smoke"], timeout_secs=5, evaluator_config={"evaluator": "rules"})
    one, two = open_suite(write_suite(tmp_path, a_case(), own, defaults=defaults)).cases()
    assert (one.timeout, one.tags, one.evaluator) == (45, ("nightly",), Evaluator.JUDGE)
    assert (two.timeout, two.tags, two.evaluator) == (5, ("smoke",), Evaluator.RULES)


def test_without_defaults_a_case_leaves_it_to_the_run(tmp_path: Path) -> None:
    found = the_case(write_suite(tmp_path, a_case()))
    assert (found.timeout, found.evaluator, found.threshold, found.tags) == (None, None, None, ())


def test_a_threshold_may_stand_at_the_case(tmp_path: Path) -> None:
    assert the_case(write_suite(tmp_path, a_case(threshold=0))).threshold == 0


@pytest.mark.parametrize("expected", [{}, {"tool_sequence": []}, {"output": [], "rubric": [], "tool_sequence": []}])
def test_a_case_that_demands_nothing_is_refused(tmp_path: Path, expected: dict[str, Any]) -> None:
    assert flaws(write_suite(tmp_path, a_case(expected=expected))) == [(4, "greeter/one", NOTHING)]


def test_a_golden_file_or_a_command_is_enough(tmp_path: Path) -> None:
    write(tmp_path, "Hello\n", "golden/a.txt")
    golden = {"evaluator": "golden", "golden_path": "golden/a.txt", "golden_normalize_whitespace": True}
    found = the_case(write_suite(tmp_path, a_case(expected={}, evaluator_config=golden)))
    assert found.golden is not None
    assert (found.golden.path, found.golden.text, found.golden.threshold) == ("golden/a.txt", "Hello\n", 0.9)
    assert found.golden.normalize_whitespace
    process = {"evaluator": "process", "process_cmd": ["cat", "-"]}
    found = the_case(write_suite(tmp_path, a_case(expected={}, evaluator_config=process)))
    assert (found.process, found.process_folder) == (("cat", "-"), str(tmp_path.resolve()))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"evaluator": "golden"}, "evaluator_config.evaluator: the evaluator golden needs a golden_path"),
        ({"evaluator": "process"}, "evaluator_config.evaluator: the evaluator process needs a process_cmd"),
        ({"evaluator": "process", "process_cmd": [""]}, "evaluator_config.process_cmd[0]: is empty"),
        ({"golden_path": "no.txt"}, "evaluator_config.golden_path: there is no file no.txt beside the suite"),
    ],
)
def test_an_evaluator_needs_its_tools(tmp_path: Path, config: dict[str, Any], message: str) -> None:
    assert the_flaw(write_suite(tmp_path, a_case(evaluator_config=config))).startswith(message)


def test_a_golden_check_reads_its_file(tmp_path: Path) -> None:
    write(tmp_path, "one\n", "one.txt")
    write(tmp_path, "two\n", "two.txt")
    checks: list[dict[str, Any]] = [
        {"kind": "golden_diff", "value": "one.txt"},
        {"kind": "golden_diff", "golden_path": "two.txt", "golden_threshold": 1, "golden_normalize_whitespace": True},
        {"kind": "golden_diff"},
    ]
    config = {"golden_path": "one.txt", "golden_threshold": 0.5}
    found = the_case(write_suite(tmp_path, checked_by(*checks, evaluator_config=config)))
    goldens = [check.golden for check in found.output if check.golden is not None]
    assert [(golden.text, golden.threshold) for golden in goldens] == [("one\n", 0.5), ("two\n", 1), ("one\n", 0.5)]
    assert [golden.normalize_whitespace for golden in goldens] == [False, True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": "object"}', None),
        ('{"type": "thing"}', "s.json: not a valid JSON Schema: "),
        ("[1]", "s.json: a JSON Schema must be an object"),
        ("{", "s.json: not valid JSON: "),
        ("[" * 100_000, "s.json: not valid JSON: "),
        (b'{"a": "\xff"}', "s.json:1: not UTF-8"),
    ],
)
def test_a_schema_may_stand_in_a_file(tmp_path: Path, text: str | bytes, message: str | None) -> None:
    write(tmp_path, text, "s.json")
    path = write_suite(tmp_path, checked_by({"kind": "json_schema", "schema_file": "s.json"}))
    if message is None:
        assert the_case(path).output[0].schema == {"type": "object"}
    else:
        assert the_flaw(path).startswith(f"expected.output[0].schema_file: {message}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other/one", "id: must be greeter/NAME, the name of the suite and of the case, not 'other/one'"),
        ("greeter", "id: must be greeter/NAME, the name of the suite and of the case, not 'greeter'"),
        ("greeter/", "id: must be greeter/NAME, the name of the suite and of the case, not 'greeter/'"),
        ("greeter/" + "x" * 193, "id: an id has 200 characters at most"),
        ("greeter/a\nb", "id: an id must have printable characters only"),
        ("greeter/a ", "id: an id must have printable characters only"),
        ("greeter/\u202eevil", "id: an id must have printable characters only"),
    ],
)
def test_an_id_can_stand_in_keys_and_tables(tmp_path: Path, name: str, message: str) -> None:
    assert the_flaw(write_suite(tmp_path, a_case(id=name))).startswith(message)


def test_an_id_of_two_cases_is_refused_with_the_second_line(tmp_path: Path) -> None:
    path = write_suite(tmp_path, a_case(), a_case("two"), a_case())
    assert flaws(path) == [(6, "greeter/one", "id: duplicate id of a case")]
    cases = open_suite(path).cases()
    assert [next(cases).id, next(cases).id] == ["greeter/one", "greeter/two"]
    with pytest.raises(BadFile, match="duplicate") as caught:
        next(cases)
    assert caught.value.line == 6
    assert caught.value.suggestions == (f"muster validate {path} shows all problems",)


def test_turns_are_as_many_as_the_user_speaks(tmp_path: Path) -> None:
    said = {"messages": [{"role": "user", "content": "x"}], "follow_ups": ["y", "z"]}
    check = {"kind": "contains", "value": "x", "turn": 3}
    assert the_case(write_suite(tmp_path, checked_by(check, input=said))).output[0].turn == 3
    too_far = checked_by({**check, "turn": 4}, input=said)
    assert the_flaw(write_suite(tmp_path, too_far)) == "expected.output[0].turn: the case has only 3 answers"


def test_weights_default_to_one_and_items_may_have_a_check_only(tmp_path: Path) -> None:
    item = {"id": "a", "auto_check": {"kind": "contains", "value": "x"}}
    assert the_case(write_suite(tmp_path, judged_by(item))).rubric[0].weight == 1


def test_braces_mean_nothing_where_there_are_no_variables(tmp_path: Path) -> None:
    text = r"Use {{name}} and {{ and \{{"
    assert the_case(write_suite(tmp_path, asking(text))).messages[0].text == text

"""`muster run` on suites in which one case is damaged: it is an error, nobody is asked for it, and the others run."""

import copy
import json
from typing import Any

import pytest

from .shell import Result, Shell

GOOD: dict[str, Any] = {
    "id": "greeter/good",
    "input": {"messages": [{"role": "user", "content": "hi"}]},
    "expected": {"output": [{"kind": "contains", "value": "hi"}]},
}

Case = dict[str, Any]


def a_case(name: str, **changes: Any) -> Case:
    return {**copy.deepcopy(GOOD), "id": f"greeter/{name}", **changes}


def suite_file(shell: Shell, *cases: Any, **head: Any) -> str:
    """Write a suite, all of it on one line."""
    suite = {"schema_version": 1, "skill_or_agent": "greeter", **head, "cases": cases}
    shell.write("cases.yaml", json.dumps(suite))
    return "cases.yaml"


def run_suite(shell: Shell, *cases: Any, options: tuple[str, ...] = (), **head: Any) -> Result:
    """Run cases with the echo."""
    return shell.muster("run", suite_file(shell, *cases, **head), "--agent", "sim/echo", *options)


def results(shell: Shell) -> dict[str, tuple[str, str]]:
    """Return how each case of the last run ended, and why; a call was made for each that passed, and for no other."""
    report = json.loads(shell.muster("report", "last", "--format", "json").out)
    assert shell.run("last")["calls"]["total"] == report["counts"].get("passed", 0)
    return {case["case"]: (case["status"], case["why"]) for case in report["cases"]}


MISSPELT = [
    a_case("a", thresold=1.0),
    a_case("b", evaluator_cfg={"evaluator": "judge"}),
    a_case("c", expected={"output": [{"kind": "contains", "value": "hi"}], "tool_sequnce": [{"tool": "t"}]}),
    a_case("d", expected={"rubric": [{"id": "x", "description": "y", "critcal": True}]}),
    a_case("e", expected={"output": [{"kind": "contains", "value": "hi", "severity": "high"}]}),
]


def test_a_case_with_a_misspelt_check_is_an_error_and_is_not_asked(shell: Shell) -> None:
    ran = run_suite(shell, *MISSPELT, a_case("good", owner="me"), certified=True)
    assert ran.code == 1
    warnings = [line for line in ran.err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 7
    assert "cases.yaml:1: certified: unknown field" in warnings[0]
    assert "greeter/a: thresold: unknown field; did you mean threshold?" in warnings[1]
    assert "greeter/good: owner: unknown field" in warnings[-1]
    found = results(shell)
    assert found.pop("greeter/good") == ("passed", "")
    assert [status for status, _ in found.values()] == ["error"] * 5
    assert found["greeter/a"][1] == "it was not asked: thresold: unknown field; did you mean threshold?"


def test_a_misspelt_name_at_the_top_refuses_the_file(shell: Shell) -> None:
    ran = run_suite(shell, a_case("good"), default={"evaluator": "judge"})
    assert (ran.code, "default: unknown field; did you mean defaults?" in ran.err) == (2, True)


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "regex", "value": "("},
        {"kind": "json_path", "value": "$[", "field": None},
        {"kind": "equals", "value": "x", "field": "$.["},
        {"kind": "contains", "value": ""},
    ],
)
def test_a_case_whose_check_cannot_be_done_is_not_asked(shell: Shell, check: dict[str, Any]) -> None:
    item = {"id": "x", "description": "y", "auto_check": check}
    broken = [a_case("output", expected={"output": [check]}), a_case("item", expected={"rubric": [item]})]
    assert shell.muster("validate", suite_file(shell, *broken)).code == 0  # suites in use have some
    ran = run_suite(shell, *broken, a_case("good"))
    assert ran.code == 1
    for name in ("output", "item"):
        assert f"warning: cases.yaml:1: greeter/{name}: expected." in ran.err
    assert {name: status for name, (status, _) in results(shell).items()} == {
        "greeter/output": "error",
        "greeter/item": "error",
        "greeter/good": "passed",
    }


def test_a_missing_golden_file_damages_its_case_alone(shell: Shell) -> None:
    missing = {"evaluator": "golden", "golden_path": "golden/none.txt"}
    ran = run_suite(shell, a_case("golden", evaluator_config=missing), a_case("good"), options=("--evaluator", "rules"))
    assert ran.code == 1
    assert ran.err.count("warning: ") == 1
    assert {name: status for name, (status, _) in results(shell).items()} == {
        "greeter/golden": "error",
        "greeter/good": "passed",
    }
    only = a_case("golden", expected={}, evaluator_config=missing)
    told = shell.muster("validate", suite_file(shell, only))
    assert (told.code, len(told.err.splitlines())) == (2, 2)
    assert "greeter/golden: evaluator_config.golden_path: there is no file golden/none.txt" in told.err


@pytest.mark.parametrize("named", ["golden/hi.txt", "hi.txt", "fixtures/greeter/golden/hi.txt", "old/place/hi.txt"])
def test_a_golden_file_is_found_in_the_folder_of_its_suite(shell: Shell, named: str) -> None:
    (shell.folder / "greeter" / "golden").mkdir(parents=True)
    shell.write("greeter/golden/hi.txt", "hi")
    golden = {"evaluator": "golden", "golden_path": named}
    assert run_suite(shell, a_case("golden", evaluator_config=golden)).code == 0

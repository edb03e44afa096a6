"""`muster run` on suites in which one case is damaged: it is an error, nobody is asked for it, and the others run."""

import copy
import json
import sys
from typing import Any

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
    assert found["greeter/a"][1] == "the case was not run: thresold: unknown field; did you mean threshold?"


def test_a_misspelt_name_at_the_top_refuses_the_file(shell: Shell) -> None:
    ran = run_suite(shell, a_case("good"), default={"evaluator": "judge"})
    assert (ran.code, "default: unknown field; did you mean defaults?" in ran.err) == (2, True)


CHECKS = [
    {"kind": "regex", "value": "("},
    {"kind": "json_path", "value": "$["},
    {"kind": "equals", "value": "x", "field": "$.["},
    {"kind": "contains", "value": ""},
]


def test_a_case_whose_check_cannot_be_done_is_not_asked(shell: Shell) -> None:
    items = [{"id": "x", "description": "y", "auto_check": check} for check in CHECKS]
    broken = [a_case(f"output-{place}", expected={"output": [check]}) for place, check in enumerate(CHECKS)]
    broken += [a_case(f"item-{place}", expected={"rubric": [item]}) for place, item in enumerate(items)]
    ran = run_suite(shell, *broken, a_case("good"))
    assert ran.code == 1
    assert all(f"warning: cases.yaml:1: {case['id']}: expected." in ran.err for case in broken)
    found = results(shell)
    assert found.pop("greeter/good") == ("passed", "")
    assert [status for status, _ in found.values()] == ["error"] * len(broken)


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


def test_a_golden_file_is_found_in_the_folder_of_its_suite(shell: Shell) -> None:
    (shell.folder / "greeter" / "golden").mkdir(parents=True)
    shell.write("greeter/golden/hi.txt", "hi")
    names = ("golden/hi.txt", "hi.txt", "fixtures/greeter/golden/hi.txt", "old/place/hi.txt")
    configs = [{"evaluator": "golden", "golden_path": name} for name in names]
    assert run_suite(shell, *(a_case(str(place), evaluator_config=one) for place, one in enumerate(configs))).code == 0


COMMANDS = [
    (["python3", "../outside.py"], "without .."),
    (["sh", "-c", "cd .. && ./outside.sh"], "without .."),
    (["python3", "--file=/etc/hosts"], "outside of the project"),
    (["/bin/true"], "use the program without its folder: true"),
    (["python3", "none.py"], "there is no file none.py"),
    (["./none"], "there is no file ./none"),
    (["bash", "checks/none"], "there is no file checks/none"),
    (["java", "-jar", "none.jar"], "there is no file none.jar"),
    (["python3", "link.py"], "a link that leads out of"),
    (["python3", "linked/hosts"], "a link that leads out of"),
    (["sh", "-c", "cat </etc/hosts"], "'/etc/hosts' is not allowed: it is outside of the project"),
]


def test_a_command_outside_of_the_project_or_without_its_file_is_refused(shell: Shell) -> None:
    (shell.folder / "link.py").symlink_to("/etc/hosts")
    (shell.folder / "linked").symlink_to("/etc")
    configs = [{"evaluator": "process", "process_cmd": command} for command, _ in COMMANDS]
    cases = [a_case(str(place), evaluator_config=config) for place, config in enumerate(configs)]
    told = shell.muster("validate", suite_file(shell, *cases))
    assert told.code == 2
    for line, (_, words) in zip(told.err.splitlines()[:-1], COMMANDS, strict=True):
        assert words in line
    assert run_suite(shell, *cases, a_case("good")).code == 1
    found = results(shell)
    assert found.pop("greeter/good") == ("passed", "")
    assert [status for status, _ in found.values()] == ["error"] * len(COMMANDS)


def test_a_command_inside_of_the_project_runs_however_it_is_named(shell: Shell) -> None:
    shell.write("check.py", "print('{\"passed\": true}')\n")
    (shell.folder / "link.py").symlink_to("check.py")
    inside = ("./check.py", str(shell.folder / "check.py"), "link.py")
    commands = [["python3", script] for script in inside]
    commands += [["sh", "-c", f"{sys.executable.rpartition('/')[2]} check.py </dev/null 2>/dev/null"]]
    configs = [{"evaluator": "process", "process_cmd": command} for command in commands]
    cases = [a_case(str(place), evaluator_config=config) for place, config in enumerate(configs)]
    assert run_suite(shell, *cases).code == 0


ITEMS = [{"id": "a", "weight": 0.9, "description": "x"}, {"id": "b", "weight": 0.1, "description": "x"}]
LENIENT = [
    (a_case("zero", threshold=0), "zero-threshold"),
    (a_case("own", evaluator_config={"effectiveness_threshold": 0.0}), "zero-threshold"),
    (a_case("heavy", expected={"rubric": ITEMS}), "dominant-item"),
    (a_case("none", expected={"rubric": [{**ITEMS[0], "weight": 0.5}, {**ITEMS[1], "weight": 0}]}), "weightless-item"),
]


def test_thresholds_and_weights_that_let_a_failing_case_pass_are_told(shell: Shell) -> None:
    file = suite_file(shell, *(case for case, _ in LENIENT))
    linted, ran = shell.muster("lint", file), shell.muster("run", file, "--agent", "sim/echo")
    for case, code in LENIENT:
        told = [line for line in linted.out.splitlines() if f"{case['id']}: " in line]
        assert sum(f"[{code}]" in line for line in told) == 1, told
        assert ran.err.count(f"warning: cases.yaml:1: {case['id']}: ") == 1


def test_a_threshold_of_0_for_the_whole_run_is_told(shell: Shell) -> None:
    assert "warning: --threshold 0" in run_suite(shell, a_case("x"), options=("--threshold", "0")).err


def test_weights_that_cannot_be_added_up_are_refused(shell: Shell) -> None:
    rubrics = [[{"id": name, "description": "x", "weight": one} for name in "ab"] for one in (1e308, 1e7, 5e-324)]
    cases = [a_case(str(place), expected={"rubric": rubric}) for place, rubric in enumerate(rubrics)]
    told = shell.muster("validate", suite_file(shell, *cases))
    assert (told.code, told.err.count("a weight is 0, or from 0.000001 to 1,000,000")) == (2, 6)
    assert run_suite(shell, *cases, a_case("good")).code == 1
    assert results(shell)["greeter/good"] == ("passed", "")


WITHOUT: Case = {key: value for key, value in GOOD.items() if key != "expected"}
DAMAGED: list[Any] = [
    5,
    None,
    {},
    {"id": "greeter/empty"},
    {"id": ["greeter"], "agents": 5},
    a_case("good"),  # its id is taken
    {**GOOD, "id": "other/prefix"},
    {**GOOD, "id": "greeter/" + "x" * 300},
    {**GOOD, "id": "greeter/\u0007"},
    {**WITHOUT, "id": "greeter/nothing"},
    a_case("input", input="hi"),
    a_case("messages", input={"messages": []}),
    a_case("dataset", dataset="none.csv"),
    a_case("schema", expected={"output": [{"kind": "json_schema", "schema_file": "none.json"}]}),
    a_case("judged", evaluator_config={"evaluator": "judge", "judge": "me"}),
]


def test_whatever_is_wrong_in_cases_the_good_one_runs(shell: Shell) -> None:
    ran = run_suite(shell, GOOD, *DAMAGED)
    assert (ran.code, "1 passed, 15 error" in ran.err) == (1, True), ran.err
    assert results(shell)["greeter/good"] == ("passed", "")


def test_a_damaged_case_that_names_no_agent_does_not_stop_those_that_do(shell: Shell) -> None:
    file = suite_file(shell, a_case("good", agent="sim/echo"), {"id": "greeter/bad", "agents": 5})
    assert shell.muster("run", file).code == 1
    assert {name: status for name, (status, _) in results(shell).items()} == {
        "greeter/good": "passed",
        "greeter/bad": "error",
    }
    assert shell.muster("report", "last", "--format", "html", "-o", "report.html").code == 0


def test_a_plan_tells_what_is_damaged_and_counts_no_call_for_it(shell: Shell) -> None:
    file = suite_file(shell, a_case("good"), a_case("bad", thresold=1))
    told = shell.muster("plan", file, "--agent", "sim/echo", "--json")
    data = told.envelope()["data"]
    assert (told.code, data["total"]["calls"], data["damaged"]) == (2, 1, 1)
    assert "greeter/bad: thresold: unknown field" in told.err
    told = shell.muster("plan", file, "--agent", "sim/echo")
    assert (told.code, "1 of 2 cases would end as error" in told.err, "together" in told.out) == (2, True, True)


def test_a_filter_and_tags_never_leave_a_damaged_case_out(shell: Shell) -> None:
    tagged = a_case("good", tags=["smoke"])
    for bad in (a_case("bad", tagz=["smoke"]), a_case("bad", thresold=1), {"id": 5}, "no case"):
        for options in (("--filter", "greeter/good"), ("--tags", "smoke")):
            ran = run_suite(shell, tagged, bad, options=options)
            assert (ran.code, "1 passed, 1 error" in ran.err, "warning: cases.yaml:1:" in ran.err) == (1, True, True)

"""`muster validate`: whether suites are written rightly."""

from pathlib import Path
from typing import Any

import pytest

from .shell import Shell

GOOD = """\
schema_version: 1
skill_or_agent: greeter
cases:
- id: greeter/one
  tags: [smoke]
  input: {messages: [{role: user, content: hi}]}
  expected: {output: [{kind: regex, value: hi}]}
"""
BAD = GOOD.replace("[smoke]", "smoke").replace("kind: regex", "kind: likes")
DOUBTFUL = GOOD.replace("value: hi", "value: ''")


def write(shell: Shell, name: str, text: str) -> None:
    Path(shell.folder / name).parent.mkdir(parents=True, exist_ok=True)
    shell.write(name, text)


def test_a_line_for_each_suite_tells_its_cases(shell: Shell) -> None:
    write(shell, "suites/a/cases.yaml", GOOD)
    write(shell, "suites/b/cases.yaml", GOOD + GOOD.partition("cases:\n")[2].replace("one", "two"))
    result = shell.muster("validate", "suites")
    assert (result.code, result.err) == (0, "")
    assert result.out == "suites/a/cases.yaml: greeter, 1 case\nsuites/b/cases.yaml: greeter, 2 cases\n"
    (first, _) = shell.muster("validate", "suites", "--json").data()["suites"]
    assert first == {"file": "suites/a/cases.yaml", "name": "greeter", "cases": 1, "flaws": [], "warnings": []}


def test_all_flaws_of_all_suites_are_told_and_exit_2(shell: Shell) -> None:
    write(shell, "a.yaml", BAD)
    write(shell, "b.yaml", "schema_version: 1\n\tx: 2\n")
    result = shell.muster("validate", "a.yaml", "b.yaml")
    assert (result.code, result.out) == (2, "")
    lines = result.err.splitlines()
    assert lines[0] == "a.yaml:5: greeter/one: tags: must be a list"
    assert lines[1].startswith("a.yaml:7: greeter/one: expected.output[0].kind: must be one of contains, ")
    assert lines[2].startswith("b.yaml:2:1: not valid YAML")
    assert lines[3:] == ["error: 3 problems"]
    envelope: dict[str, Any] = shell.muster("validate", "a.yaml", "b.yaml", "--json").envelope()
    assert (envelope["ok"], envelope["error"]["code"]) == (False, "bad_file")
    told = envelope["data"]["suites"][0]["flaws"][0]
    assert told == {"file": "a.yaml", "line": 5, "case": "greeter/one", "message": "tags: must be a list"}


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("{kind: regex, value: '('}", "expected.output[0].value: '(' is not a regular expression: missing )"),
        ("{kind: json_path, value: '$.a['}", "expected.output[0].value: '$.a[' is not a JSONPath"),
    ],
)
def test_a_check_that_does_not_compile_is_an_error_as_it_is_in_a_run(shell: Shell, check: str, words: str) -> None:
    write(shell, "cases.yaml", GOOD.replace("{kind: regex, value: hi}", check))
    result = shell.muster("validate", ".")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"cases.yaml:7: greeter/one: {words}")
    ran = shell.muster("run", ".", "--agent", "sim/echo", "--json").envelope()["data"]
    assert (ran["counts"], words in ran["not_passed"][0]["why"]) == ({"error": 1}, True)


def test_an_undefined_variable_is_a_warning_with_its_line(shell: Shell) -> None:
    write(shell, "cases.yaml", GOOD.replace("content: hi", 'content: "hi {{ who }}, {{a b}}"'))
    warning = "warning: cases.yaml:6: greeter/one: input.messages[0].content: undefined variable 'who'"
    for command in (["validate", "."], ["run", ".", "--agent", "sim/echo"]):
        result = shell.muster(*command)
        assert result.code == 0
        assert [line for line in result.err.splitlines() if line.startswith("warning: ")] == [
            f"{warning}, sent as it stands; define it in variables"
        ]


def test_nothing_found_exits_5(shell: Shell) -> None:
    for path in (".", "nowhere"):
        assert shell.muster("validate", path).code == 5
    told = shell.muster("validate", ".", "--json").error()
    assert told["code"] == "not_found"
    assert told["suggestions"] == [
        "muster init NAME",
        "muster init NAME --kind chain",
        "muster init NAME --kind verify",
    ]
    assert told["message"].startswith("nothing to validate in .: no suite (cases.yaml, ")
    assert told["message"].endswith("no chain (chain.yaml) and no verification agents (verify.yaml)")
    assert shell.muster("validate", "/").err.startswith("error: / is the root of the file system\n")


def test_a_missing_path_is_told_beside_the_flaws_of_the_others(shell: Shell) -> None:
    write(shell, "y/cases.yaml", BAD)
    write(shell, "y2/verify.yaml", "agents: 1\n")
    found = shell.muster("validate", "y", "nothere", "y2", "neither")
    assert found.code == 2, found
    for words in ("y/cases.yaml:5: ", "y/cases.yaml:7: ", "y2/verify.yaml:1: ", "nothere", "neither", "3 problems"):
        assert words in found.err
    told = shell.muster("validate", "y", "nothere", "--json").envelope()
    assert (told["error"]["code"], "nothere" in told["error"]["message"]) == ("bad_file", True)
    assert len(told["data"]["suites"][0]["flaws"]) == 2
    write(shell, "y/cases.yaml", GOOD)
    found = shell.muster("validate", "y", "nothere", "neither")
    assert (found.code, "nothere" in found.err, "neither" in found.err) == (5, True, True)


def test_text_of_strangers_cannot_speak_to_the_terminal(shell: Shell) -> None:
    write(shell, "cases.yaml", GOOD.replace("greeter/one", '"greeter/\\e[31mred"'))
    result = shell.muster("validate", "cases.yaml")
    assert result.code == 2
    assert "\x1b" not in result.err


def test_verification_agents_are_validated_beside_suites(shell: Shell) -> None:
    write(shell, "suites/cases.yaml", GOOD)
    write(shell, "suites/verify.yaml", "agents: [{name: a, prompt: Look.}]\n")
    write(shell, "checks.yaml", "model: m\nagents:\n- name: a\n  wave: 0\n  prompt: none.md\n- nme: b\n")
    result = shell.muster("validate", "suites")
    assert (result.code, result.err) == (0, "")
    assert result.out == "suites/cases.yaml: greeter, 1 case\nsuites/verify.yaml: 1 agent in 1 wave\n"
    envelope = shell.muster("validate", "suites", "checks.yaml", "--json").envelope()
    assert (envelope["ok"], envelope["error"]["code"]) == (False, "bad_file")
    good, bad = envelope["data"]["verifications"]
    assert good == {"file": "suites/verify.yaml", "agents": [{"name": "a", "wave": 1}], "flaws": []}
    assert [(flaw["line"], flaw["message"].partition(":")[0]) for flaw in bad["flaws"]] == [
        (4, "wave"),
        (5, "prompt"),
        (6, "nme"),
        (6, "prompt"),
        (6, "name"),
    ]


def test_an_error_of_the_notation_has_its_line_and_column(shell: Shell) -> None:
    write(shell, "a.yaml", "schema_version: 1\nname: {a: 1,\n  b: ]\n")
    write(shell, "b.toml", 'schema_version = 1\nname = "x" y\n')
    lines = shell.muster("validate", "a.yaml", "b.toml").err.splitlines()
    assert [line.partition(" ")[0] for line in lines[:2]] == ["a.yaml:3:6:", "b.toml:2:12:"]
    told = shell.muster("validate", "a.yaml", "--json").envelope()["data"]["suites"][0]["flaws"][0]
    assert (told["line"], told["column"]) == (3, 6)
    assert "a.yaml:3:6: not valid YAML" in shell.muster("run", "a.yaml", "--agent", "sim/echo").err


EVERYTHING = """\
schema_version: 7
skill_or_agent: greeter
surprise: 1
cases:
- id: greeter/one
  tags: smoke
  thresold: 1
  input: {messages: [{role: user, content: hi}]}
  expected:
    output: [{kind: likes, value: hi}, {kind: regex, value: "("}, {kind: contains, value: hi, feild: x}]
    rubric: [{id: a, description: b, weight: -1}, {id: c, description: d}, {id: c, description: e}]
  evaluator_config: {evaluator: golden, golden_path: none.txt, golden_threshold: 3}
- id: greeter/two
  input: {messages: [{role: nobody, content: hi}]}
  evaluator_config: {evaluator: process, process_cmd: [python3, none.py]}
"""


def test_everything_that_is_wrong_is_told_at_once_and_nothing_twice(shell: Shell) -> None:
    write(shell, "cases.yaml", EVERYTHING)
    lines = [line.removeprefix("warning: ") for line in shell.muster("validate", "cases.yaml").err.splitlines()]
    one, two = "cases.yaml:{}: greeter/one: {}", "cases.yaml:{}: greeter/two: {}"
    expected = [
        "cases.yaml:3: surprise:",
        "cases.yaml:1: schema_version:",
        one.format(7, "thresold:"),
        one.format(10, "expected.output[2].feild:"),
        one.format(6, "tags:"),
        one.format(10, "expected.output[0].kind:"),
        one.format(11, "expected.rubric[0].weight:"),
        one.format(12, "evaluator_config.golden_threshold:"),
        one.format(11, "expected.rubric[2].id:"),
        one.format(12, "evaluator_config.golden_path:"),
        one.format(10, "expected.output[1].value:"),
        two.format(14, "input.messages[0].role:"),
        two.format(15, "evaluator_config.process_cmd[1]:"),
    ]
    assert len(lines) == len(expected) + 1, lines
    for line, begins in zip(lines, expected, strict=False):
        assert line.startswith(begins)

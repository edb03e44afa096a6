"""What may stand in a suite, and how it is told when something does not fit."""

from pathlib import Path
from typing import Any

import pytest

from muster.domain.call import Quality, Role
from muster.suites.format.suite import examine
from muster.suites.values.case import CheckKind, Evaluator, ToolOrder
from tests.suites.format.suites import (
    HEAD,
    a_case,
    asking,
    checked_by,
    flaws,
    judged_by,
    sound,
    the_case,
    the_flaw,
    write,
    write_suite,
)

WHOLE = """\
schema_version: 1
skill_or_agent: greeter
bundle_id: shop/greeter
bundle_version: 1.10
certification_track: none
risk_tier: low
data_handling: synthetic-only
defaults: {timeout_secs: 45, tags: [nightly], evaluator: rules}
cases:
  - id: greeter/whole
    description: Everything at once.
    tags: [smoke, 2024]
    timeout_secs: 2.5
    seed: 18446744073709551615
    max_tokens: 100
    temperature: 0
    accepts: [cut, refused]
    agents: [sim/echo, sim/other, sim/echo]
    skip: not yet
    input:
      messages:
        - {role: system, content: Be kind.}
        - {role: user, content: 42}
        - {role: model, content: True}
        - {role: tool, content: "ok"}
      follow_ups: [And then?, 7]
      context: {since: 2024-01-01, count: 3, deep: [yes, ~]}
      env_overrides: {PORT: 8080, DEBUG: true, NAME: x}
      tools:
        - name: weather
          description: Looks outside.
          parameters: {type: object, properties: {city: {type: string}}}
          results:
            - {args_match: {city: Bern}, result: {degrees: 7}}
            - {result: unknown}
        - {name: bare}
    expected:
      tool_sequence:
        - {tool: weather, args_match: {city: Bern}, order: strict}
        - {name: weather}
        - {tool_name: weather, args_match: ~, order: unordered}
      output:
        - {kind: contains, value: 1.10}
        - {kind: json_path, value: open, field: /status}
        - {kind: json_schema, schema: {type: object}, turn: 3}
      rubric:
        - id: tone
          description: It is kind.
          weight: 1
          critical: true
          anchors: {1: warm, 0: cold, 0.5: polite}
          auto_check: {kind: not_contains, value: "no", turn: 2}
    evaluator_config:
      evaluator: judge
      judge_prompt: Be strict.
      effectiveness_threshold: 0.9
"""


def test_every_field_reaches_the_case(tmp_path: Path) -> None:
    found = the_case(write(tmp_path, WHOLE))
    assert (found.id, found.suite, found.line) == ("greeter/whole", "greeter", 10)
    assert [(said.role, said.text) for said in found.messages] == [
        (Role.SYSTEM, "Be kind."),
        (Role.USER, "42"),
        (Role.ASSISTANT, "True"),
        (Role.TOOL, "ok"),
    ]
    assert found.follow_ups == ("And then?", "7")
    assert found.tags == ("smoke", "2024")
    assert (found.timeout, found.seed, found.max_tokens, found.temperature) == (2.5, 2**64 - 1, 100, 0)
    assert found.accepts == (Quality.CUT, Quality.REFUSED)
    assert found.agents == ("sim/echo", "sim/other")
    assert (found.skip, found.threshold, found.judge_prompt) == ("not yet", 0.9, "Be strict.")
    assert found.context == {"since": "2024-01-01", "count": 3, "deep": ["yes", None]}
    assert found.environment == {"PORT": "8080", "DEBUG": "true", "NAME": "x"}
    assert found.evaluator is Evaluator.JUDGE


def test_tools_and_checks_reach_the_case(tmp_path: Path) -> None:
    found = the_case(write(tmp_path, WHOLE))
    weather, bare = found.tools
    assert [result.result for result in weather.results] == ['{"degrees": 7}', "unknown"]
    assert weather.results[0].args_match == {"city": "Bern"}
    assert bare.parameters == {"type": "object", "properties": {}}
    assert [call.tool for call in found.tool_sequence] == ["weather"] * 3
    assert [call.order for call in found.tool_sequence] == [
        ToolOrder.STRICT,
        ToolOrder.SUBSEQUENCE,
        ToolOrder.UNORDERED,
    ]
    assert [(check.kind, check.value, check.field) for check in found.output] == [
        (CheckKind.CONTAINS, "1.10", None),
        (CheckKind.JSON_PATH, "open", "/status"),
        (CheckKind.JSON_SCHEMA, "", None),
    ]
    (item,) = found.rubric
    assert [(anchor.score, anchor.text) for anchor in item.anchors] == [(0, "cold"), (0.5, "polite"), (1, "warm")]
    assert item.critical
    assert item.auto_check is not None
    assert (item.auto_check.value, item.auto_check.turn) == ("no", 2)


def test_empty_keys_are_as_good_as_none(tmp_path: Path) -> None:
    text = HEAD + "defaults:\nrisk_tier: ~\ncases:\n- id: greeter/one\n  tags:\n  description:\n  evaluator_config:\n"
    text += "  input: {messages: [{role: user, content: hi}], env_overrides: ~, context: ~}\n"
    text += "  expected: {tool_sequence: ~, rubric: , output: [{kind: equals, value: hi, field: ~}]}\n"
    found = the_case(write(tmp_path, text))
    assert (found.tags, found.description, found.context) == ((), "", None)


def test_fields_that_are_marked_as_private_are_taken_in_silence(tmp_path: Path) -> None:
    case = checked_by({"kind": "equals", "value": "x", "x-why": "because"}, x_owner={"team": ["a"]})
    found = sound(write_suite(tmp_path, case, x_more=[1]))
    assert (found.cases, found.doubts) == (1, ())


def test_one_agent_may_stand_alone(tmp_path: Path) -> None:
    assert the_case(write_suite(tmp_path, a_case(agent="sim/echo"))).agents == ("sim/echo",)
    assert the_case(write_suite(tmp_path, a_case(agents="sim/echo"))).agents == ("sim/echo",)
    assert the_case(write_suite(tmp_path, a_case(accepts="empty"))).accepts == (Quality.EMPTY,)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (a_case(tags="smoke"), "tags: must be a list"),
        (a_case(tags=[""]), "tags[0]: is empty"),
        (a_case(timeout_secs=0), "timeout_secs: must be more than 0"),
        (a_case(timeout_secs="60"), "timeout_secs: must be a number"),
        (a_case(seed=1.5), "seed: must be an integer"),
        (a_case(seed=True), "seed: must be an integer"),
        (a_case(max_tokens=0), "max_tokens: must be at least 1"),
        (a_case(temperature=-0.1), "temperature: must be at least 0"),
        (a_case(threshold=1.1), "threshold: must be at most 1"),
        (a_case(accepts=["good"]), "accepts[0]: must be one of cut, refused, empty, unfinished, not 'good'"),
        (a_case(agent="a", agents=["b"]), "agents: write agent or agents, not both"),
        (a_case(skip=""), "skip: must say in words why the case is skipped; leave it out where the case is to run"),
        (a_case(skip=False), "skip: must say in words"),
        (a_case(description=["x"]), "description: must be a string; put it in quotes"),
        (a_case(evaluator_config={"evaluator": "magic"}), "evaluator_config.evaluator: must be one of rules, golden, "),
        (a_case(evaluator_config={"golden_threshold": 2}), "evaluator_config.golden_threshold: must be at most 1"),
        (a_case(evaluator_config=[1]), "evaluator_config: must be a mapping"),
        (a_case(threshold=0.5, evaluator_config={"effectiveness_threshold": 0.6}), "threshold: write threshold or "),
        (a_case(input={"messages": []}), "input.messages: needs at least one item"),
        (
            a_case(input={"messages": [{"role": "boss", "content": "x"}]}),
            "input.messages[0].role: must be one of user, ",
        ),
        (a_case(input={"messages": [{"role": "user"}]}), "input.messages[0].content: missing"),
        (a_case(input=None), "input: missing"),
        (a_case(variables={"a": ["b"]}), "variables.a: must be a string"),
        (a_case(dataset=[1]), "dataset: must be a mapping"),
        (a_case(dataset={"id": "x"}), "dataset.file: missing"),
    ],
)
def test_a_field_that_does_not_fit_is_told_with_its_line(tmp_path: Path, case: dict[str, Any], message: str) -> None:
    ((line, name, told),) = flaws(write_suite(tmp_path, case))
    assert told.startswith(message)
    assert (line, name) == (4, "greeter/one")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"env_overrides": {"PATH": "x"}}, "input.env_overrides.PATH: a suite cannot set PATH"),
        ({"env_overrides": {"LD_PRELOAD": "x"}}, "input.env_overrides.LD_PRELOAD: a suite cannot set LD_PRELOAD"),
        ({"env_overrides": {"PYTHONPATH": "x"}}, "input.env_overrides.PYTHONPATH: a suite cannot set PYTHONPATH"),
        ({"env_overrides": {"MUSTER_HOME": "x"}}, "input.env_overrides.MUSTER_HOME: a suite cannot set MUSTER_HOME"),
        ({"env_overrides": {"path": "x"}}, "input.env_overrides.path: a suite cannot set path"),
        ({"env_overrides": {"A B": "x"}}, "input.env_overrides.A B: 'A B' is not a valid name"),
        ({"env_overrides": {"A": "x\0y"}}, "input.env_overrides.A: contains a NUL character"),
        ({"context": 10**30}, "input.context: cannot be stored as JSON: it holds an integer of more than 64 bits"),
        ({"follow_ups": [""]}, "input.follow_ups[0]: is empty"),
        ({"tools": [{"name": "a b"}]}, "input.tools[0].name: a tool name has only letters"),
        ({"tools": [{"name": "a"}, {"name": "a"}]}, "input.tools[1].name: duplicate tool 'a'"),
        ({"tools": [{"name": "a", "parameters": {"type": 5}}]}, "input.tools[0].parameters: not a valid JSON Schema"),
        ({"tools": [{"name": "a", "parameters": [1]}]}, "input.tools[0].parameters: must be a mapping"),
        ({"tools": [{"name": "a", "results": [{}]}]}, "input.tools[0].results[0].result: missing"),
    ],
)
def test_an_input_that_does_not_fit_is_told(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    messages = [{"role": "user", "content": "x"}]
    assert the_flaw(write_suite(tmp_path, a_case(input={"messages": messages, **given}))).startswith(message)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"kind": "likes", "value": "x"}, "expected.output[0].kind: must be one of contains, "),
        ({"kind": "contains"}, "expected.output[0]: a check of the kind contains needs a value"),
        ({"kind": "json_schema"}, "expected.output[0]: a check of the kind json_schema needs either schema or"),
        (
            {"kind": "json_schema", "schema": {}, "schema_file": "x"},
            "expected.output[0]: a check of the kind json_schema",
        ),
        ({"kind": "json_schema", "schema": {"type": "thing"}}, "expected.output[0].schema: not a valid JSON Schema: "),
        ({"kind": "golden_diff"}, "expected.output[0]: a check of the kind golden_diff needs a file"),
        ({"kind": "golden_diff", "value": "no.txt"}, "expected.output[0].value: there is no file no.txt beside"),
        ({"kind": "contains", "value": "x", "turn": 2}, "expected.output[0].turn: the case has only one answer"),
        ({"kind": "contains", "value": "x", "turn": 0}, "expected.output[0].turn: must be at least 1"),
        ({"kind": "json_path", "value": ""}, "expected.output[0].value: is empty"),
        ({"kind": "equals", "value": "x", "field": ""}, "expected.output[0].field: is empty"),
    ],
)
def test_a_check_that_cannot_be_done_is_told(tmp_path: Path, check: dict[str, Any], message: str) -> None:
    assert the_flaw(write_suite(tmp_path, checked_by(check))).startswith(message)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"id": "a", "description": "x", "weight": -1}], "expected.rubric[0].weight: must be at least 0"),
        ([{"id": "a", "description": "x", "weight": 0}], "expected.rubric: the weights must add up to more than 0"),
        ([{"id": "a", "description": "x"}] * 2, "expected.rubric[1].id: duplicate item 'a'"),
        ([{"id": "a"}], "expected.rubric[0]: an item needs a description or an auto_check"),
        (
            [{"id": "a", "description": "x", "anchors": {"2": "y"}}],
            "expected.rubric[0].anchors.2: the score",
        ),
        ([{"id": "a", "description": "x", "anchors": {"good": "y"}}], "expected.rubric[0].anchors.good: the score"),
        ([{"id": "a", "description": "x", "critical": "yes"}], "expected.rubric[0].critical: must be true or false"),
    ],
)
def test_a_rubric_that_cannot_be_judged_is_told(tmp_path: Path, items: list[Any], message: str) -> None:
    assert the_flaw(write_suite(tmp_path, judged_by(*items))).startswith(message)


def test_a_weight_without_bounds_is_refused(tmp_path: Path) -> None:
    text = HEAD + "cases:\n- id: greeter/one\n  input: {messages: [{role: user, content: x}]}\n"
    path = write(tmp_path, text + "  expected:\n    rubric:\n    - {id: a, description: x, weight: .inf}\n")
    assert flaws(path) == [(8, "greeter/one", "expected.rubric[0].weight: must be a finite number")]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "missing )"),
        ("[a", "unterminated"),
        ("(" * 5000, "is not a regular expression"),
        ("a" * 10_001, "too large"),
    ],
)
def test_a_pattern_that_does_not_compile_is_refused(tmp_path: Path, pattern: str, words: str) -> None:
    ((line, case, message),) = flaws(write_suite(tmp_path, checked_by({"kind": "regex", "value": pattern})))
    assert (line, case) == (4, "greeter/one")
    assert words in message


@pytest.mark.parametrize(
    "pattern", [r"(?i)hello\z", r"x(?i)y", r"[[:alpha:]]+", r"\x{1F600}", r"[a-z&&[^b]]", r"\p{L}"]
)
def test_patterns_as_others_write_them_are_fine(tmp_path: Path, pattern: str) -> None:
    assert not sound(write_suite(tmp_path, checked_by({"kind": "regex", "value": pattern}))).doubts


def test_a_path_that_does_not_compile_is_refused(tmp_path: Path) -> None:
    checks = [{"kind": "json_path", "value": "$.a["}, {"kind": "equals", "value": "x", "field": "$["}]
    fine = [{"kind": "json_path", "value": "status"}, {"kind": "json_path", "value": "$x", "field": "/a"}]
    found = flaws(write_suite(tmp_path, checked_by(*checks, *fine)))
    assert ["is not a JSONPath" in message for _, _, message in found] == [True, True]


def test_several_flaws_of_a_case_come_together(tmp_path: Path) -> None:
    text = HEAD + "cases:\n- id: greeter/one\n  tags: x\n  seed: y\n- nothing\n- {}\n"
    assert flaws(write(tmp_path, text)) == [
        (5, "greeter/one", "tags: must be a list"),
        (6, "greeter/one", "seed: must be an integer"),
        (4, "greeter/one", "input: missing"),
        (7, "", "must be a mapping"),
        (8, "", "id: missing"),
        (8, "", "input: missing"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("schema_version: 2\nskill_or_agent: x\ncases: []\n", [(1, "schema_version: must be 1, not '2'")]),
        ("schema_version: '1'\nskill_or_agent: x\ncases: []\n", [(1, "schema_version: must be 1, not '1'")]),
        ("skill_or_agent: x\ncases: []\n", [(1, "schema_version: missing")]),
        ("schema_version: 1\ncases: []\n", [(1, "skill_or_agent: missing")]),
        ("schema_version: 1\nskill_or_agent: Big_Name\ncases: []\n", [(2, "skill_or_agent: must be kebab-case")]),
        (HEAD + "risk_tier: none\ncases: []\n", [(3, "risk_tier: must be one of low, medium, high, not 'none'")]),
        (HEAD + "defaults: {evaluator: x}\ncases: []\n", [(3, "defaults.evaluator: must be one of rules, ")]),
        (HEAD + "defaults:\n  timeout_secs: -1\ncases: []\n", [(4, "defaults.timeout_secs: must be more than 0")]),
    ],
)
def test_a_head_that_does_not_fit_is_told_with_its_lines(
    tmp_path: Path, text: str, expected: list[tuple[int, str]]
) -> None:
    found = flaws(write(tmp_path, text))
    assert found[-1][2] == "cases: the list is empty"
    assert [line for line, _, _ in found[:-1]] == [line for line, _ in expected]
    assert all(told.startswith(words) for (_, _, told), (_, words) in zip(found, expected, strict=False))


def test_cases_that_are_missing_are_told(tmp_path: Path) -> None:
    assert flaws(write(tmp_path, HEAD)) == [(1, "", "cases: missing; a suite needs a list of cases")]


def test_a_head_that_does_not_fit_hides_no_flaw_of_a_case(tmp_path: Path) -> None:
    path = write_suite(tmp_path, a_case(tags="x"), skill_or_agent="No")
    assert [told.partition(":")[0] for _, _, told in flaws(path)] == ["skill_or_agent", "tags"]
    assert examine(path).name == "cases"


def test_quotes_make_text_of_anything(tmp_path: Path) -> None:
    assert the_case(write_suite(tmp_path, asking("true"))).messages[0].text == "true"

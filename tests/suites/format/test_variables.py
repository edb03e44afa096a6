"""Variables are put in once, and are data."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.call import Message, Role
from muster.suites.format.variables import CaseTemplate, Unfilled
from muster.suites.values.case import Case
from tests.suites.format.suites import a_case, asking, flaws, the_case, the_flaw, write, write_suite


def said(text: str, **values: str) -> str:
    messages = (Message(role=Role.USER, text=text),)
    case = Case(id="a/b", suite="a", file="f", line=1, messages=messages)
    return CaseTemplate(case).fill(values).messages[0].text


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{a}}", "1"),
        ("x{{ a }}y{{a}}", "x1y1"),
        (r"\{{a}}", "{{a}}"),
        (r"\{{ and {{a}}", "{{ and 1"),
        ("{{nested}}", "{{a}}"),
        ("{a} }} {", "{a} }} {"),
        ("{{two words}}", "3"),
        ("plain", "plain"),
    ],
)
def test_a_name_in_braces_is_replaced_once(text: str, filled: str) -> None:
    assert said(text, a="1", nested="{{a}}", **{"two words": "3"}) == filled


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{b}}", "unknown variable 'b' (known: a)"),
        ("{{A}}", "unknown variable 'A'"),
        ("{{}}", "without a variable"),
        ("{{ a", "without a variable"),
        ("{{{a}}}", "without a variable"),
        ("{{ {a} }}", "without a variable"),
    ],
)
def test_braces_that_name_nothing_are_refused(text: str, words: str) -> None:
    with pytest.raises(Unfilled) as caught:
        said(text, a="1")
    assert words in caught.value.message


pieces = st.lists(st.sampled_from(["{{x}}", r"\{{", "{", "}", "}}", " ", "word", "{{ y }}", "\\"]), max_size=8)


@given(pieces, st.text(max_size=5), st.text(max_size=5))
def test_values_are_put_in_as_they_are(parts: list[str], x: str, y: str) -> None:
    # A brace right before a pair makes another pair; that is told and no matter here.
    text = "|".join(parts)
    expected = "|".join({"{{x}}": x, "{{ y }}": y, r"\{{": "{{"}.get(part, part) for part in parts)
    assert said(text, x=x, y=y) == expected


EVERYWHERE: dict[str, Any] = {
    "description": "{{v}}",
    "tags": ["{{v}}"],
    "input": {
        "messages": [{"role": "system", "content": "{{v}}"}],
        "follow_ups": ["{{v}}"],
        "context": {"{{v}}": ["{{v}}", {"a": "{{v}}"}]},
        "env_overrides": {"A": "{{v}}"},
        "tools": [
            {
                "name": "t",
                "description": "{{v}}",
                "parameters": {"description": "{{v}}"},
                "results": [{"args_match": {"a": "{{v}}"}, "result": {"a": "{{v}}", "b": 1}}, {"result": "{{v}}"}],
            }
        ],
    },
    "expected": {
        "tool_sequence": [{"tool": "{{v}}", "args_match": {"a": ["{{v}}"]}}],
        "output": [
            {"kind": "contains", "value": "{{v}}"},
            {"kind": "json_schema", "schema": {"const": "{{v}}"}},
            {"kind": "golden_diff", "value": "{{v}}.txt"},
        ],
        "rubric": [
            {
                "id": "{{v}}",
                "description": "{{v}}",
                "anchors": {"1": "{{v}}"},
                "auto_check": {"kind": "equals", "value": "{{v}}"},
            }
        ],
    },
    "evaluator_config": {"golden_path": "{{v}}.txt", "judge_prompt": "{{v}}", "process_cmd": ["{{v}}"]},
}


def test_variables_reach_every_text_of_a_case_and_no_name_or_path(tmp_path: Path) -> None:
    write(tmp_path, "{{v}}", "{{v}}.txt")
    found = the_case(write_suite(tmp_path, a_case(**EVERYWHERE, agent="{{v}}", variables={"v": 'say "hi"'})))
    value = 'say "hi"'
    assert (found.description, found.tags, found.follow_ups) == (value, (value,), (value,))
    assert found.messages[0].text == found.judge_prompt == found.environment["A"] == value
    assert found.context == {"{{v}}": [value, {"a": value}]}
    (tool,) = found.tools
    assert (tool.description, tool.parameters) == (value, {"description": value})
    assert [result.result for result in tool.results] == [r'{"a": "say \"hi\"", "b": 1}', value]
    assert tool.results[0].args_match == {"a": value}
    assert (found.tool_sequence[0].tool, found.tool_sequence[0].args_match) == (value, {"a": [value]})
    contains, schema, golden = found.output
    assert (contains.value, schema.schema) == (value, {"const": value})
    assert (golden.value, golden.golden and golden.golden.text) == ("{{v}}.txt", "{{v}}")
    (item,) = found.rubric
    assert (item.id, item.description, item.anchors[0].text) == ("{{v}}", value, value)
    assert item.auto_check is not None
    assert item.auto_check.value == value
    assert (found.agents, found.process, found.golden and found.golden.path) == (("{{v}}",), ("{{v}}",), "{{v}}.txt")
    assert [type(result.result) for result in tool.results] == [str, str]


def test_variables_of_the_suite_hold_in_all_cases(tmp_path: Path) -> None:
    path = write_suite(tmp_path, asking("{{name}}"), variables={"name": "Ada"})
    assert the_case(path).messages[0].text == "Ada"


def test_an_unknown_name_is_told_with_its_place(tmp_path: Path) -> None:
    text = "schema_version: 1\nskill_or_agent: greeter\nvariables: {a: 1}\ncases:\n- id: greeter/one\n"
    text += "  input:\n    messages:\n    - {role: user, content: hi}\n    - {role: user, content: '{{b}}'}\n"
    path = write(tmp_path, text + "  expected: {output: [{kind: equals, value: x}]}\n")
    place = "input.messages[1].content"
    assert flaws(path) == [(9, "greeter/one", f"{place}: unknown variable 'b' (known: a)")]


def test_braces_that_are_not_closed_are_told_with_a_way_out(tmp_path: Path) -> None:
    told = the_flaw(write_suite(tmp_path, asking("see {{"), variables={"a": "1"}))
    assert told == r"input.messages[0].content: '{{' without a variable; write \{{ for literal braces"


def test_a_pattern_is_tried_with_its_variables(tmp_path: Path) -> None:
    case = a_case(expected={"output": [{"kind": "regex", "value": "a{{n}}"}]}, variables={"n": "{2}"})
    assert the_case(write_suite(tmp_path, case)).output[0].value == "a{2}"

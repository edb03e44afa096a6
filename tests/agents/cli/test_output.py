"""What is found in the lines of an agent; pure."""

from typing import Any

import pytest

from muster.agents.cli.dialect import AnswerPaths
from muster.agents.cli.output import CliOutput
from muster.agents.local import MAX_CALLS
from muster.domain.call import ToolCall, Usage
from muster.domain.errors import BadOutput
from muster.text.json_paths import compile_path


def findings(**paths: str) -> CliOutput:
    return CliOutput(AnswerPaths(**{name: compile_path(path, name) for name, path in paths.items()}))


TOOLS = {
    "tool_name": "$.use[*].name",
    "tool_id": "$.use[*].id",
    "tool_arguments": "$.use[*].with",
    "tool_done": "$.done[*].id",
    "tool_result": "$.done[*].gave",
    "tool_failed": "$.done[?@.bad==true].id",
}


@pytest.mark.parametrize("cost", [-1, "much", True, [1], float("nan"), 10**12])
def test_a_cost_that_cannot_be_right_makes_an_earlier_one_unknown(cost: Any) -> None:
    found = findings(answer="$.a", cost_usd="$.c")
    for line in ({"c": 0.01}, {"a": "done", "c": cost}, {"c": None}):
        found.take(line)
    assert found.cost is None


def test_the_last_that_was_told_counts() -> None:
    found = findings(answer="$.a", session="$.s", turns="$.t", cost_usd="$.c", input_tokens="$.i", output_tokens="$.o")
    for line in ({"a": "one", "s": "x", "t": 1, "c": 1, "i": 5}, {"a": "two"}, {"a": None, "s": None, "o": 7}, {}):
        found.take(line)
    assert (found.answer, found.session, found.turns, found.cost) == ("two", "x", 1, 1_000_000)
    assert found.usage == Usage(input=0, output=7)


def test_texts_of_one_answer_are_joined() -> None:
    found = findings(answer="$.content[?@.type=='text'].text")
    found.take({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]})
    assert found.answer == "ab"


@pytest.mark.parametrize("count", [True, -1, "5", 1.5, None, [3]])
def test_what_is_no_count_is_passed_over(count: Any) -> None:
    found = findings(turns="$.t", input_tokens="$.t")
    found.take({"t": count})
    assert (found.turns, found.usage) == (0, Usage())


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("broke", "broke"),
        (True, "why"),
        ({"code": 5}, '{"code": 5}'),
        (False, None),
        ("", None),
        (None, None),
        (0, None),
    ],
)
def test_an_error_is_told_in_the_words_that_there_are(error: Any, told: str | None) -> None:
    found = findings(answer="$.result", error="$.error")
    found.take({"result": "why", "error": error})
    assert (found.error, found.over) == (told, told is not None)


def test_several_tools_in_one_line_are_told_apart() -> None:
    found = findings(**TOOLS)
    found.take({"use": [{"name": "A", "id": 1, "with": {"x": 1}}, {"name": "B", "id": 2, "with": {}}]})
    at = [found.tools.at]
    found.take({"done": [{"id": 2, "gave": [{"text": "yes"}, {"text": "!"}], "bad": False}]})
    at.append(found.tools.at)
    found.take({"done": [{"id": 1, "gave": "x" * 5_000, "bad": True}, {"id": 9, "gave": "whose?"}]})
    assert [*at, found.tools.at] == ["B", "A", None]
    assert found.tools.calls == (
        ToolCall(id="1", name="A", arguments={"x": 1}, result="x" * 2_000, failed=True),
        ToolCall(id="2", name="B", arguments={}, result="yes!"),
    )


def test_a_tool_that_is_told_of_twice_is_one() -> None:
    found = findings(**TOOLS)
    found.take({"use": [{"name": "A", "id": "1", "with": {}}]})
    found.take({"use": [{"name": "A", "id": "1", "with": {"x": 1}}]})
    assert found.tools.calls == (ToolCall(id="1", name="A", arguments={"x": 1}),)


def test_arguments_that_are_no_object_are_kept_as_input() -> None:
    found = findings(**TOOLS)
    given = ['{"x": 1}', "ls -l", [1], None, {"big": 10**30}]
    for number, arguments in enumerate(given):
        found.take({"use": [{"name": "A", "id": number, "with": arguments}]})
    assert [call.arguments for call in found.tools.calls] == [
        {"x": 1},
        {"input": "ls -l"},
        {"input": [1]},
        {},
        {"_cut": '{"big": 1000000000000000000000000000000}'},
    ]


def test_long_arguments_and_names_are_cut_and_names_still_belong_together() -> None:
    found = findings(**TOOLS, session="$.session", permission="$.asks")
    found.take({"use": [{"name": "n" * 5_000, "id": "i" * 5_000, "with": {"text": "x" * 5_000}}]})
    found.take({"use": [{"name": "n" * 5_000, "id": "i" * 5_000, "with": {"text": "y" * 5_000}}]})
    found.take({"done": [{"id": "i" * 5_000, "gave": "yes", "bad": True}], "session": "s" * 5_000, "asks": "a" * 5_000})
    arguments = {"text": "y" * 1_999 + "…"}
    assert found.tools.calls == (
        ToolCall(id="i" * 200, name="n" * 200, arguments=arguments, result="yes", failed=True),
    )
    assert (found.tools.at, found.session, found.permission) == (None, "s" * 1_000, "a" * 200)


def test_more_than_ten_thousand_tools_are_no_output() -> None:
    found = findings(**TOOLS)
    found.take({"use": [{"name": "A", "id": number} for number in range(MAX_CALLS)]})
    found.take({"use": [{"name": "A", "id": 0, "with": {"x": 1}}]})  # told of again
    with pytest.raises(BadOutput, match=r"^used more than 10,000 tools$"):
        found.take({"use": [{"name": "A", "id": "one more"}]})
    assert len(found.tools.calls) == MAX_CALLS


def test_values_that_do_not_come_in_pairs_belong_to_nobody() -> None:
    found = findings(**TOOLS)
    found.take({"use": [{"name": "A", "id": "1"}, {"name": "B"}]})
    assert found.tools.calls == (ToolCall(id="call_1", name="A"), ToolCall(id="call_2", name="B"))


def test_without_a_word_for_done_a_tool_is_in_use_until_the_next_line() -> None:
    found = findings(tool_name="$.name")
    found.take({"name": "A"})
    at = found.tools.at
    found.take({"other": 1})
    assert (at, found.tools.at) == ("A", None)

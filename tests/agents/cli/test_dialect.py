"""Command templates: what is put in stays data, and what cannot be an argument is refused before anything starts."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.base import InboxMessage
from muster.agents.cli.dialect import MAX_ARGUMENT, AnswerPaths, Dialect, Output, Unfit, fill, join, named_in
from muster.domain.errors import BadConfiguration
from muster.text.json_paths import compile_path

PATH = compile_path("$.x", "test")
VALUES = {"prompt": "{system}", "system": "{prompt}", "model": "m", "session": "s", "budget": "0.4"}


def test_every_place_is_filled_and_nothing_else() -> None:
    arguments = ("run", "--model={model}", "{budget}{budget}", "{other}", '{"json": {}}', "{}", "{ prompt }")
    assert fill(arguments, VALUES) == ("run", "--model=m", "0.40.4", "{other}", '{"json": {}}', "{}", "{ prompt }")


def test_what_was_put_in_is_not_looked_at_again() -> None:
    assert fill(("{prompt}", "{system} {prompt}"), VALUES) == ("{system}", "{prompt} {system}")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300))
def test_any_prompt_arrives_as_it_is(prompt: str) -> None:
    assert fill(("--", "{prompt}", "a{prompt}b"), VALUES | {"prompt": prompt}) == ("--", prompt, f"a{prompt}b")


@pytest.mark.parametrize("name", ["prompt", "system", "session"])
@pytest.mark.parametrize("text", ["-", "--help", "-rf /"])
def test_what_looks_like_an_option_is_refused(name: str, text: str) -> None:
    with pytest.raises(Unfit, match=f"the {name} begins with '-'"):
        fill((f"{{{name}}}",), VALUES | {name: text})


def test_what_looks_like_an_option_is_fine_where_it_cannot_be_one() -> None:
    values = VALUES | {"prompt": "--help"}
    assert fill(("--", "{prompt}"), values) == ("--", "--help")
    assert fill(("--prompt={prompt}",), values) == ("--prompt=--help",)


def test_two_dashes_that_come_from_a_prompt_end_no_options() -> None:
    with pytest.raises(Unfit, match="the session begins"):
        fill(("-{prompt}", "{session}"), VALUES | {"prompt": "-", "session": "-x"})


def test_no_argument_holds_a_nul() -> None:
    with pytest.raises(Unfit, match="the prompt contains a NUL"):
        fill(("--", "{prompt}"), VALUES | {"prompt": "a\0b"})


@pytest.mark.parametrize("text", ["x" * MAX_ARGUMENT, "ü" * (MAX_ARGUMENT // 2)])
def test_an_argument_may_be_as_long_as_the_system_takes(text: str) -> None:
    assert fill(("--", "{prompt}"), VALUES | {"prompt": text}) == ("--", text)
    with pytest.raises(Unfit, match="allows at most 131,071") as caught:
        fill(("--", "{prompt}"), VALUES | {"prompt": text + "xx"})
    assert "standard input" in caught.value.suggestion


def test_more_arguments_go_to_the_end_or_before_the_two_dashes() -> None:
    assert join(("a", "b"), ("c",)) == ("a", "b", "c")
    assert join(("a", "--", "{prompt}"), ("--resume", "s")) == ("a", "--resume", "s", "--", "{prompt}")


def test_names_are_found() -> None:
    assert named_in(("{prompt}x{model}", "{nothing}")) == {"prompt", "model"}


MESSAGE: dict[str, Any] = {"type": "user", "uuid": "{id}", "content": [{"text": "{message}"}], "more": 1}
LINES = Dialect(
    command=("agent",),
    output=Output.LINES,
    places=AnswerPaths(answer=PATH, ends=PATH, message_taken=PATH),
    message=MESSAGE,
)


def test_a_message_is_one_line_whatever_it_says() -> None:
    line = LINES.message_line(InboxMessage(id="{message}", text='say "{id}"\n{prompt}'))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "type": "user",
        "uuid": "{message}",
        "content": [{"text": 'say "{id}"\n{prompt}'}],
        "more": 1,
    }


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, None),
        ({"message": None}, "message_taken has no effect without message"),
        ({"message": {"text": "{message}"}}, 'no "{message}" or no "{id}"'),
        ({"message": {"id": "{id}"}}, 'no "{message}" or no "{id}"'),
        ({"places": AnswerPaths(answer=PATH, ends=PATH)}, "message needs message_taken and ends"),
        ({"places": AnswerPaths(answer=PATH, message_taken=PATH)}, "message needs message_taken and ends"),
        ({"output": Output.JSON}, "is for JSON lines"),
        ({"command": ("agent", "{mcp_config}")}, "not every call has one"),
        ({"mcp": ("--mcp",)}, 'its mcp arguments have no "{mcp_config}"'),
        ({"mcp": ("--mcp", "{mcp_config}")}, None),
    ],
)
def test_a_dialect_by_which_a_message_could_be_lost_is_refused(changed: dict[str, Any], told: str | None) -> None:
    dialect = replace(LINES, **changed)
    if told is None:
        dialect.check("one", budget=False)
        return
    with pytest.raises(BadConfiguration, match=re.escape(told)):
        dialect.check("one", budget=False)

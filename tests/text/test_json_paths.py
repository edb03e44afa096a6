"""JSONPaths: what they find, what is refused, and that nobody pays for the library who does not use it."""

import subprocess
import sys
from typing import Any

import pytest

from muster.domain.errors import BadConfiguration, BadOutput
from muster.text.json_paths import MISSING, compile_path

ANSWER = {
    "choices": [{"message": {"content": "hello"}}],
    "steps": [{"kind": "tool", "name": "a"}, {"kind": "text"}, {"kind": "tool", "name": "b"}],
    "nothing": None,
}

FINDS: dict[str, list[Any]] = {
    "$.choices[0].message.content": ["hello"],
    "$['choices'][-1].message['content']": ["hello"],
    "$.steps[?@.kind == 'tool'].name": ["a", "b"],
    "$..name": ["a", "b"],
    "$.steps[::2].name": ["a", "b"],
    "$.steps[?match(@.kind, 't.*l')].name": ["a", "b"],
    "$.nothing": [None],
    "$.nobody": [],
    "$.choices.message": [],
}


@pytest.mark.parametrize("text", FINDS)
def test_a_path_finds_what_the_standard_says(text: str) -> None:
    path = compile_path(text, "agents.mine: answer")
    assert path.all(ANSWER) == FINDS[text]
    assert path.first(ANSWER) == (FINDS[text] or [MISSING])[0]


def test_null_is_something_and_nothing_is_missing() -> None:
    assert compile_path("$.nothing", "x").first(ANSWER) is None
    assert compile_path("$.nobody", "x").first(ANSWER) is MISSING


@pytest.mark.parametrize("value", ["{}", '{"a": 1}', "[1]", "plain", "", 3, None, True])
def test_a_text_that_looks_like_json_stays_a_text(value: Any) -> None:
    assert compile_path("$", "x").first(value) is value
    assert compile_path("$.a", "x").first(value) is MISSING


@pytest.mark.parametrize(
    "text",
    ["", "answer", "$.", "$[", "$.a..", "$[?", "$.a[?@.b = 1]", "$[?nobody(@.a)]", "$.a b", "$[01]", "$[?@.a <> 1]"],
)
def test_a_bad_path_is_named_with_its_setting(text: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        compile_path(text, "agents.mine: answer")
    assert caught.value.message.startswith(f"agents.mine: answer: {text!r} is not a JSONPath: ")
    assert caught.value.suggestions


def test_an_answer_too_deep_to_search_is_told_as_such() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(BadOutput, match=r"\$\.\.b"):
        compile_path("$..b", "x").first(deep)
    assert compile_path("$.a.b", "x").first(deep) is MISSING


def test_equal_paths_are_equal_and_show_themselves() -> None:
    path = compile_path("$.a", "x")
    assert path == compile_path("$.a", "y") != compile_path("$.b", "x")
    assert repr(path) == "JsonPath(text='$.a')"


@pytest.mark.parametrize("module", ["muster.text.json_paths", "muster.agents.service.agent", "muster.app"])
def test_the_library_is_loaded_by_the_first_path_only(module: str) -> None:
    script = f"import sys, {module}; assert not {{'jsonpath_rfc9535', 'regex'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_help_does_not_load_the_library() -> None:
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "muster", "--help"], check=True, capture_output=True, text=True
    )
    assert "muster.cli.main" in told.stderr
    assert "jsonpath" not in told.stderr

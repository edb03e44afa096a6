"""Recorded answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from muster.domain.advice import ArgumentAdvice
from muster.domain.errors import BadFile, NotFound
from muster.suites.recorded import read_answers as read_some_answers
from tests.suites.format.suites import write


def answer(case: Any, content: Any, tool: str = "agent_response", **place: Any) -> dict[str, Any]:
    return {"tool": tool, "args_match": {"case_id": case, **place}, "response": {"content": content}}


def read_answers(path: Path) -> dict[str, dict[str, str]]:
    return read_some_answers(path, epochs=3)


def recorded(folder: Path, value: object) -> Path:
    return write(folder, json.dumps(value), "answers.json")


def test_answers_are_read_by_case(tmp_path: Path) -> None:
    other = {"tool": "search", "args_match": {}, "response": 5}
    entries = [answer("a/b", "Hello"), other, answer("a/c", ""), {**answer("a/d", ""), "response": "short"}]
    found = read_answers(recorded(tmp_path, entries))
    assert found == {"a/b": {"1/1": "Hello"}, "a/c": {"1/1": ""}, "a/d": {"1/1": "short"}}


def test_an_answer_names_its_epoch_and_turn(tmp_path: Path) -> None:
    entries = [answer("a/b", "x"), answer("a/b", "y", turn=2), answer("a/b", "z", epoch=3, turn=1)]
    assert read_answers(recorded(tmp_path, entries)) == {"a/b": {"1/1": "x", "1/2": "y", "3/1": "z"}}


@pytest.mark.parametrize(
    ("content", "words"), [('"bad", "content": "x"', "has the key 'content' twice"), ("NaN", "it holds NaN")]
)
def test_a_file_that_does_not_say_one_thing_is_refused(tmp_path: Path, content: str, words: str) -> None:
    text = f'[{{"tool": "agent_response", "args_match": {{"case_id": "a"}}, "response": {{"content": {content}}}}}]'
    with pytest.raises(BadFile, match=words):
        read_answers(write(tmp_path, text, "answers.json"))


def test_other_names_beside_a_case_are_the_users_own(tmp_path: Path) -> None:
    entry = answer("a/b", "x", model="m") | {"recorded_at": "today", "id": 5}
    assert read_answers(recorded(tmp_path, [entry])) == {"a/b": {"1/1": "x"}}


def test_the_same_answer_twice_is_one(tmp_path: Path) -> None:
    assert read_answers(recorded(tmp_path, [answer("a/b", "x"), answer("a/b", "x")])) == {"a/b": {"1/1": "x"}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "recorded answers are a list at the top"),
        ([], "contains no recorded answer"),
        ([answer("a/b", "x", tool="other")], "contains no recorded answer"),
        ([answer("a/b", "x"), 5], "[1]: it must be an object"),
        ([answer(None, "x")], "[0].args_match.case_id: it must be text"),
        ([answer("a/b", 5)], "[0].response.content: it must be text"),
        ([{"tool": "agent_response", "response": {"content": "x"}}], "[0].args_match.case_id: it must be text"),
        ([{"tool": "agent_response", "args_match": {"case_id": "a"}}], "[0].response.content: it must be text"),
        ([answer("a/b", "x"), answer("a/b", "y")], "[1]: a/b has another answer further up"),
        ([answer("a/b", "x", epoch=0)], "[0].args_match.epoch: it must be a whole number from 1"),
        ([answer("a/b", "x", turn="2")], "[0].args_match.turn: it must be a whole number from 1"),
        ([answer("a/b", "x", turn=True)], "[0].args_match.turn: it must be a whole number from 1"),
        ([answer("a/b", "x") | {"turn": 2}], "[0].turn: turn belongs into args_match, beside case_id"),
        ([answer("a/b", "x") | {"Epoch": 2}], "[0].Epoch: epoch belongs into args_match, beside case_id"),
        ([answer("a/b", "x", trun=2)], "[0].args_match.trun: unknown field; did you mean turn?"),
    ],
)
def test_what_is_no_answer_is_told_with_its_place(tmp_path: Path, value: object, words: str) -> None:
    with pytest.raises(BadFile) as caught:
        read_answers(recorded(tmp_path, value))
    assert words in caught.value.message


def test_what_is_no_json_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="not valid JSON") as caught:
        read_answers(write(tmp_path, "[\n{]\n", "answers.json"))
    assert (caught.value.line, caught.value.column) == (2, 2)
    with pytest.raises(BadFile, match="not UTF-8") as caught:
        read_answers(write(tmp_path, b"[\n\xff", "answers.json"))
    assert caught.value.line == 2
    with pytest.raises(BadFile, match="this JSON cannot be read"):
        read_answers(write(tmp_path, "[" * 100_000, "answers.json"))


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_answers(tmp_path / "no.json")


def test_an_answer_to_an_epoch_that_is_not_run_is_told_with_what_to_say(tmp_path: Path) -> None:
    file = recorded(tmp_path, [answer("a/b", "x"), answer("a/b", "y", epoch=4)])
    with pytest.raises(BadFile, match=r"\[1\].args_match.epoch: it is an answer to epoch 4, and 3 are run") as caught:
        read_answers(file)
    assert caught.value.suggestions == (ArgumentAdvice("epochs", "4"),)


def test_an_answer_that_says_that_it_was_cut_off_is_told_with_its_place(tmp_path: Path) -> None:
    said = {**answer("a/b", "x"), "response": {"content": "x", "finish_reason": "length"}}
    with pytest.raises(BadFile, match=r"\[0\].response.finish_reason: it says 'length', so this is no whole answer"):
        read_answers(recorded(tmp_path, [said]))

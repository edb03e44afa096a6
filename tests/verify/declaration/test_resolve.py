"""One agent of verify.yaml: what it may say, and what becomes of it."""

from pathlib import Path
from typing import Any

import pytest

from muster.text.files_beside import MAX_BYTES
from muster.verify.declaration.forms import PARSERS
from muster.verify.declaration.resolve import THRESHOLDS
from muster.verify.declaration.verification import Kind, Verifier
from muster.verify.tools.registry import PARSERS as READERS
from tests.verify.declaration.agents import (
    a_command,
    a_model,
    flaws,
    the_flaw,
    the_verifier,
    without,
    write,
    write_agents,
)


def test_an_agent_that_says_little_is_as_usual(tmp_path: Path) -> None:
    assert the_verifier(tmp_path, a_model()) == Verifier(name="one", prompt="Look for faults.", thresholds=THRESHOLDS)
    assert the_verifier(tmp_path, a_command()) == Verifier(
        name="tool",
        kind=Kind.COMMAND,
        command=("ruff", "check", "{files}"),
        parser="ruff",
        thresholds=("critical == 0", "high == 0", "rejected == 0"),
    )


@pytest.mark.parametrize("nothing", [[], {}])
def test_an_empty_list_of_thresholds_is_something_else_than_none(tmp_path: Path, nothing: Any) -> None:
    assert the_verifier(tmp_path, a_model(thresholds=nothing)).thresholds == ()
    assert the_verifier(tmp_path, a_model(thresholds=None)).thresholds == THRESHOLDS


def test_thresholds_are_a_list_or_one_text_or_a_mapping(tmp_path: Path) -> None:
    assert the_verifier(tmp_path, a_model(thresholds=["total  == 0 "])).thresholds == ("total  == 0",)
    assert the_verifier(tmp_path, a_model(thresholds="total == 0")).thresholds == ("total == 0",)
    assert the_verifier(tmp_path, a_model(thresholds={"high": 1})).thresholds == ("high <= 1",)


@pytest.mark.parametrize("name", ["a b", "a/b", "", ".a", "-a", "ü", "a" * 65])
def test_a_name_can_stand_in_keys_and_names_of_files(tmp_path: Path, name: str) -> None:
    assert the_flaw(tmp_path, a_model(name)).startswith(("name: the name of an agent has", "name: a name can have"))
    assert the_verifier(tmp_path, a_model("Ab.9_c-d")).name == "Ab.9_c-d"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"wave": 0}, "wave: must be at least 1"),
        ({"wave": 1.5}, "wave: must be an integer"),
        ({"wave": "first"}, "wave: must be an integer"),
        ({"kind": "human"}, "kind: must be model or command, not 'human'"),
        ({"shape": "essay"}, "shape: must be one of findings, review, tests, not 'essay'"),
        ({"dispatch": "fast"}, "dispatch: must be one of live, flex, batch, not 'fast'"),
        ({"max_tokens": 0}, "max_tokens: must be at least 1"),
        ({"temperature": -1}, "temperature: must be at least 0"),
        ({"model": ""}, "model: is empty"),
        ({"include": ["/etc/*"]}, "include[0]: a glob matches paths below the root"),
        ({"include": "../*"}, "include[0]: a glob matches paths below the root"),
        ({"include": "./src/*"}, "include[0]: a glob matches paths below the root"),
        ({"thresholds": ["score >= 9"]}, "thresholds: score is never known here: only agents of the shape review"),
        (
            {"thresholds": {"coverage": 80}},
            "thresholds: coverage is never known here: only agents of the shape tests",
        ),
        ({"thresholds": ["parts.a > 1"], "shape": "tests"}, "thresholds: parts.a is never known here"),
        ({"thresholds": 5}, "thresholds[0]: '5' is not a valid threshold: at character 1: this is a number"),
        ({"thresholds": [["total == 0"]]}, "thresholds[0]: must be an expression"),
        ({"tresholds": []}, "tresholds: unknown key; did you mean thresholds?"),
        ({"zzz": 1}, "zzz: unknown key; known keys: name, wave, kind, thresholds, "),
        ({"command": ["x"]}, "command: only for agents of the kind command; this one is of the kind model"),
        ({"timeout_secs": 1}, "timeout_secs: only for agents of the kind command"),
        ({"schema": 5}, "schema: must be a JSON Schema as a mapping, or the name of a .json file"),
        ({"schema": {"type": "thing"}}, "schema: not a valid JSON Schema: 'thing' is not valid"),
        ({"schema": {"const": 10**30}}, "schema: not a valid JSON Schema: it holds an integer of more than 64 bits"),
    ],
)
def test_what_does_not_fit_a_model_is_told(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    assert the_flaw(tmp_path, a_model(**changes)).startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"command": "ruff check ."}, "command: must be a list of strings, [program, argument, …]; no shell is used"),
        ({"command": []}, "command: needs at least one item"),
        ({"command": ["{files}"]}, "command: must begin with a program"),
        ({"command": ["ruff", "--only={files}"]}, "command: {files} must be an argument of its own"),
        ({"command": ["ruff", {"files": None}]}, "command[1]: must be a string; put it in quotes"),
        ({"command": ["ruff", ""]}, "command[1]: is empty"),
        ({"command": ["./check.sh"]}, "parser: missing: one of ruff, mypy, pytest, sarif, json, lines"),
        ({"parser": "guess"}, "parser: must be one of ruff, mypy, "),
        ({"exits": []}, "exits: needs at least one item"),
        ({"exits": [256]}, "exits[0]: must be at most 255"),
        ({"exits": -1}, "exits[0]: must be at least 0"),
        ({"env": {"a-b": "c"}}, "env.a-b: 'a-b' is not a valid name of an environment variable"),
        ({"env": {"A": ["b"]}}, "env.A: must be a string"),
        ({"timeout_secs": 0}, "timeout_secs: must be more than 0"),
        ({"prompt": "x"}, "prompt: only for agents of the kind model; this one is of the kind command"),
        ({"model": "x"}, "model: only for agents of the kind model"),
        ({"schema": {}}, "schema: only for agents of the kind model"),
    ],
)
def test_what_does_not_fit_a_command_is_told(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    assert the_flaw(tmp_path, a_command(**changes)).startswith(message)


def test_a_model_is_told_what_to_look_for_and_a_command_what_to_run(tmp_path: Path) -> None:
    assert the_flaw(tmp_path, without(a_model(), "prompt")).startswith("prompt: missing")
    assert the_flaw(tmp_path, a_model(prompt="  \n")).startswith("prompt: is empty")
    assert the_flaw(tmp_path, without(a_command(), "command")).startswith("command: missing")


@pytest.mark.parametrize(
    ("command", "parser"),
    [
        (["mypy", "."], "mypy"),
        (["/usr/bin/pytest"], "pytest"),
        (["python", "-m", "ruff", "check"], "ruff"),
        ([".venv/bin/python3.11", "-m", "mypy"], "mypy"),
    ],
)
def test_the_parser_of_a_known_program_need_not_be_named(tmp_path: Path, command: list[str], parser: str) -> None:
    assert the_verifier(tmp_path, a_command(command=command)).parser == parser
    assert the_verifier(tmp_path, a_command(command=command, parser="sarif")).parser == "sarif"


def test_every_parser_that_may_be_named_is_there() -> None:
    assert set(PARSERS) == set(READERS)


def test_a_prompt_is_text_or_a_file_beside(tmp_path: Path) -> None:
    write(tmp_path, "\nFrom the file.\n", "prompts/a.md")
    assert the_verifier(tmp_path, a_model(prompt="prompts/a.md\n")).prompt == "From the file."
    assert the_verifier(tmp_path, a_model(prompt="Look at\nprompts/a.md")).prompt == "Look at\nprompts/a.md"
    write(tmp_path, "Another.", "plain")
    named = without(a_model(prompt_file="plain"), "prompt")
    assert the_verifier(tmp_path, named).prompt == "Another."
    assert the_flaw(tmp_path, a_model(prompt_file="plain")) == "prompt_file: write prompt or prompt_file, not both"


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    outside = write(tmp_path, "secret", "secret.md")
    (folder / "link.md").symlink_to(outside)
    (folder / "loop.md").symlink_to(folder / "loop.md")
    (folder / "folder.md").mkdir()
    (folder / "binary.md").write_bytes(b"a\nb\0")
    (folder / "huge.md").write_bytes(b"a" * (MAX_BYTES + 1))
    (folder / "empty.md").write_bytes(b"\n")

    def refused(name: str) -> str:
        return the_flaw(folder, a_model(prompt=name)).removeprefix("prompt: ")

    assert refused("../secret.md").startswith("'../secret.md' is not allowed")
    assert refused(outside.as_posix()).startswith(f"'{outside}' is not allowed")
    assert refused("link.md").startswith("link.md is a link that leads out of")
    for name in ("loop.md", "folder.md", "none.md", "a" * 300 + ".md", "Look at README.md"):
        assert refused(name).startswith(f"no such file: '{name}' in ")
    assert refused("binary.md").startswith("binary.md:2: a NUL character is not allowed")
    assert refused("huge.md").startswith("huge.md: larger than 1,000,000 bytes")
    assert refused("empty.md").startswith("is empty")


def test_a_schema_is_a_mapping_or_a_file_beside(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["team"]}
    assert the_verifier(tmp_path, a_model(schema=schema)).schema == schema
    write(tmp_path, '{"required": ["team"]}', "own.json")
    assert the_verifier(tmp_path, a_model(schema="own.json")).schema == {"required": ["team"]}
    for name, text, message in (
        ("a.json", "[]", "schema: a.json: must contain a JSON object"),
        ("b.json", "{", "schema: b.json: not valid JSON"),
        ("c.json", '{"required": 5}', "schema: not a valid JSON Schema"),
        ("d.json", "[" * 5000, "schema: d.json: not valid JSON"),
        ("e.json", '{"const": NaN}', "schema: e.json: it holds NaN"),
    ):
        write(tmp_path, text, name)
        assert the_flaw(tmp_path, a_model(schema=name)).startswith(message)
    assert the_flaw(tmp_path, a_model(schema="none.json")).startswith("schema: no such file: 'none.json'")


def test_several_flaws_of_one_agent_are_told_together(tmp_path: Path) -> None:
    agent = a_model(wave=0, prompt="none.md", schema={"type": 5}, thresholds=["x == 0"], shap="review")
    assert {message.partition(":")[0] for _, message in flaws(write_agents(tmp_path, agent))} == {
        "wave",
        "prompt",
        "schema",
        "thresholds[0]",
        "shap",
    }

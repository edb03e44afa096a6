"""A program is recorded once and run again without a provider and without a key; what is not on its tape is told."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.server import Project
from tests.forkserver import Forked

from .conftest import UPSTREAM_KEY, PricedRehearsal, project_with
from .test_durable import PROGRAM

TAPE = "tapes/story.jsonl.gz"
SWALLOWS = """
import os, urllib.error, urllib.request
body = b'{"model": "text-embedding-3-small", "input": "x"}'
key = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
try:
    urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/embeddings", body, key))
except urllib.error.HTTPError as error:
    print(error.code, error.headers["x-should-retry"])
"""


@pytest.fixture
def rehearsal() -> Iterator[PricedRehearsal]:
    with PricedRehearsal() as process:
        yield process


@pytest.fixture
def project(rehearsal: PricedRehearsal, tmp_path: Path) -> Project:
    (tmp_path / "story.py").write_text(PROGRAM)
    (tmp_path / "swallows.py").write_text(SWALLOWS)
    return project_with(tmp_path, rehearsal)


def ended(process: Forked) -> tuple[int, str, str]:
    with process:
        out, said = process.communicate(120)
        return process.returncode or 0, out, said


def recorded(project: Project, turns: int = 3) -> tuple[int, str, str]:
    return ended(project.command("record", "-o", TAPE, "--", sys.executable, "story.py", str(turns)))


def replayed(project: Project, *command: str) -> tuple[int, str, str]:
    return ended(project.command("replay", TAPE, "--", sys.executable, *command))


def test_a_tape_answers_the_program_offline_and_without_a_key(rehearsal: PricedRehearsal, project: Project) -> None:
    code, out, said = recorded(project)
    assert (code, rehearsal.audit().calls) == (0, 6), said
    story = project.folder / "story.json"
    told = story.read_text()
    story.unlink()
    rehearsal.stop()
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        del project.variables[name]
    again, repeated, said = replayed(project, "story.py", "3")
    assert (again, repeated) == (0, out), said
    assert story.read_text() == told
    assert f"6 answers from {TAPE}" in said


def test_what_is_not_on_a_tape_is_a_miss_also_when_the_program_does_not_mind(project: Project) -> None:
    assert recorded(project, turns=1)[0] == 0
    code, out, said = replayed(project, "swallows.py")
    assert (code, out) == (1, "404 false\n")
    assert "POST /v1/embeddings: no answer is recorded for this request" in said
    assert "1 request was not on" in said
    assert "2 not asked for" in said
    (project.folder / "story.py").write_text(PROGRAM.replace("turn {turn} of", "chapter {turn} of"))
    code, _, said = replayed(project, "story.py", "1")
    assert code == 1
    assert 'was "turn 0 of 0", is "chapter 0 of 0"' in said


def test_a_tape_holds_no_key_and_is_a_run_that_other_commands_know(project: Project, tmp_path: Path) -> None:
    project.variables["TAPE_FORMAT"] = "plain"
    code, _, said = ended(project.command("record", "-o", "plain.jsonl", "--", sys.executable, "story.py", "2"))
    assert code == 0, said
    text = (project.folder / "plain.jsonl").read_text()
    assert UPSTREAM_KEY not in text
    assert json.loads(text.splitlines()[0])["muster"] == 1
    with Project(tmp_path / "elsewhere").command("runs", "import", str(project.folder / "plain.jsonl")) as importing:
        _, said = importing.communicate(60)
        assert importing.returncode == 0, said


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("record", "-o", "tape.txt", "--", "true"), 2, "must end with .jsonl or .jsonl.gz"),
        (("record", "-o", "tape.jsonl", "--", "no-such-program"), 2, "cannot be started"),
        (("replay", "none.jsonl", "--", "true"), 5, "no such file"),
        (("replay", "story.py", "--", "true"), 2, "is not an exported run"),
        (("record", "-o", "tape.jsonl"), 2, "COMMAND"),
    ],
)
def test_bad_arguments_are_told(project: Project, words: tuple[str, ...], code: int, told: str) -> None:
    found, _, said = ended(project.command(*words))
    assert (found, told in said) == (code, True), said

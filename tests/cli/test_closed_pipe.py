"""A reader that closes its pipe before the end, as `head -1` does: the exit code says what became of the work."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from .shell import COMMAND, Shell

SUITE = """
schema_version: 1
skill_or_agent: greeter
cases:
  - id: greeter/one
    input: {messages: [{role: user, content: hello}]}
    expected: {output: [{kind: contains, value: WANTED}]}
"""


@pytest.fixture
def closed() -> Iterator[int]:
    """The end of a pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


def suites(shell: Shell) -> None:
    shell.write("good.yaml", SUITE.replace("WANTED", "hello"))
    shell.write("bad.yaml", SUITE.replace("WANTED", "goodbye"))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("run", "bad.yaml", "--agent", "sim/echo"), 1),
        (("run", "good.yaml", "--agent", "sim/echo", "--json"), 0),
        (("run", "bad.yaml", "--agent", "sim/echo", "--report", "json=-"), 1),
        (("ask", "sim/echo", "hello"), 0),
        (("run", "--help"), 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_a_closed_pipe_does_not_change_the_exit_code(
    shell: Shell, closed: int, words: tuple[str, ...], code: int
) -> None:
    suites(shell)
    done = shell.run_into(closed, *words)
    assert done.code == code
    assert "error" not in done.err
    assert "Traceback" not in done.err


def test_a_run_goes_on_when_nobody_reads_its_notes(shell: Shell, closed: int) -> None:
    suites(shell)
    words = [*COMMAND, "run", "good.yaml", "--agent", "sim/echo", "--name", "whole"]
    done = subprocess.run(words, cwd=shell.folder, env=shell.environment, stdout=closed, stderr=closed, check=False)
    assert (done.returncode, shell.run("whole")["state"]) == (0, "completed")


def test_who_follows_a_run_stops_when_nobody_reads_any_more(shell: Shell, closed: int) -> None:
    shell.muster("ask", "sim/echo", "hello")
    for form in ((), ("--json",)):
        assert shell.run_into(closed, "runs", "watch", "last", *form).code == 4

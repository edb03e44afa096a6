"""A program that knows nothing of Muster is killed, started again, and goes on with the answers that were paid for."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.server import Project
from tests.forkserver import Forked

from .conftest import PricedRehearsal, project_with

# Asks for a story of several turns, one of them as a stream, and writes down what it was told; no line of it is ours.
PROGRAM = """
import json, os, sys, urllib.request

def post(address, body, **headers):
    headers["content-type"] = "application/json"
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()

claude = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
gpt = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
told = []
for turn in range(int(sys.argv[1])):
    said = {"role": "user", "content": f"turn {turn} of {len(told)}"}
    asked = {"model": "claude-haiku-5-5", "max_tokens": 500, "messages": [said]}
    answer = json.loads(post(claude, asked, **{"x-api-key": os.environ["ANTHROPIC_API_KEY"]}))
    told.append(answer["content"][-1]["text"])
    more = {"model": "gpt-5-mini", "stream": True, "messages": [{"role": "user", "content": told[-1]}]}
    stream = post(gpt, more, authorization="Bearer " + os.environ["OPENAI_API_KEY"])
    parts = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: {")]
    told.append("".join(part["choices"][0]["delta"].get("content") or "" for part in parts))
    print("told", len(told), flush=True)
    if os.path.exists("fail"):
        sys.exit(7)
with open("story.json", "w") as file:
    json.dump(told, file)
"""


@pytest.fixture
def rehearsal() -> Iterator[PricedRehearsal]:
    with PricedRehearsal(latency_ms=20) as process:
        yield process


@pytest.fixture
def project(rehearsal: PricedRehearsal, tmp_path: Path) -> Project:
    (tmp_path / "story.py").write_text(PROGRAM)
    return project_with(tmp_path, rehearsal)


def durable(project: Project, *options: str, turns: int = 6, name: str = "story") -> Forked:
    return project.command("durable", "--name", name, *options, "--", sys.executable, "story.py", str(turns))


def finished(project: Project, *options: str, **more: object) -> tuple[int, str]:
    with durable(project, *options, **more) as process:  # type: ignore[arg-type]
        _, said = process.communicate(120)
        return process.returncode or 0, said


@pytest.mark.parametrize("lines", [1, 3, 5])
def test_a_program_that_was_killed_with_its_gateway_pays_nothing_twice(
    rehearsal: PricedRehearsal, project: Project, lines: int
) -> None:
    with durable(project) as process:
        for _ in range(lines):
            assert process.stdout.readline().startswith("told")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
    code, said = finished(project)
    assert code == 0, said
    paid = rehearsal.audit()
    assert json.loads((project.folder / "story.json").read_text()) == [
        f"turn {n // 2} of {n // 2 * 2}" for n in range(12)
    ]
    assert 2 * lines <= _given(said)
    assert paid.calls <= 12 + 1  # at most the one on the wire is asked again
    assert max(paid.by_digest.values()) <= 2


def test_a_failure_is_gone_on_with_and_a_success_is_not(rehearsal: PricedRehearsal, project: Project) -> None:
    (project.folder / "fail").touch()
    code, said = finished(project)
    assert (code, rehearsal.audit().calls) == (7, 2)
    assert "happens again" in said
    (project.folder / "fail").unlink()
    code, said = finished(project)
    assert (code, rehearsal.audit().calls) == (0, 12)
    assert _given(said) == 2
    assert "not paid again" in said
    code, said = finished(project)  # it ended well, so this is another piece of work
    assert (code, rehearsal.audit().calls) == (0, 24)
    (project.folder / "fail").touch()
    assert finished(project)[0] == 7
    code, said = finished(project, "--again")
    assert (code, rehearsal.audit().calls) == (7, 28)


def test_what_was_recorded_and_is_not_asked_for_again_is_told(rehearsal: PricedRehearsal, project: Project) -> None:
    with durable(project, turns=4) as process:
        for _ in range(3):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
    code, said = finished(project, turns=2)
    assert code == 0
    assert "were not asked for again: exchange/" in said


def test_two_programs_of_one_name_do_not_run_at_the_same_time_and_a_wrong_command_is_an_error(
    rehearsal: PricedRehearsal, project: Project
) -> None:
    with durable(project, turns=200) as process:
        process.stdout.readline()
        code, said = finished(project)
        assert code != 0
        assert "is being executed by process" in said
        process.send_signal(signal.SIGINT)
        assert process.wait(60) != 0
    with project.command("durable", "--name", "x", "--", "no-such-program-anywhere") as wrong:
        _, said = wrong.communicate(60)
        assert wrong.returncode == 2
        assert "no-such-program-anywhere" in said


def _given(said: str) -> int:
    """Return how many answers a command says it took from the journal."""
    found = [line for line in said.splitlines() if "from the journal" in line]
    return int(found[0].split()[0]) if found else 0


def test_only_its_program_goes_on_with_a_run(project: Project, rehearsal: PricedRehearsal) -> None:
    (project.folder / "fail").touch()
    assert finished(project)[0] == 7
    with project.command("runs", "resume", "last") as resumed:
        _, said = resumed.communicate(60)
        assert resumed.returncode != 0
        assert "is interrupted" in said
    (project.folder / "fail").unlink()
    code, said = finished(project)
    assert (code, _given(said)) == (0, 2)

"""Every agent in examples/agents is asked by the real command, as a person would."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell, line_with

EXAMPLES = Path(__file__).parent.parent / "examples" / "agents"
ASKED = "a bridge of paper"
ANSWERS = {
    "critic": "Before I agree: what is 'a bridge of paper' good for?",
    "shout": "A BRIDGE OF PAPER",
    "chatty": "You said 'a bridge of paper'. Tell me more!",
    "app": "That were 4 words.",
    "reverse": "repap fo egdirb a",
    "simulated": "a bridge of paper",
}
LOGS = {"critic": "critic: the phase is propose", "chatty": "chatty: 4 words came in"}
COSTS = {"chatty": "$0.000013", "app": "$0.0002", "simulated": "$0.01"}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A copy of the examples, with the Python of these tests as the first on PATH."""
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".muster", "__pycache__"))
    return Shell(tmp_path, {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})


@pytest.fixture
def app(shell: Shell) -> Iterator[str]:
    """The service of the examples on a free port, which its section is told."""
    with subprocess.Popen(
        [sys.executable, "app.py", "0"], cwd=shell.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as service:
        try:
            url = line_with(service.stdout, "listening on").split()[-1]
            settings = (shell.folder / "muster.toml").read_text(encoding="utf-8")
            shell.write("muster.toml", re.sub(r'url = ".*"', f'url = "{url}"', settings))
            yield url
        finally:
            service.kill()


def test_every_declared_agent_is_tried_here() -> None:
    declared = tomllib.loads((EXAMPLES / "muster.toml").read_text(encoding="utf-8"))["agents"]
    assert declared.keys() == ANSWERS.keys()


@pytest.mark.parametrize("agent", ANSWERS)
def test_standard_output_is_the_answer_and_nothing_else(
    shell: Shell, agent: str, request: pytest.FixtureRequest
) -> None:
    if agent == "app":
        request.getfixturevalue("app")
    done = shell.muster("ask", agent, ASKED)
    assert (done.code, done.out) == (0, ANSWERS[agent] + "\n"), done
    assert [line.removeprefix("  │ ") for line in done.err.splitlines() if line.startswith("  │ ")] == (
        [LOGS[agent]] if agent in LOGS else []
    )
    footer = done.err.splitlines()[-1].split(" · ")
    assert footer[0] == agent
    assert COSTS.get(agent, "$0.00") in footer


def test_the_critic_judges_what_others_proposed(shell: Shell) -> None:
    asked = {"phase": "evaluate", "context": {"candidates": [{"id": "a", "proposal": "x" * 40}]}}
    done = subprocess.run(
        [sys.executable, "critic.py"],
        cwd=shell.folder,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=200,
    )
    (evaluation,) = json.loads(done.stdout)["evaluations"]
    assert (evaluation["target_id"], evaluation["score"]) == ("a", 0.5)


def test_json_has_the_log_the_session_and_what_it_cost(shell: Shell) -> None:
    data = shell.muster("ask", "chatty", ASKED, "--json").data()
    assert (data["log"], data["session"], data["cost_usd"]) == (LOGS["chatty"] + "\n", "chatty-1", 0.000013)
    assert data["tokens"] == {"input": 4, "output": 9}


def test_json_has_the_data_of_a_proposal(shell: Shell) -> None:
    data = shell.muster("ask", "critic", ASKED, "--system", "a judge", "--json").data()
    assert data["data"] == {"thought_process": "I was asked as a judge.", "content": data["text"]}


def test_json_has_the_tools_that_a_service_used(shell: Shell, app: str) -> None:
    (call,) = shell.muster("ask", "app", ASKED, "--json").data()["tool_calls"]
    assert (call["name"], call["arguments"], call["result"]) == ("count_words", {"text": ASKED}, "4")


def test_the_whole_call_of_a_cli_agent_is_shown(shell: Shell) -> None:
    done = shell.muster("ask", "simulated", "MOOD:tools", "--json")
    data = done.data()
    assert [(call["name"], call["failed"]) for call in data["tool_calls"]] == [("Bash", False), ("Grep", True)]
    sheet = shell.muster("runs", "show", "last", "--call", "ask").out.splitlines()
    assert sheet[0] == "ask  simulated  done"
    for line in (
        "  [user] MOOD:tools",
        "  Bash(command='ls') → README.md",
        "  Grep(pattern='TODO') failed → no such file",
        "  There is one file.",
        "  1  succeeded, $0.02 of $0.50 reserved, billed",
    ):
        assert line in sheet
    assert any(line.endswith(f"3 turns · {data['seconds']:.1f} s · session {data['session']}") for line in sheet)
    shown = shell.muster("runs", "show", "last", "--call", "ask", "--json").data()
    assert (shown["reply"]["session"], shown["attempt_list"][0]["reserved_usd"]) == (data["session"], 0.5)

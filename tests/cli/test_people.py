"""A person as an agent on the command line: asked in the terminal, or told how to answer in another one."""

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .shell import COMMAND, PATIENCE, Shell, line_with

SETTINGS = """
[agents.me]
kind = "human"

[agents.hasty]
kind = "human"
timeout_secs = 0.05
"""
CHAIN = """
name: letter
steps:
  - {name: first, agent: me, prompt: "a letter?"}
  - {name: second, agent: me, prompt: "really, {steps.first.output}?"}
"""


@pytest.fixture
def home(shell: Shell) -> Shell:
    shell.write("muster.toml", SETTINGS)
    shell.write("chain.yaml", CHAIN)
    return shell


class Terminal:
    """A command whose standard input and error are a terminal."""

    def __init__(self, process: "subprocess.Popen[bytes]", leader: int) -> None:
        self._process, self._leader, self._seen = process, leader, ""

    def read_until(self, words: str) -> str:
        """Read what is on the screen until it has these words after those that were read before."""
        while words not in self._seen:
            try:
                self._seen += os.read(self._leader, 4096).decode()
            except OSError:
                raise AssertionError(f"no {words!r} in {self._seen!r}") from None
        before, _, self._seen = self._seen.partition(words)
        return before

    def type(self, text: str) -> None:
        """Type some text."""
        os.write(self._leader, text.encode())

    def end(self) -> tuple[int, str]:
        """Wait for the end, and return the exit code and what stands on standard output."""
        out, _ = self._process.communicate(timeout=PATIENCE)
        return self._process.returncode, out.decode()


@contextmanager
def terminal(shell: Shell, *arguments: str) -> Iterator[Terminal]:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=shell.folder,
        env=shell.environment,
        stdin=follower,
        stdout=subprocess.PIPE,
        stderr=follower,
    )
    os.close(follower)
    try:
        yield Terminal(process, leader)
    finally:
        process.kill()
        process.communicate()
        os.close(leader)


def test_ask_prompts_a_person_who_sits_at_the_terminal(home: Shell) -> None:
    with terminal(home, "ask", "me", "what is 6*7?") as screen:
        screen.read_until("me is asked: what is 6*7?")
        screen.read_until("answer: ")
        screen.type("  \n")
        screen.read_until("the answer is empty")
        screen.read_until("answer: ")
        screen.type("42\n")
        assert screen.end() == (0, "42\n")


def test_a_person_who_ends_the_input_can_still_answer_elsewhere(home: Shell) -> None:
    with terminal(home, "ask", "me", "what is 6*7?") as screen:
        screen.read_until("answer: ")
        screen.type("\x04")
        screen.read_until("answer with: muster answer ")
        assert home.muster("answer", "last", "42").code == 0
        assert screen.end() == (0, "42\n")


def test_ask_tells_how_to_answer_where_nobody_sits(home: Shell) -> None:
    with home.start("ask", "me", "what is 6*7?", "--name", "sum") as process:
        assert "me is asked: what is 6*7?" in line_with(process.stderr, "is asked")
        run = line_with(process.stderr, "answer with").split()[4]
        shown = home.muster("runs", "show", "sum")
        assert f"answer with: muster answer {run} --call ask TEXT" in shown.out
        (question,) = home.run("sum")["questions"]
        assert (question["key"], question["agent"], question["prompt"]) == ("ask", "me", "what is 6*7?")
        done = home.muster("answer", "sum", "-", stdin="forty-two\n")
        assert done.out == f"call ask of run {run} is answered; run {run} continues automatically\n"
        out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "forty-two\n")
    assert "questions" not in home.run("sum")


def test_a_run_left_by_its_process_is_answered_and_resumed(home: Shell) -> None:
    with home.start("ask", "me", "what is 6*7?") as process:
        line_with(process.stderr, "answer with")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 4
    sent = home.muster("answer", "last", "42", "--json").data()
    assert (sent["key"], sent["state"], sent["goes_on"]) == ("ask", "interrupted", False)
    assert home.muster("runs", "resume", "last", "--json").data()["result"]["text"] == "42"
    calls = home.muster("runs", "show", "last", "--calls", "--json").data()["call_list"]
    assert [(call["key"], call["attempts"], call["cost_usd"]) for call in calls] == [("ask", 0, 0.0)]


def test_a_worker_goes_on_with_a_chain_whenever_its_person_answers(home: Shell) -> None:
    home.muster("chain", "run", "chain.yaml", "--detach")
    for question, text in (("a letter?", "why not"), ("really, why not?", "yes")):
        assert home.muster("worker", "--until-idle").code == 0
        run = home.run("last")
        assert (run["state"], run["questions"][0]["prompt"]) == ("waiting", question)
        told = home.muster("answer", "last", text)
        assert f"continue with: muster runs resume {run['id']}" in told.out, "no worker is alive"
    home.muster("worker", "--until-idle")
    assert home.run("last")["state"] == "completed"


def test_an_answer_that_nobody_waits_for_is_an_error_that_says_why(home: Shell) -> None:
    assert home.muster("ask", "sim/echo", "hello").code == 0
    refused = home.muster("answer", "last", "42", "--json")
    assert (refused.code, refused.error()["code"]) == (4, "conflict")
    assert "completed and is not waiting for an answer" in refused.error()["message"]


def test_the_time_of_a_person_ends_an_ask_with_1(home: Shell) -> None:
    late = home.muster("ask", "hasty", "quick!")
    assert late.code == 1
    assert "agent 'hasty', a person, did not answer within 0.05 s" in late.err


def test_the_doctor_and_the_plan_know_people(home: Shell) -> None:
    assert "me is a person, who answers with: muster answer RUN TEXT" in home.muster("doctor").out
    assert home.muster("chain", "plan", "chain.yaml", "--json").data()["total"]["most_usd"] == 0
    refused = home.muster("task", "submit", "dig", "--agent", "me")
    assert refused.code == 2
    assert "'me' is a person" in refused.err

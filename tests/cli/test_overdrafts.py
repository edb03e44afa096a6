"""An agent that reports a higher cost than the budget: its answer is kept, and the command says so and exits 1."""

import json

import pytest

from .shell import Result, Shell

DEAR = '[agents.dear]\nkind = "python"\nfunction = "dear:answer"\n'
ANSWER = 'async def answer(request):\n    return {{"text": {text!r}, "cost_usd": {cost}}}\n'
CLEAN: dict[str, list[str]] = {"findings": []}
SUITE = """
schema_version: 1
skill_or_agent: desk
cases:
  - id: desk/one
    input: {messages: [{role: user, content: hello}]}
    expected: {output: [{kind: contains, value: yes}]}
"""
VERIFY = """
agents:
  - {name: reads, kind: model, model: dear, prompt: Look at it.}
"""


@pytest.fixture
def desk(shell: Shell) -> Shell:
    """A folder with an agent that reports seven and a half dollars for every answer."""
    answers(shell, 7.5)
    return shell


def answers(shell: Shell, cost: float, *, text: str = "yes", more: str = "") -> None:
    shell.write("muster.toml", DEAR + more)
    shell.write("dear.py", ANSWER.format(text=text, cost=cost))


def told(done: Result) -> None:
    """The numbers are on standard error, and the exit code is 1."""
    assert done.code == 1, done
    assert "$7.50 of $1.00 is spent" in done.err, done


def refused(done: Result) -> dict[str, object]:
    """The envelope says no, with what there is in spite of it."""
    envelope = done.envelope()
    assert (done.code, envelope["ok"], envelope["error"]["code"]) == (1, False, "overdraft"), done
    assert "$7.50 of $1.00 is spent" in envelope["error"]["message"]
    data: dict[str, object] = envelope["data"]
    return data


def test_ask_prints_the_answer_and_tells_the_overdraft(desk: Shell) -> None:
    done = desk.muster("ask", "dear", "hello", "--budget", "1")
    told(done)
    assert done.out == "yes\n"
    assert refused(desk.muster("ask", "dear", "hello", "--budget", "1", "--json"))["text"] == "yes"
    shown = desk.muster("runs", "show", "last").out
    assert "completed  (overdraft)" in shown
    assert "$7.50 of $1.00 is spent" in shown


def test_a_cost_within_the_budget_is_none(shell: Shell) -> None:
    answers(shell, 0.5)
    assert shell.muster("ask", "dear", "hello", "--budget", "1").code == 0
    assert shell.run("last")["ended_reason"] == "done"


def test_without_any_budget_there_is_none(desk: Shell) -> None:
    assert desk.muster("ask", "dear", "hello").code == 0


def test_more_than_the_agent_was_declared_to_cost_is_one(shell: Shell) -> None:
    answers(shell, 7.5, more="budget_usd = 0.50\n")
    done = shell.muster("ask", "dear", "hello", "--json")
    assert (done.code, done.envelope()["data"]["text"]) == (1, "yes")
    assert "$7.50, more than the $0.50" in done.envelope()["error"]["message"]


def test_a_day_that_costs_more_than_it_may_is_one(shell: Shell) -> None:
    answers(shell, 7.5, more="[budget]\nday_usd = 1\n")
    told(shell.muster("ask", "dear", "hello"))


def test_a_suite_that_passed_over_its_budget_is_no_success(desk: Shell) -> None:
    desk.write("suite.yaml", SUITE)
    command = ("run", "suite.yaml", "--agent", "dear", "--budget", "1")
    told(desk.muster(*command, "--report", "junit=report.xml"))
    assert "Budget exceeded" in (desk.folder / "report.xml").read_text()
    assert refused(desk.muster(*command, "--json"))["run"]
    assert "Budget exceeded" in desk.muster("report", "last").out


def test_a_verification_that_passed_over_its_budget_is_no_success(shell: Shell) -> None:
    answers(shell, 7.5, text=json.dumps(CLEAN))
    shell.write("verify.yaml", VERIFY)
    shell.write("code.py", "x = 1\n")
    told(shell.muster("verify", "code.py", "--budget", "1"))
    refused(shell.muster("verify", "code.py", "--budget", "1", "--json"))


def test_a_worker_tells_it(desk: Shell) -> None:
    run = desk.submit("ask", {"agent": "dear", "prompt": "hello"}, budget_usd="1")
    done = desk.muster("worker", "--until-idle")
    assert f"\nbudget of run {run} is exceeded: $7.50 of $1.00 is spent" in done.err
    assert (done.code, "1 of 1 runs exceeded a budget" in done.err) == (1, True)
    desk.submit("ask", {"agent": "dear", "prompt": "again"}, budget_usd="1")
    again = desk.muster("worker", "--until-idle", "--json")
    assert (again.code, again.envelope()["ok"], len(again.envelope()["data"]["runs"])) == (1, False, 1)


def test_a_run_that_is_refused_further_calls_names_the_budget_and_how_to_raise_it(desk: Shell) -> None:
    desk.declare_workloads()
    desk.write("muster.toml", DEAR + '[workloads]\nimport = ["my_workloads"]\n')
    run = desk.submit("triage", {"agent": "dear", "tickets": ["a", "b"]}, budget_usd="1", concurrency=1)
    told(desk.muster("runs", "resume", run))
    shown = desk.muster("runs", "show", run).out
    assert "failed  (budget)" in shown
    assert "$7.50 of $1.00 is spent; call 'ticket/0' reported a cost of $7.50; no further calls are made" in shown
    assert f"muster runs resume {run} --budget USD" in shown


def test_resume_ends_as_the_command_would_have(desk: Shell) -> None:
    run = desk.submit("ask", {"agent": "dear", "prompt": "hello"}, budget_usd="1")
    desk.crash("call.settled", "runs", "resume", run)  # the answer is paid, and the driver dies
    told(desk.muster("runs", "resume", run))
    assert desk.run(run)["ended_reason"] == "overdraft"


def test_nothing_is_left_for_a_fork_of_it_but_its_own_budget(desk: Shell) -> None:
    desk.muster("ask", "dear", "hello", "--budget", "1")
    assert desk.muster("runs", "fork", "last", "--from", "ask").code == 1
    assert desk.run("last")["spent_usd"] == 7.5

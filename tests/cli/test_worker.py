"""`muster worker`: drives what was submitted."""

import pytest

from .shell import Shell


def test_it_drives_runs_of_the_users_own_workload_until_nothing_is_left(shell: Shell) -> None:
    shell.declare_workloads()
    runs = [shell.submit("triage", {"agent": "sim/echo", "tickets": ["a", "b"]}) for _ in range(4)]
    result = shell.muster("worker", "--until-idle", "--concurrency", "2")
    assert result.code == 0
    for run in runs:
        assert f"run {run} completed: 2 calls done" in result.out
        assert shell.run(run)["result"] == {"labels": ["a", "b"]}


def test_json_gives_the_runs_at_the_end(shell: Shell) -> None:
    run = shell.submit("ask", {"agent": "sim/echo", "prompt": "hello"})
    data = shell.muster("worker", "--until-idle", "--json").data()
    assert [ended["id"] for ended in data["runs"]] == [run]


def test_a_run_that_fails_does_not_stop_it(shell: Shell) -> None:
    shell.declare_workloads()
    broken, sound = shell.submit("breaks", {}), shell.submit("ask", {"agent": "sim/echo", "prompt": "hello"})
    result = shell.muster("worker", "--until-idle", "--concurrency", "1")
    assert result.code == 0
    assert f"run {broken} failed" in result.out
    assert f"run {sound} completed" in result.out


def test_runs_of_unknown_workloads_are_left_and_told(shell: Shell) -> None:
    run = shell.submit("mystery", {})
    result = shell.muster("worker", "--until-idle")
    assert result.code == 0
    assert "unknown here: mystery" in result.err
    assert shell.run(run)["state"] == "queued"


def test_what_a_person_began_is_left_to_them(shell: Shell) -> None:
    shell.muster("ask", "sim/slow", "hello", "--timeout", "0.01")
    assert shell.muster("worker", "--until-idle", "--json").data() == {"runs": []}


def test_a_concurrency_of_nothing_exits_2(shell: Shell) -> None:
    assert shell.muster("worker", "--concurrency", "0").code == 2


@pytest.mark.parametrize(
    ("queues", "said"), [("", "--queues names no queue"), ("runs,mail", "--queues names 'mail', which is not a queue")]
)
def test_queues_that_do_not_exist_are_refused(shell: Shell, queues: str, said: str) -> None:
    told = shell.muster("worker", "--queues", queues)
    assert (told.code, said in told.err) == (2, True), told


@pytest.mark.parametrize(("number", "said"), [("1", "1 run at a time"), ("2", "2 runs at a time")])
def test_it_says_how_much_it_does_at_a_time(shell: Shell, number: str, said: str) -> None:
    assert said in shell.muster("worker", "--until-idle", "--concurrency", number).err

"""Runs that wait for batches: shown, watched, resumed, canceled, and finished by workers."""

import signal

import pytest

from tests.rehearsal import ForkedRehearsal

from .shell import Shell, line_with

ANTHROPIC, OPENAI = "anthropic/claude-haiku-5-5", "openai/gpt-5-mini"
OFTEN = ("--poll-interval", "0.05")


def test_show_tells_the_batches_and_what_they_saved(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    asked = shell.ask_in_batch(OPENAI, detach=False)
    run = shell.run("last")
    assert run["batches"] == asked["batches"]
    assert set(run["batches"][0]) == {"id", "provider_id", "state", "requests", "stalled", "waits_for", "why", "next"}
    assert (run["batch_usd"], run["live_usd"]) == (asked["batch_usd"], asked["live_usd"])
    shown = shell.muster("runs", "show", "last").out
    assert asked["batches"][0]["id"] in shown
    assert "live would have been $" in shown
    (listed,) = shell.muster("runs", "list", "--json").data()
    assert listed["batches"] == run["batches"]


def test_a_run_that_waits_alone_looks_so(shell: Shell, endless_batches: ForkedRehearsal) -> None:
    shell.use(endless_batches)
    asked = shell.ask_in_batch(ANTHROPIC, "--name", "mine")
    shown = shell.muster("runs", "show", "mine").out
    for words in ("waiting", "1 waiting in batches", "reserved", f"muster runs resume {asked['run']}", "batch watch"):
        assert words in shown
    assert "driver" not in shown
    (listed,) = shell.muster("runs", "list", "--state", "waiting", "--json").data()
    assert (listed["name"], listed["driver"], listed["parked"]) == ("mine", None, 1)
    assert "waiting" in shell.muster("runs", "list").out
    assert "1 in progress" in shell.muster("doctor").out
    assert shell.muster("store", "info", "--json").data()["batches_under_way"] == 1


def test_watch_of_a_run_that_waits_alone_ends_with_how_it_stands(
    shell: Shell, endless_batches: ForkedRehearsal
) -> None:
    shell.use(endless_batches)
    asked = shell.ask_in_batch(ANTHROPIC)
    result = shell.muster("runs", "watch", "last")
    assert result.code == 0
    assert f"batch.submitted {asked['batches'][0]['id']}" in result.out
    assert "run.waiting" in result.out
    assert f"run {asked['run']} is waiting" in result.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_waits_leaves_the_batch_to_the_provider(
    shell: Shell, endless_batches: ForkedRehearsal, number: signal.Signals
) -> None:
    shell.use(endless_batches)
    with shell.start("ask", ANTHROPIC, "hello", "--dispatch", "batch", *OFTEN) as process:
        line_with(process.stderr, "in_progress")
        process.send_signal(number)
        _, told = process.communicate()
    run = shell.run("last")
    assert process.returncode == 4
    assert "1 batch continues at the provider, and nothing is lost" in told
    assert f"continue with: muster runs resume {run['id']}" in told
    assert (run["state"], run["parked"]) == ("interrupted", 1)
    resumed = shell.muster("runs", "resume", run["id"], *OFTEN, "--deadline", "0.1")
    assert (resumed.code, len(endless_batches.audit().batches)) == (4, 1)


def test_resume_with_another_key_exits_3_and_the_run_still_waits(
    shell: Shell, endless_batches: ForkedRehearsal
) -> None:
    shell.use(endless_batches)
    run = shell.ask_in_batch(ANTHROPIC)["run"]
    shell.use(endless_batches, key="another")
    result = shell.muster("runs", "resume", run, "--json")
    assert (result.code, result.error()["code"]) == (3, "configuration")
    assert "a different key or account" in result.error()["message"]
    del shell.variables["ANTHROPIC_API_KEY"]
    missing = shell.muster("runs", "resume", run)
    assert missing.code == 3
    assert "ANTHROPIC_API_KEY" in missing.err
    assert shell.run(run)["state"] == "waiting"


@pytest.mark.parametrize("command", ["runs resume last", "runs cancel last", "batch fetch last", "worker --until-idle"])
def test_options_of_waiting_that_make_no_sense_exit_2_everywhere(shell: Shell, command: str) -> None:
    assert shell.muster(*command.split(), "--deadline", "-1").code == 2


def test_a_run_that_is_driven_while_it_waits_is_not_driven_twice(
    shell: Shell, endless_batches: ForkedRehearsal
) -> None:
    shell.use(endless_batches)
    with shell.start("ask", ANTHROPIC, "hello", "--dispatch", "batch", *OFTEN) as process:
        line_with(process.stderr, "in_progress")
        result = shell.muster("runs", "resume", "last")
    assert result.code == 4
    assert f"process {process.pid} on" in result.err


def test_cancel_of_a_run_that_waits_alone_reaches_the_provider(shell: Shell, endless_batches: ForkedRehearsal) -> None:
    shell.use(endless_batches)
    shell.ask_in_batch(OPENAI)
    result = shell.muster("runs", "cancel", "last", *OFTEN)
    run = shell.run("last")
    assert result.code == 0
    assert "waiting until the provider has stopped 1 batch" in result.err
    assert (run["state"], run["parked"], run["batches"][0]["state"]) == ("canceled", 0, "collected")
    assert endless_batches.audit().calls == 0


def test_cancel_reaches_the_process_that_waits_for_the_batch(shell: Shell, endless_batches: ForkedRehearsal) -> None:
    shell.use(endless_batches)
    with shell.start("ask", ANTHROPIC, "hello", "--dispatch", "batch", *OFTEN) as driver:
        line_with(driver.stderr, "in_progress")
        canceled = shell.muster("runs", "cancel", "last", "--json")
        assert driver.wait() == 1
    assert canceled.data()["state"] == "canceled"
    assert shell.run("last")["batches"][0]["state"] == "collected"


def test_cancel_that_is_left_says_how_to_fetch_what_was_produced(shell: Shell) -> None:
    faults = {"script": [{"op": "batch_cancel", "fault": "500", "times": "always"}]}
    with ForkedRehearsal(batch_ms=600_000, faults=faults) as rehearsal:
        shell.use(rehearsal)
        (batch,) = shell.ask_in_batch(ANTHROPIC)["batches"]
        with shell.start("runs", "cancel", "last") as process:
            line_with(process.stderr, "waiting until")
            line_with(process.stderr, "being canceled")
            process.send_signal(signal.SIGINT)
            _, told = process.communicate()
    assert process.returncode == 4
    assert f"muster batch fetch {batch['id']}" in told
    assert shell.run("last")["state"] == "canceled"


def test_cancel_without_the_key_says_what_is_canceled_and_what_is_not(
    shell: Shell, endless_batches: ForkedRehearsal
) -> None:
    shell.use(endless_batches)
    (batch,) = shell.ask_in_batch(ANTHROPIC)["batches"]
    shell.use(endless_batches, key="another")
    result = shell.muster("runs", "cancel", "last", "--json")
    assert result.code == 3
    assert f"muster batch cancel {batch['id']}" in result.error()["suggestions"][-1]
    assert shell.run("last")["state"] == "canceled"


def test_a_worker_finishes_what_was_detached(shell: Shell, slow_batches: ForkedRehearsal) -> None:
    shell.use(slow_batches)
    runs = [shell.ask_in_batch(agent)["run"] for agent in (ANTHROPIC, OPENAI)]
    result = shell.muster("worker", "--until-idle", *OFTEN)
    assert result.code == 0
    for run in runs:
        assert f"run {run} completed: 1 call done" in result.out
        assert shell.run(run)["result"]["text"] == "hello"
    assert slow_batches.audit().calls == 2


def test_a_run_of_many_calls_shares_one_batch_and_counts_while_it_waits(
    shell: Shell, slow_batches: ForkedRehearsal
) -> None:
    shell.use(slow_batches)
    shell.declare_workloads()
    run = shell.submit("triage", {"agent": OPENAI, "tickets": ["a", "b", "c"]}, dispatch="batch")
    result = shell.muster("runs", "resume", run, *OFTEN)
    assert result.code == 0
    assert " of 3 done (" in result.err
    assert "live would have been" in result.out
    assert [batch["requests"] for batch in shell.run(run)["batches"]] == [3]
    assert len(slow_batches.audit().batches) == 1


def test_a_worker_goes_on_with_a_crashed_run_once_it_is_submitted(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    worker = ("worker", "--until-idle", "--poll-interval", "0.05")
    shell.crash("batch.created", "ask", ANTHROPIC, "hello", "--dispatch", "batch", "--poll-interval", "0.05")
    assert shell.muster(*worker).code == 0
    assert shell.run("last")["state"] == "interrupted"
    told = " ".join(shell.muster("worker", "--help").out.split())
    assert "A run that a command started for itself is not: resume it, or submit it with" in told
    assert shell.muster("runs", "resume", "last", "--detach").code == 0
    assert shell.muster(*worker).code == 0
    assert shell.run("last")["state"] == "completed"
    assert rehearsal.audit().calls == 1

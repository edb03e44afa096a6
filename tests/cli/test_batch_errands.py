"""`muster batch watch | fetch | cancel`: errands to the provider."""

import json
import signal

import pytest

from tests.rehearsal import ForkedRehearsal

from .shell import Shell, line_with

ANTHROPIC, OPENAI = "anthropic/claude-haiku-5-5", "openai/gpt-5-mini"
OFTEN = ("--poll-interval", "0.05")


@pytest.mark.parametrize("agent", [ANTHROPIC, OPENAI])
def test_fetch_waits_brings_the_results_and_names_the_runs_to_resume(
    shell: Shell, slow_batches: ForkedRehearsal, agent: str
) -> None:
    shell.use(slow_batches)
    run = shell.ask_in_batch(agent)["run"]
    data = shell.muster("batch", "fetch", "last", *OFTEN, "--json").data()
    assert (data["state"], data["members"]["succeeded"], data["resumable"]) == ("collected", 1, [run])
    again = shell.muster("batch", "fetch", data["provider_id"])
    assert again.code == 0
    assert "is collected: 1 succeeded" in again.out
    assert slow_batches.audit().calls == 1


def test_fetch_shows_how_it_stands(shell: Shell, slow_batches: ForkedRehearsal) -> None:
    shell.use(slow_batches)
    (batch,) = shell.ask_in_batch(OPENAI)["batches"]
    result = shell.muster("batch", "fetch", batch["id"], *OFTEN)
    assert f"batch {batch['id']}: 0 of 1 calls done, " in result.err


def test_fetch_of_a_batch_that_does_not_end_exits_4_with_the_command_that_goes_on(
    shell: Shell, endless_batches: ForkedRehearsal
) -> None:
    shell.use(endless_batches)
    (batch,) = shell.ask_in_batch(ANTHROPIC)["batches"]
    result = shell.muster("batch", "fetch", "last", *OFTEN, "--deadline", "0.2", "--json")
    assert (result.code, result.error()["code"]) == (4, "batch_overdue")
    assert f"muster batch fetch {batch['id']}" in result.error()["suggestions"][0]


def test_fetch_of_a_batch_that_was_refused_exits_1(shell: Shell) -> None:
    faults = {"script": [{"op": "batch", "fault": "validation_failure"}]}
    with ForkedRehearsal(faults=faults) as rehearsal:
        shell.use(rehearsal)
        assert shell.muster("ask", OPENAI, "hello", "--dispatch", "batch", *OFTEN).code == 1
        result = shell.muster("batch", "fetch", "last", "--json")
    assert (result.code, result.error()["code"]) == (1, "batch_refused")
    assert result.envelope()["data"]["state"] == "refused"


def test_fetch_with_another_key_exits_3_and_changes_nothing(shell: Shell, endless_batches: ForkedRehearsal) -> None:
    shell.use(endless_batches)
    shell.ask_in_batch(ANTHROPIC)
    shell.use(endless_batches, key="another")
    result = shell.muster("batch", "fetch", "last", "--json")
    assert (result.code, result.error()["code"]) == (3, "configuration")
    assert "a different key" in result.error()["message"]
    assert shell.muster("batch", "show", "last", "--json").data()["state"] == "running"


@pytest.mark.parametrize("verb", ["fetch", "watch"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_the_batch_to_the_provider_and_says_how_to_go_on(
    shell: Shell, endless_batches: ForkedRehearsal, verb: str, number: signal.Signals
) -> None:
    shell.use(endless_batches)
    (batch,) = shell.ask_in_batch(ANTHROPIC)["batches"]
    with shell.start("batch", verb, "last", *OFTEN) as process:
        line_with(process.stderr, "in_progress")
        process.send_signal(number)
        _, told = process.communicate()
    assert process.returncode == 4
    assert f"continues at the provider; continue with: muster batch fetch {batch['id']}" in told


def test_watch_gives_json_lines_until_it_is_over(shell: Shell, slow_batches: ForkedRehearsal) -> None:
    shell.use(slow_batches)
    shell.ask_in_batch(OPENAI)
    result = shell.muster("batch", "watch", "last", *OFTEN, "--json")
    states = [json.loads(line)["state"] for line in result.out.splitlines()]
    assert (result.code, states[0], states[-1]) == (0, "running", "collected")
    over = shell.muster("batch", "watch", "last", "--json")
    assert [json.loads(line)["state"] for line in over.out.splitlines()] == ["collected"]
    assert "is collected: 1 succeeded" in shell.muster("batch", "watch", "last").err


def test_watch_only_looks_while_another_process_drives(shell: Shell, slow_batches: ForkedRehearsal) -> None:
    shell.use(slow_batches)
    with shell.start("ask", ANTHROPIC, "hello", "--dispatch", "batch", *OFTEN) as driver:
        line_with(driver.stderr, "in_progress")
        shell.use(slow_batches, key="another")  # it could not fetch anything itself
        result = shell.muster("batch", "watch", "last", "--json")
        assert driver.wait() == 0
    assert result.code == 0
    assert json.loads(result.out.splitlines()[-1])["state"] == "collected"


def test_cancel_reaches_the_provider_and_brings_what_was_produced(
    shell: Shell, endless_batches: ForkedRehearsal
) -> None:
    shell.use(endless_batches)
    run = shell.ask_in_batch(ANTHROPIC)["run"]
    result = shell.muster("batch", "cancel", "last", *OFTEN)
    assert result.code == 0
    assert "is collected: 1 canceled" in result.out
    assert f"muster runs resume {run}" in result.out
    audit = endless_batches.audit()
    assert (audit.calls, len(audit.batches)) == (0, 1)
    again = shell.muster("batch", "cancel", "last", "--json")
    assert (again.code, again.error()["code"]) == (4, "conflict")


def test_cancel_gives_the_tally_as_json(shell: Shell, endless_batches: ForkedRehearsal) -> None:
    shell.use(endless_batches)
    shell.ask_in_batch(OPENAI)
    data = shell.muster("batch", "cancel", "last", *OFTEN, "--json").data()
    assert (data["members"]["canceled"], data["cancel_requested"], data["cost_usd"]) == (1, True, 0)

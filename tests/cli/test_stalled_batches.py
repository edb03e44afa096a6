"""A batch that does not get on: lists, progress and reports say why, and name the command to use next."""

from dataclasses import replace
from typing import Any

import pytest

from muster.cli.terminal.progress import batch_progress, line, waiting
from muster.domain.batch import BatchState, ways_out
from muster.domain.ids import BatchId
from tests.rehearsal import ForkedRehearsal

from .shell import Shell
from .test_progress import BATCH

ANTHROPIC = "anthropic/claude-haiku-5-5"
OFTEN = ("--poll-interval", "0.05")
RESUBMIT = "send its calls again, at the risk of paying twice: muster batch reconcile --resubmit"


def test_a_lost_create_is_told_in_lists_and_reports_with_the_way_out(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    shell.crash("batch.claimed", "ask", ANTHROPIC, "hello", "--dispatch", "batch", *OFTEN)
    assert shell.muster("batch", "reconcile", *OFTEN, "--grace", "0").code == 4
    (batch,) = shell.muster("batch", "list", "--json").data()
    why = (
        "it is unknown whether it was created: its process ended before the provider's answer arrived; "
        "the provider's list does not show it"
    )
    ways = ["look again: muster batch reconcile", RESUBMIT]
    assert (batch["stalled"], batch["why"], batch["next"]) == (True, why, ways)
    run = shell.run("last")
    assert run["batches"] == [{name: batch[name] for name in run["batches"][0]}]
    shown = shell.muster("batch", "list").out
    assert f"batch {batch['id']}, submitted, not confirmed yet: {why}\n  {ways[0]}\n  {ways[1]}\n" in shown
    shown = shell.muster("runs", "list").out
    assert f"run {run['id']} waits for batch {batch['id']}\nbatch {batch['id']}, " in shown
    for report in (("runs", "show", "last"), ("batch", "show", "last")):
        words = " ".join(shell.muster(*report).out.replace("│", " ").split())
        assert "the provider's list does not show it" in words
        assert "muster batch reconcile --resubmit" in words
    assert "muster batch reconcile" in shell.muster("doctor").out


def test_an_upload_that_always_fails_is_told_while_it_is_tried_and_ends(shell: Shell) -> None:
    faults = {"script": [{"fault": "500", "op": "file_upload", "times": "always"}]}
    with ForkedRehearsal(faults=faults) as broken:
        shell.use(broken)
        result = shell.muster("ask", "openai/gpt-5-mini", "hello", "--dispatch", "batch", *OFTEN)
    assert result.code == 4
    assert "could not be uploaded 10 times" in result.err
    assert "not submitted yet; it was not accepted (upload " in result.err
    assert "(upload 10 of 10)" not in result.err
    assert result.err.count("trying again in another batch") == 2
    run = shell.run("last")
    assert (run["state"], run["spent_usd"], run["uncertain_usd"]) == ("failed", 0, 0)


def test_a_batch_that_nobody_sends_names_the_command_that_sends_it(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    shell.crash("batch.planned", "ask", ANTHROPIC, "hello", "--dispatch", "batch", *OFTEN)
    (batch,) = shell.muster("batch", "list", "--json").data()
    fetch = f"muster batch fetch {batch['id']}"
    why = "no process executes its runs, so it is not sent"
    assert (batch["state"], batch["stalled"], batch["why"]) == ("planned", False, why)
    assert batch["next"] == [f"send it and wait for it: {fetch}"]
    assert f"batch {batch['id']}, not submitted yet: {why}\n  {batch['next'][0]}\n" in shell.muster("batch", "list").out
    for report in (("batch", "show", "last"), ("runs", "show", "last")):
        assert why in " ".join(shell.muster(*report).out.replace("│", " ").split())
    fetched = shell.muster(*fetch.split()[1:], *OFTEN)
    assert "is collected: 1 succeeded" in fetched.out
    assert why not in fetched.err
    assert rehearsal.audit().calls == 1


def test_a_batch_that_its_process_is_reading_is_not_given_up(shell: Shell) -> None:
    slow = {"gap_ms": 4000, "script": [{"fault": "slow_stream", "op": "batch_results", "times": "always"}]}
    with ForkedRehearsal(faults=slow) as server:
        shell.use(server)
        with shell.start("ask", ANTHROPIC, "hello", "--dispatch", "batch", *OFTEN) as asking:
            while [one["state"] for one in shell.muster("batch", "list", "--json").data()] != ["ended"]:
                pass  # every look is a process of its own
            asked = shell.muster("batch", "reconcile", "--resubmit", "--grace", "0", *OFTEN)
            assert asking.wait() == 0
        assert "given up" not in asked.out
        assert server.audit().calls == 1
    assert shell.run("last")["uncertain_usd"] == 0


@pytest.mark.parametrize(
    ("changes", "way"),
    [
        ({"state": BatchState.PLANNED, "waits_for": BatchId("b0")}, "muster batch show b0"),
        ({"state": BatchState.PLANNED}, "muster batch cancel b1"),
        ({"state": BatchState.SENT}, "muster batch reconcile"),
        ({"state": BatchState.RUNNING}, "muster batch fetch b1"),
        ({"state": BatchState.ENDED}, "muster batch fetch b1"),
    ],
)
def test_progress_tells_why_a_batch_does_not_get_on_and_what_to_do(changes: dict[str, Any], way: str) -> None:
    batch = replace(BATCH, stalled=True, note="something is wrong", **changes)
    assert ways_out(replace(batch, stalled=False)) == ()
    for told in (waiting([batch]), waiting([BATCH, batch]), line(batch_progress(batch), 1010.0)):
        assert "; something is wrong; " in told
        assert way in told

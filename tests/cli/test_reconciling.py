"""`muster batch reconcile`: what became of batches whose create nobody saw the end of."""

from dataclasses import replace
from typing import Any

import pytest

from muster.app.runs.batches import BatchLook
from muster.cli.batches.reconcile import holder_words
from muster.domain.batch import BatchState
from muster.domain.run import Driver
from tests.rehearsal import ForkedRehearsal

from .shell import Shell, line_with
from .test_progress import BATCH

ANTHROPIC, OPENAI = "anthropic/claude-haiku-5-5", "openai/gpt-5-mini"
OFTEN = ("--poll-interval", "0.05")
ASK = ("--dispatch", "batch", *OFTEN)
AT_ONCE = ("--grace", "0")


def test_without_anything_unclear_there_is_nothing_to_do(shell: Shell) -> None:
    result = shell.muster("batch", "reconcile")
    assert (result.code, result.out) == (0, "nothing to reconcile\n")
    data = shell.muster("batch", "reconcile", "--json").data()
    assert data == {"batches": [], "open": 0, "resumable": []}


@pytest.mark.parametrize("agent", [ANTHROPIC, OPENAI])
def test_a_batch_that_was_created_is_found_and_paid_once(shell: Shell, rehearsal: ForkedRehearsal, agent: str) -> None:
    shell.use(rehearsal)
    shell.crash("batch.created", "ask", agent, "hello", *ASK)
    assert "may have been created" in shell.muster("doctor").out
    result = shell.muster("batch", "reconcile", *OFTEN)
    assert "looking for 1 batch at the provider; that can take 2 min for each (--grace)" in result.err
    run = shell.run("last")
    assert result.code == 0
    assert f"batch {run['batches'][0]['id']}" in result.out
    assert ": found: " in result.out
    assert f"continue with: muster runs resume {run['id']}" in result.out
    assert shell.muster("runs", "resume", run["id"], *OFTEN).code == 0
    audit = rehearsal.audit()
    assert (audit.calls, len(audit.batches)) == (1, 1)


def test_a_batch_that_was_never_uploaded_is_sent_when_its_run_goes_on(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    shell.crash("batch.claimed", "ask", OPENAI, "hello", *ASK)
    data = shell.muster("batch", "reconcile", *OFTEN, "--json").data()
    (batch,) = data["batches"]
    assert (batch["state"], batch["open"], data["open"]) == ("planned", False, 0)
    assert shell.muster("runs", "resume", data["resumable"][0], *OFTEN).code == 0
    assert rehearsal.audit().calls == 1


def test_a_batch_that_cannot_be_found_stays_open_and_exits_4(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    shell.crash("batch.claimed", "ask", ANTHROPIC, "hello", *ASK)
    result = shell.muster("batch", "reconcile", *OFTEN, *AT_ONCE)
    assert result.code == 4
    assert "still open" in result.out
    assert "--resubmit" in result.err
    envelope = shell.muster("batch", "reconcile", *OFTEN, *AT_ONCE, "--json").envelope()
    assert (envelope["ok"], envelope["error"]["code"], envelope["data"]["open"]) == (False, "batch_open", 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "is being created by process 7 on desk; waiting for the provider's answer"),
        ({"grace_until": 5.0}, "is looked for by process 7 on desk; it is taken over from there"),
        ({"grace_until": 5.0, "by_hand": True}, "is being reconciled by process 7 on desk; waiting until that is done"),
    ],
)
def test_whoever_finds_another_process_at_a_batch_is_told_what_that_means(changes: dict[str, Any], words: str) -> None:
    by = Driver(host="desk", pid=7, started="1")
    batch = replace(BATCH, state=BatchState.SENT, provider_id=None, **changes)
    assert holder_words(BatchLook(batch=batch, until=0.0, holder=by)) == f"batch {BATCH.id} {words}"


def test_a_list_that_cannot_be_read_is_told_with_how_long_it_is_asked_for(shell: Shell) -> None:
    unreadable = {"script": [{"fault": "500", "op": "batch_list", "times": "always"}]}
    with ForkedRehearsal(faults=unreadable) as server:
        shell.use(server)
        shell.crash("batch.claimed", "ask", ANTHROPIC, "hello", *ASK)
        with shell.start("batch", "reconcile", "--resubmit", *OFTEN) as process:
            told = line_with(process.stderr, "the provider's list cannot be read: ")
    assert "answered 500" in told
    assert "the provider is asked until " in told
    (batch,) = shell.muster("batch", "list", "--json").data()
    assert "the provider's list cannot be read: " in batch["why"]


def test_told_to_resubmit_it_warns_gives_up_and_names_the_run(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    shell.crash("batch.claimed", "ask", ANTHROPIC, "hello", *ASK)
    result = shell.muster("batch", "reconcile", *OFTEN, *AT_ONCE, "--resubmit")
    run = shell.run("last")
    assert result.code == 0
    assert "may be paid twice" in result.err
    assert (
        f"batch {run['batches'][0]['id']}: given up by hand; if it was created after all, it was paid for ("
        in result.out
    )
    assert f"continue with: muster runs resume {run['id']}" in result.out
    assert run["uncertain_usd"] > 0
    resumed = shell.muster("runs", "resume", run["id"], *OFTEN, "--json").data()
    assert (resumed["state"], [batch["state"] for batch in resumed["batches"]]) == (
        "completed",
        ["abandoned", "collected"],
    )
    assert rehearsal.audit().calls == 1

"""`muster ask --dispatch batch`: the same answer, cheaper and later; nothing is sent or paid twice."""

import pytest

from tests.rehearsal import ForkedRehearsal

from .shell import Shell
from .test_ask import on_terminal

ANTHROPIC, OPENAI = "anthropic/claude-haiku-5-5", "openai/gpt-5-mini"
BATCH = ("--dispatch", "batch", "--poll-interval", "0.05")


@pytest.mark.parametrize("agent", [ANTHROPIC, OPENAI])
def test_standard_output_holds_only_the_answer_and_the_footer_what_it_saved(
    shell: Shell, rehearsal: ForkedRehearsal, agent: str
) -> None:
    shell.use(rehearsal)
    result = shell.muster("ask", agent, "hello there, how are you today?", *BATCH)
    audit = rehearsal.audit()
    assert (result.code, result.out) == (0, "hello there, how are you today?\n")
    assert "batch $0.0000" in result.err
    assert "live would have been $0.0000" in result.err
    assert (audit.calls, len(audit.batches)) == (1, 1)


@pytest.mark.parametrize("agent", [ANTHROPIC, OPENAI])
def test_json_gives_the_answer_with_its_batch(shell: Shell, rehearsal: ForkedRehearsal, agent: str) -> None:
    shell.use(rehearsal)
    data = shell.ask_in_batch(agent, detach=False)
    (batch,) = data["batches"]
    assert (data["text"], data["dispatch"], data["state"], data["parked"]) == ("hello", "batch", "completed", 0)
    assert (batch["state"], batch["requests"]) == ("collected", 1)
    assert data["batch_usd"] == data["cost_usd"]
    assert data["live_usd"] >= data["batch_usd"] > 0


def test_while_it_waits_it_says_for_what_and_how_far_that_is(shell: Shell) -> None:
    with ForkedRehearsal(batch_ms=4000) as rehearsal:
        shell.use(rehearsal)
        by_time = shell.muster("ask", ANTHROPIC, "hello", *BATCH)
        by_count = shell.muster("ask", OPENAI, "hello", *BATCH)
        quiet = shell.muster("ask", OPENAI, "hello", *BATCH, "--quiet")
    assert "; waiting for batch b" in by_time.err
    assert ": in_progress (" in by_time.err
    assert ", 0 of 1 done (" in by_count.err
    assert quiet.err == ""


def test_on_a_terminal_nothing_of_the_waiting_is_left_over(shell: Shell) -> None:
    with ForkedRehearsal(batch_ms=4000) as rehearsal:
        shell.use(rehearsal)
        code, shown = on_terminal(shell, "ask", ANTHROPIC, "hello", *BATCH)
    assert code == 0
    assert "waiting for batch" in shown
    assert "hello\r\n" in shown.rpartition("\x1b[2K")[2]  # after the last line that was wiped out


def test_detached_it_tells_the_run_the_batch_and_how_to_go_on(shell: Shell, endless_batches: ForkedRehearsal) -> None:
    shell.use(endless_batches)
    result = shell.muster("ask", ANTHROPIC, "hello", *BATCH, "--detach")
    run = shell.run("last")
    (batch,) = run["batches"]
    assert result.code == 0
    for words in (run["id"], batch["id"], batch["provider_id"], f"muster runs resume {run['id']}"):
        assert words in result.out
    assert f"muster batch watch {batch['id']}" in result.out
    assert (run["state"], run["driver"], run["dispatch"], run["parked"]) == ("waiting", None, "batch", 1)


def test_detached_json_says_the_same(shell: Shell, endless_batches: ForkedRehearsal) -> None:
    shell.use(endless_batches)
    data = shell.ask_in_batch(OPENAI)
    assert (data["state"], data["parked"], data["workers"]) == ("waiting", 1, 0)
    assert [batch["state"] for batch in data["batches"]] == ["running"]
    assert data["go_on"][0] == f"muster runs resume {data['run']}"


@pytest.mark.parametrize("agent", [ANTHROPIC, OPENAI])
def test_detached_it_is_finished_by_another_process_and_paid_once(
    shell: Shell, slow_batches: ForkedRehearsal, agent: str
) -> None:
    shell.use(slow_batches)
    data = shell.ask_in_batch(agent)
    resumed = shell.muster("runs", "resume", data["run"], "--poll-interval", "0.05")
    run, audit = shell.run(data["run"]), slow_batches.audit()
    assert resumed.code == 0
    assert "1 call already in batches" in resumed.err
    assert (run["state"], run["result"]["text"]) == ("completed", "hello")
    assert (audit.calls, len(audit.batches)) == (1, 1)


def test_what_was_fetched_meanwhile_costs_nothing_on_resume(shell: Shell, slow_batches: ForkedRehearsal) -> None:
    shell.use(slow_batches)
    data = shell.ask_in_batch(ANTHROPIC)
    fetched = shell.muster("batch", "fetch", "last", "--poll-interval", "0.05")
    before = slow_batches.audit()
    resumed = shell.muster("runs", "resume", data["run"], "--json").data()
    after = slow_batches.audit()
    assert f"continue with: muster runs resume {data['run']}" in fetched.out
    assert (resumed["state"], resumed["parked"]) == ("completed", 0)
    assert (before.calls, after.calls, after.requests - before.requests) == (1, 1, 0)


def test_a_batch_that_takes_too_long_exits_4_and_goes_on_without_us(
    shell: Shell, slow_batches: ForkedRehearsal
) -> None:
    shell.use(slow_batches)
    result = shell.muster("ask", ANTHROPIC, "hello", *BATCH, "--deadline", "0.3", "--json")
    run, error = shell.run("last"), result.error()
    assert (result.code, error["code"]) == (4, "batch_overdue")
    assert any(f"muster runs resume {run['id']}" in way for way in error["suggestions"])
    assert any(f"muster batch fetch {run['batches'][0]['id']}" in way for way in error["suggestions"])
    assert (run["state"], run["ended_reason"], run["driver"]) == ("waiting", "batch_overdue", None)
    assert shell.muster("runs", "resume", run["id"], "--poll-interval", "0.05").code == 0
    assert slow_batches.audit().calls == 1


def test_a_scripted_agent_is_asked_live_and_says_so(shell: Shell) -> None:
    result = shell.muster("ask", "sim/echo", "hello", "--dispatch", "batch", "--detach")
    assert (result.code, result.out) == (0, "hello\n")
    assert "called live" in result.err
    assert shell.run("last")["batches"] == []


def test_a_call_that_fails_in_every_batch_is_sent_live_if_told_so(shell: Shell) -> None:
    faults = {"script": [{"op": "member", "fault": "expired", "times": "always"}]}
    with ForkedRehearsal(faults=faults) as rehearsal:
        shell.use(rehearsal)
        failed = shell.muster("ask", ANTHROPIC, "hello", *BATCH)
        live = shell.muster("ask", ANTHROPIC, "hello", *BATCH, "--fallback", "live")
        audit = rehearsal.audit()
    assert failed.code == 4
    assert failed.err.count("trying again in another batch") == 2
    assert "attempt 3: " in failed.err  # and no other is promised
    assert (live.code, live.out) == (0, "hello\n")
    assert (audit.calls, len(audit.batches)) == (1, 6)


@pytest.mark.parametrize(
    "words",
    [
        ["--detach"],
        ["--detach", "--dispatch", "live"],
        ["--dispatch", "pigeon"],
        ["--dispatch", "batch", "--fallback", "pray"],
        ["--dispatch", "batch", "--linger", "-1"],
        ["--dispatch", "batch", "--linger", "nan"],
        ["--dispatch", "batch", "--deadline", "-1"],
        ["--dispatch", "batch", "--deadline", "0"],
        ["--dispatch", "batch", "--deadline", "inf"],
        ["--dispatch", "batch", "--poll-interval", "-1"],
        ["--dispatch", "batch", "--poll-interval", "0"],
        ["--dispatch", "batch", "--max-parked", "0"],
        ["--dispatch", "batch", "--max-parked", "many"],
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_exits_2_and_stores_nothing(shell: Shell, words: list[str]) -> None:
    shell.variables["ANTHROPIC_API_KEY"] = "any"
    result = shell.muster("ask", ANTHROPIC, "hello", *words, "--json")
    assert result.code == 2
    assert any(word.strip("-") in result.error()["message"] for word in words)
    assert shell.muster("runs", "list", "--json").data() == []


def test_an_agent_without_a_batch_price_exits_3_and_stores_nothing(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    refused = shell.muster("ask", "anthropic/no-such-model", "hello", *BATCH)
    assert refused.code == 3
    assert "no batch price" in refused.err
    assert shell.muster("runs", "list", "--json").data() == []
    assert shell.muster("ask", "anthropic/no-such-model", "hello", *BATCH, "--allow-unpriced").code == 0


def test_a_key_that_is_not_set_exits_3_before_anything_is_stored(shell: Shell) -> None:
    result = shell.muster("ask", ANTHROPIC, "hello", "--dispatch", "batch", "--detach")
    assert result.code == 3
    assert "ANTHROPIC_API_KEY" in result.err
    assert shell.muster("batch", "list", "--json").data() == []


def test_a_budget_too_small_for_the_batch_exits_1_before_anything_is_sent(
    shell: Shell, rehearsal: ForkedRehearsal
) -> None:
    shell.use(rehearsal)
    result = shell.muster("ask", ANTHROPIC, "hello", *BATCH, "--budget", "0.000001", "--json")
    assert (result.code, result.error()["code"]) == (1, "budget")
    assert rehearsal.audit().requests == 0

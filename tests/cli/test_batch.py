"""`muster batch list | show | stats`: what is stored of batches is found, shown and summed up."""

import json

import pytest

from tests.rehearsal import ForkedRehearsal

from .shell import Shell

ANTHROPIC, OPENAI = "anthropic/claude-haiku-5-5", "openai/gpt-5-mini"


def test_list_gives_the_newest_first_and_can_be_limited(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    ids = [shell.ask_in_batch(agent, detach=False)["batches"][0]["id"] for agent in (ANTHROPIC, OPENAI)]
    listed = shell.muster("batch", "list", "--json").data()
    assert [batch["id"] for batch in listed] == ids[::-1]
    assert [batch["provider"] for batch in listed] == ["openai", "anthropic"]
    assert len(shell.muster("batch", "list", "--limit", "1", "--json").data()) == 1
    assert shell.muster("batch", "list", "--state", "running", "--json").data() == []
    shown = shell.muster("batch", "list").out
    assert all(words in shown for words in (*ids, "collected", "anthropic", "1/1"))


def test_an_empty_list_is_an_answer(shell: Shell) -> None:
    result = shell.muster("batch", "list")
    assert (result.code, result.out) == (0, "")
    assert "no batches yet" in result.err


def test_a_state_that_there_is_not_exits_2(shell: Shell) -> None:
    result = shell.muster("batch", "list", "--state", "happy", "--json")
    assert (result.code, result.envelope()["command"]) == (2, "batch list")


def test_show_has_everything_about_a_batch(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    asked = shell.ask_in_batch(OPENAI, detach=False)
    data = shell.muster("batch", "show", "last", "--json").data()
    assert data["members"] == {
        "succeeded": 1, "errored": 0, "canceled": 0, "expired": 0, "uncertain": 0, "waiting": 0,
    }  # fmt: skip
    assert data["runs"] == [{"run": asked["run"], "calls": 1}]
    assert data["agents"] == {OPENAI: "gpt-5-mini"}
    assert (data["reserved_usd"], data["cost_usd"], data["live_usd"]) == (0, asked["batch_usd"], asked["live_usd"])
    assert data["saving_usd"] == pytest.approx(data["live_usd"] - data["cost_usd"])
    assert data["created_at"] <= data["submitted_at"] <= data["ended_at"] <= data["collected_at"]
    shown = shell.muster("batch", "show", "last").out
    for words in (data["id"], data["provider_id"], data["input_file"], "1 succeeded", "live would have", asked["run"]):
        assert words in shown


def test_show_tells_what_is_reserved_and_how_to_go_on_while_it_runs(
    shell: Shell, endless_batches: ForkedRehearsal
) -> None:
    shell.use(endless_batches)
    (batch,) = shell.ask_in_batch(ANTHROPIC)["batches"]
    data = shell.muster("batch", "show", batch["id"], "--json").data()
    shown = shell.muster("batch", "show", batch["id"]).out
    assert (data["state"], data["provider_state"], data["provider_done"]) == ("running", "in_progress", None)
    assert data["reserved_usd"] > 0
    assert all(f"muster batch {verb} {batch['id']}" in shown for verb in ("watch", "fetch", "cancel"))


def test_lines_are_the_providers_own_and_can_be_redirected(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    (batch,) = shell.ask_in_batch(ANTHROPIC, detach=False)["batches"]
    result = shell.muster("batch", "show", "last", "--lines")
    (line,) = [json.loads(line) for line in result.out.splitlines()]
    assert batch["id"] in line["custom_id"]
    assert line["result"]["type"] == "succeeded"
    assert shell.muster("batch", "show", "last", "--lines", "--json").code == 2


def test_a_batch_is_found_by_our_id_its_beginning_the_providers_id_and_last(
    shell: Shell, rehearsal: ForkedRehearsal
) -> None:
    shell.use(rehearsal)
    (batch,) = shell.ask_in_batch(ANTHROPIC, detach=False)["batches"]
    for reference in (batch["id"], batch["id"][:12], batch["provider_id"], "last"):
        assert shell.muster("batch", "show", reference, "--json").data()["id"] == batch["id"]


def test_an_ambiguous_beginning_exits_2(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    for _ in range(2):
        shell.ask_in_batch(ANTHROPIC, detach=False)
    result = shell.muster("batch", "show", "b", "--json")
    assert (result.code, result.error()["code"]) == (2, "bad_argument")


@pytest.mark.parametrize("verb", ["show", "watch", "fetch", "cancel"])
def test_a_batch_that_there_is_not_exits_5(shell: Shell, verb: str) -> None:
    result = shell.muster("batch", verb, "nothing-like-it", "--json")
    assert (result.code, result.error()["code"]) == (5, "not_found")
    assert result.envelope()["command"] == f"batch {verb}"
    assert shell.muster("batch", verb, "last").code == 5


def test_stats_sum_up_time_outcomes_and_money(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    asked = [shell.ask_in_batch(agent, detach=False) for agent in (ANTHROPIC, OPENAI)]
    data = shell.muster("batch", "stats", "--since", "1h", "--json").data()
    assert (data["batches"], data["requests"], data["succeeded"], data["under_way"]) == (2, 2, 2, 0)
    assert (data["success_rate"], data["error_rate"], data["expiry_rate"]) == (1, 0, 0)
    assert set(data["completion_seconds"]) == {"count", "mean", "p50", "p95", "p99"}
    assert data["cost_usd"] == pytest.approx(sum(one["batch_usd"] for one in asked))
    assert data["saving_usd"] == pytest.approx(data["live_usd"] - data["cost_usd"])
    shown = shell.muster("batch", "stats").out
    assert all(words in shown for words in ("p50", "p95", "p99", "100% succeeded", "saved"))


def test_stats_of_a_window_without_batches_say_so(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    assert "no batches" in shell.muster("batch", "stats").out
    shell.use(rehearsal)
    shell.ask_in_batch(ANTHROPIC, detach=False)
    result = shell.muster("batch", "stats", "--since", "2999-01-01")
    assert (result.code, "no batches since 2999-01-01" in result.out) == (0, True)
    data = shell.muster("batch", "stats", "--since", "2999-01-01", "--json").data()
    assert (data["batches"], data["cost_usd"], data["success_rate"], data["completion_seconds"]) == (0, 0, None, None)


def test_a_window_that_is_none_exits_2(shell: Shell) -> None:
    assert shell.muster("batch", "stats", "--since", "a while").code == 2

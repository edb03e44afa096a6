"""`muster runs`: what is stored is found, shown, moved and forgotten."""

import json

import pytest

from .shell import Shell

PROMISED = {
    "id", "name", "workload", "state", "ended_reason", "budget_usd", "spent_usd", "uncertain_usd",
    "calls", "batches", "started_at", "ended_at",
}  # fmt: skip


def test_list_gives_the_newest_first_and_can_be_limited(shell: Shell) -> None:
    for name in ("first", "second", "third"):
        shell.muster("ask", "sim/echo", "hello", "--name", name)
    shell.muster("ask", "sim/fail", "hello", "--name", "broken")
    names = [run["name"] for run in shell.muster("runs", "list", "--json").data()]
    assert names == ["broken", "third", "second", "first"]
    assert len(shell.muster("runs", "list", "--limit", "2", "--json").data()) == 2
    failed = shell.muster("runs", "list", "--state", "failed", "--json").data()
    assert [run["name"] for run in failed] == ["broken"]
    for asked, found in (
        (("--agent", "sim/fail"), ["broken"]),
        (("--agent", "sim/echo", "--since", "1h", "--limit", "1"), ["third"]),
        (("--until", "1h"), []),
        (("--started-by", "nobody"), []),
    ):
        assert [run["name"] for run in shell.muster("runs", "list", *asked, "--json").data()] == found
    assert "no runs match" in shell.muster("runs", "list", "--agent", "sim/slow").err
    cut, whole = (shell.muster("runs", "list", "--limit", limit) for limit in ("3", "4"))
    assert ("newest runs; --limit N shows more" in cut.err, "--limit" in whole.err) == (True, False)
    told = [shell.muster("runs", "list", "--limit", limit, "--json").envelope() for limit in ("3", "4")]
    assert [(len(one["data"]), one["more"]) for one in told] == [(3, True), (4, False)]
    shown = shell.muster("runs", "list").out
    assert "third" in shown
    assert "completed" in shown


def test_the_list_says_which_runs_were_continued(shell: Shell) -> None:
    shell.muster("ask", "sim/fail", "hello")
    (failed,) = shell.muster("runs", "list", "--json").data()
    shell.muster("runs", "resume", failed["id"])
    again, before = shell.muster("runs", "list", "--json").data()
    assert (before["id"], before["continued_by"], again["continued_by"]) == (failed["id"], again["id"], None)
    shown = " ".join(shell.muster("runs", "list").out.split())
    assert shown.count("continued as") == 1
    assert again["id"] in shown.split("continued as")[1]


def test_an_empty_list_is_an_answer(shell: Shell) -> None:
    result = shell.muster("runs", "list")
    assert (result.code, result.out) == (0, "")
    assert "no runs yet" in result.err


def test_a_state_that_there_is_not_exits_2(shell: Shell) -> None:
    result = shell.muster("runs", "list", "--state", "happy", "--json")
    assert (result.code, result.envelope()["command"]) == (2, "runs list")


def test_show_has_what_is_promised(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "hello", "--budget", "2.50", "--name", "mine")
    data = shell.run("last")
    assert set(data) >= PROMISED
    assert data["calls"].items() >= {"total": 1, "done": 1, "failed": 0, "uncertain": 0}.items()
    assert (data["state"], data["budget_usd"], data["batches"]) == ("completed", 2.5, [])
    assert data["started_at"].endswith("+00:00")
    assert shell.run("mine")["id"] == shell.run(data["id"][:12])["id"] == data["id"]


def test_show_draws_the_run_its_calls_and_its_events(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "[red]hello", "--name", "mine")
    result = shell.muster("runs", "show", "mine", "--calls", "--events")
    for words in ("mine", "completed", "$0.00  (no budget)", "1 of 1 done", "[red]hello", "sim/echo", "run.completed"):
        assert words in result.out
    calls = shell.muster("runs", "show", "mine", "--calls", "--json").data()
    assert [call["key"] for call in calls["call_list"]] == ["ask"]
    assert (calls["calls_left_out"], calls["uncertain_attempts"]) == (0, [])


def test_show_tells_what_went_wrong_and_how_to_go_on(shell: Shell) -> None:
    shell.declare_workloads()
    run = shell.submit("breaks", {})
    assert shell.muster("worker", "--until-idle").code == 0
    shown = shell.muster("runs", "show", run).out
    assert "this workload breaks" in shown
    assert f"muster runs resume {run}" in shown


def test_only_the_first_calls_are_listed_and_the_rest_counted(shell: Shell) -> None:
    shell.declare_workloads()
    run = shell.submit("triage", {"agent": "sim/echo", "tickets": [f"ticket {i}" for i in range(230)]})
    shell.muster("worker", "--until-idle", "--quiet")
    data = shell.muster("runs", "show", run, "--calls", "--json").data()
    assert (len(data["call_list"]), data["calls_left_out"]) == (200, 30)
    assert "30 more calls" in shell.muster("runs", "show", run, "--calls").out


@pytest.mark.parametrize("verb", ["show", "watch", "cancel", "resume", "replay", "delete"])
def test_a_run_that_there_is_not_exits_5(shell: Shell, verb: str) -> None:
    result = shell.muster("runs", verb, "nothing-like-it", "--json")
    assert (result.code, result.error()["code"]) == (5, "not_found")
    assert result.envelope()["command"] == f"runs {verb}"


def test_last_of_an_empty_store_exits_5(shell: Shell) -> None:
    assert shell.muster("runs", "show", "last").code == 5


def test_an_ambiguous_beginning_exits_2(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "one")
    shell.muster("ask", "sim/echo", "two")
    prefix = shell.run("last")["id"][:3]
    assert shell.muster("runs", "show", prefix).code == 2


def test_watch_gives_the_events_of_a_run_that_is_over(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "hello")
    lines = shell.muster("runs", "watch", "last", "--json").out.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["kind"] == "run.completed"
    assert "run.completed" in shell.muster("runs", "watch", "last").out


def test_a_queued_run_is_canceled_at_once_also_a_second_time_and_a_completed_one_exits_4(shell: Shell) -> None:
    run = shell.submit("ask", {"agent": "sim/echo", "prompt": "hello"})
    assert shell.muster("runs", "cancel", run, "--json").data()["state"] == "canceled"
    assert shell.muster("runs", "cancel", run).code == 0
    shell.muster("ask", "sim/echo", "hello")
    assert shell.muster("runs", "cancel", "last").code == 4


def test_export_and_import_carry_a_run_to_another_store(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "hello", "--name", "traveller")
    written = shell.muster("runs", "export", "traveller", "-o", "run.jsonl.gz", "--json").data()
    assert written["entries"] == 1
    assert shell.muster("runs", "import", "run.jsonl.gz").code == 4  # it is here already
    other = ("--home", "other")
    assert shell.muster("runs", "import", "run.jsonl.gz", *other).code == 0
    replayed = shell.muster("runs", "replay", "traveller", "--json", *other).data()
    assert (replayed["state"], replayed["result"]["text"]) == ("completed", "hello")
    assert replayed["calls"]["reused"] == 1


def test_a_file_that_is_missing_exits_5_and_a_damaged_one_2(shell: Shell) -> None:
    assert shell.muster("runs", "import", "nowhere.jsonl").code == 5
    shell.write("damaged.jsonl", '{"muster": 1, "run": "x"}\n{"oops')
    result = shell.muster("runs", "import", "damaged.jsonl")
    assert result.code == 2
    assert "damaged.jsonl" in result.err


def test_an_export_makes_its_folder_and_exits_2_where_it_cannot(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "hello")
    assert shell.muster("runs", "export", "last", "-o", "no/such/folder/file").code == 0
    assert (shell.folder / "no/such/folder/file").is_file()
    refused = shell.muster("runs", "export", "last", "-o", "no/such/folder/file/below")
    assert refused.code == 2
    assert "no/such/folder/file/below cannot be written" in refused.err


def test_delete_forgets_runs(shell: Shell) -> None:
    for name in ("a", "b", "c"):
        shell.muster("ask", "sim/echo", "hello", "--name", name)
    assert shell.muster("runs", "delete", "a", "b", "a").code == 0
    assert [run["name"] for run in shell.muster("runs", "list", "--json").data()] == ["c"]


def test_delete_touches_nothing_when_one_of_them_is_not_there(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "hello", "--name", "a")
    assert shell.muster("runs", "delete", "a", "nothing-like-it").code == 5
    assert len(shell.muster("runs", "list", "--json").data()) == 1


@pytest.mark.parametrize(("agent", "code"), [("echo", 0), ("empty", 1)])
def test_repeating_a_question_ends_as_asking_it_did(shell: Shell, agent: str, code: int) -> None:
    asked = shell.muster("ask", f"sim/{agent}", "hello", "--name", "mine")
    assert asked.code == code
    for again in (("runs", "replay", "mine"), ("runs", "fork", "mine", "--from", "ask")):
        assert shell.muster(*again).code == code
        told = shell.muster(*again, "--json")
        assert (told.code, told.envelope()["ok"]) == (code, code == 0)

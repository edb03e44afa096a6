"""Resume, fork and replay: what is known is never paid again."""

import os
import signal
import sqlite3
from contextlib import closing

from tests.rehearsal import ForkedRehearsal

from .shell import Shell, line_with

MODEL = "anthropic/claude-haiku-5-5"

# An agent whose answer waits until it is told to come.
WAITS = """
[agents.waits]
kind = "program"
mode = "plain"
command = ["sh", "-c", "echo begun >> begun; until [ -e go ]; do sleep 0.05; done; cat"]
"""


def tickets(number: int) -> list[str]:
    return [f"ticket {i}" for i in range(number)]


def test_a_queued_run_is_driven_by_resume(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    shell.declare_workloads()
    run = shell.submit("triage", {"agent": MODEL, "tickets": tickets(5)})
    result = shell.muster("runs", "resume", run)
    assert result.code == 0
    assert "0 replies reused, 0 calls were uncertain ($0.00)" in result.err
    assert f"run {run}: 5 of 5 calls done" in result.err
    assert f"run {run} completed" in result.out
    assert rehearsal.audit().calls == 5


def test_a_run_that_is_completed_is_the_answer(shell: Shell) -> None:
    asked = shell.muster("ask", "sim/echo", "hello", "--json").data()["run"]
    result = shell.muster("runs", "resume", "last", "--json")
    assert (result.code, result.data()["id"], result.data()["state"]) == (0, asked, "completed")


def test_two_processes_that_resume_a_failed_run_pay_for_the_rest_once(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    shell.declare_workloads()
    run = shell.submit("triage", {"agent": MODEL, "tickets": tickets(40)}, budget_usd="0.0012", concurrency=1)
    shell.muster("runs", "resume", run)
    assert shell.run(run)["state"] == "failed"
    more = ("runs", "resume", run, "--budget", "5", "--json")
    with shell.start(*more) as one, shell.start(*more) as other:
        ends = [process.wait() for process in (one, other)]
    assert sorted(ends) in ([0, 0], [0, 4])  # 4: told which process executes it
    third = shell.muster("runs", "resume", run, "--json")
    assert (third.code, third.data()["state"]) == (0, "completed")
    assert shell.run(run)["continued_by"] == third.data()["id"]
    assert [one["id"] for one in shell.muster("runs", "list", "--json").data()] == [third.data()["id"], run]
    audit = rehearsal.audit()
    assert (audit.calls, set(audit.by_digest.values())) == (40, {1})


def test_resuming_a_run_that_failed_makes_a_new_one_and_tells_its_id(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    shell.declare_workloads()
    spec = {"agent": MODEL, "tickets": tickets(40)}
    run = shell.submit("triage", spec, budget_usd="0.0012", name="tight", concurrency=1)
    failed = shell.muster("runs", "resume", run, "--json")
    assert (failed.code, failed.error()["code"]) == (1, "budget")
    done = shell.run(run)["calls"]["done"]
    assert 0 < done < 40
    result = shell.muster("runs", "resume", "tight", "--budget", "5")
    new = shell.run("tight")
    assert result.code == 0
    assert f"continued as run {new['id']}" in result.err
    assert f"{done} replies reused" in result.err
    assert (new["origin"]["run"], new["calls"]["reused"], new["budget_usd"]) == (run, done, 5)
    assert rehearsal.audit().calls == 40


def test_a_budget_holds_over_all_resumes_of_a_run_and_is_shown(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    shell.declare_workloads()
    run = shell.submit("triage", {"agent": MODEL, "tickets": tickets(40)}, budget_usd="0.0012", concurrency=1)
    shell.muster("runs", "resume", run)
    paid = rehearsal.audit().calls
    again = shell.muster("runs", "resume", run)
    assert (again.code, rehearsal.audit().calls) == (1, paid)
    first, second = shell.run(run), shell.run("last")
    assert "of the budget of $0.0012 is spent" in again.err
    assert second["spent_usd"] == 0
    assert second["lineage"]["spent_usd"] == first["spent_usd"] == first["lineage"]["spent_usd"] > 0
    refused = shell.muster("runs", "resume", run, "--budget", "0.000001", "--json")
    assert (refused.code, refused.error()["code"]) == (1, "budget")
    assert "of its budget of $0.000001 is already spent" in refused.error()["message"]
    assert shell.run("last")["id"] == second["id"]
    shown = shell.muster("runs", "show", "last").out
    assert "of $0.001200 in all, $0.00 of it by this run" in shown, shown
    forked = shell.muster("runs", "fork", run, "--from", "ticket/0")
    assert "it is a new run with a budget of its own ($0.0012)" in forked.err
    assert (forked.code, rehearsal.audit().calls) == (1, 2 * paid)


def test_a_new_budget_must_be_one(shell: Shell) -> None:
    run = shell.submit("ask", {"agent": "sim/echo", "prompt": "hello"})
    assert shell.muster("runs", "resume", run, "--budget", "0").code == 2
    assert shell.muster("runs", "resume", run, "--budget", "1", "--json").data()["budget_usd"] == 1


def test_a_workload_that_is_not_known_here_exits_3(shell: Shell) -> None:
    shell.declare_workloads()
    run = shell.submit("triage", {"agent": "sim/echo", "tickets": tickets(2)})
    (shell.folder / "muster.toml").unlink()
    result = shell.muster("runs", "resume", run)
    assert result.code == 3
    assert "[workloads] import" in result.err
    assert shell.run(run)["state"] == "queued"


def test_detached_it_waits_for_a_worker(shell: Shell) -> None:
    shell.declare_workloads()
    run = shell.submit("breaks", {})
    assert shell.muster("worker", "--until-idle").code == 0
    result = shell.muster("runs", "resume", run, "--detach")
    new = shell.run("last")
    assert result.code == 0
    assert f"run {new['id']} is queued; no worker is alive; start one with: muster worker" in result.out
    assert new["state"] == "queued"
    assert f"run {new['id']} failed" in shell.muster("worker", "--until-idle").out


def test_a_run_of_a_killed_process_is_resumed_and_nothing_known_is_paid_again(shell: Shell) -> None:
    shell.declare_workloads()
    with ForkedRehearsal(latency_ms=2000) as rehearsal:
        shell.use(rehearsal)
        run = shell.submit("triage", {"agent": MODEL, "tickets": tickets(12)}, concurrency=4)
        with shell.start("runs", "resume", run) as process:
            line_with(process.stderr, "4 on the wire")
            process.kill()
        uncertain = shell.run(run)["calls"]["uncertain"]
        assert shell.run(run)["state"] == "interrupted"
        shown = shell.muster("runs", "show", run, "--calls").out
        assert "outcome unknown" in shown
        result = shell.muster("runs", "resume", run)
        paid = rehearsal.audit()
    assert result.code == 0
    assert f"{uncertain} calls were uncertain" in result.err
    assert 1 <= uncertain <= 5  # on the wire, and one that was ready
    assert paid.calls <= 12 + uncertain


def test_two_processes_do_not_drive_one_run(shell: Shell) -> None:
    shell.declare_workloads()
    with (shell.folder / "muster.toml").open("a", encoding="utf-8") as settings:
        settings.write(WAITS)
    run = shell.submit("triage", {"agent": "waits", "tickets": tickets(6)}, concurrency=2)
    with shell.start("runs", "resume", run) as first:
        line_with(first.stderr, "on the wire")
        second = shell.muster("runs", "resume", run)
        deleted = shell.muster("runs", "delete", run)
        exported = shell.muster("runs", "export", run, "-o", "file")
        shell.write("go", "")
        assert first.wait() == 0
    assert second.code == deleted.code == exported.code == 4
    assert f"process {first.pid} on" in second.err
    assert (shell.folder / "begun").read_text().split() == ["begun"] * 6


def test_watch_follows_a_submitted_run_from_one_process_that_dies_to_the_next(shell: Shell) -> None:
    shell.declare_workloads()
    with ForkedRehearsal(faults={"script": [{"fault": "timeout", "nth": 5, "times": "always"}]}) as rehearsal:
        shell.use(rehearsal)
        run = shell.submit("triage", {"agent": MODEL, "tickets": tickets(8)}, concurrency=2)
        with shell.start("runs", "resume", run) as driver, shell.start("runs", "watch", run) as watcher:
            line_with(watcher.stdout, "call.done")
            driver.kill()
            assert "run.interrupted" in line_with(watcher.stdout, "run.interrupted")
            rehearsal.faults({})
            assert shell.muster("worker", "--until-idle").code == 0
            assert watcher.wait() == 0


def test_cancel_reaches_the_process_that_drives(shell: Shell) -> None:
    shell.declare_workloads()
    with ForkedRehearsal(faults={"script": [{"fault": "timeout", "nth": 5, "times": "always"}]}) as rehearsal:
        shell.use(rehearsal)
        run = shell.submit("triage", {"agent": MODEL, "tickets": tickets(8)}, concurrency=2)
        with shell.start("runs", "resume", run) as driver:
            line_with(driver.stderr, "on the wire")
            canceled = shell.muster("runs", "cancel", run, "--json")
            assert driver.wait() == 1
    assert canceled.data()["state"] == "canceled"


def test_watch_ends_on_a_signal_with_4(shell: Shell) -> None:
    run = shell.submit("ask", {"agent": "sim/echo", "prompt": "hello"})
    with shell.start("runs", "watch", run) as watcher:
        line_with(watcher.stdout, "run.created")
        os.kill(watcher.pid, signal.SIGTERM)
        assert watcher.wait() == 4


def test_fork_asks_anew_from_a_key_on(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    shell.declare_workloads()
    run = shell.submit("triage", {"agent": MODEL, "tickets": tickets(6)}, concurrency=1)
    shell.muster("runs", "resume", run)
    made = shell.muster("runs", "fork", run, "--from", "ticket/4", "--json").data()
    assert made["id"] != run
    assert made["calls"]["reused"] == 4
    assert rehearsal.audit().calls == 8
    missing = shell.muster("runs", "fork", run, "--from", "ticket/99")
    assert missing.code == 5
    assert shell.muster("runs", "fork", run).code == 2


def test_replay_asks_nobody(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    shell.declare_workloads()
    run = shell.submit("triage", {"agent": MODEL, "tickets": tickets(6)})
    first = shell.muster("runs", "resume", run, "--json").data()
    before = rehearsal.audit().requests
    again = shell.muster("runs", "replay", run, "--json").data()
    assert (again["result"], again["spent_usd"]) == (first["result"], 0)
    assert rehearsal.audit().requests == before


def test_a_replay_that_misses_something_exits_1_and_names_it(shell: Shell, rehearsal: ForkedRehearsal) -> None:
    shell.use(rehearsal)
    shell.declare_workloads()
    run = shell.submit("triage", {"agent": MODEL, "tickets": tickets(40)}, budget_usd="0.0012", concurrency=1)
    assert shell.muster("runs", "resume", run).code == 1
    result = shell.muster("runs", "replay", run, "--json")
    assert (result.code, result.error()["code"]) == (1, "replay_miss")
    assert "ticket/" in result.error()["message"]


def test_options_about_batches_are_refused_for_a_run_whose_calls_are_all_live(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "hello")
    for words in (("resume", "last"), ("fork", "last", "--from", "answer")):
        refused = shell.muster("runs", *words, "--linger", "5")
        assert (refused.code, refused.out) == (2, "")
        assert refused.err == "error: --linger applies to batches, and every call of this run is live\n  leave it out\n"
    assert len(shell.muster("runs", "list", "--json").data()) == 1


def test_a_workload_of_the_users_own_may_use_batches_at_any_time(shell: Shell) -> None:
    shell.declare_workloads()
    run = shell.submit("triage", {"agent": "sim/echo", "tickets": ["a"]})
    assert shell.muster("runs", "resume", run, "--linger", "5").code == 0


NESTED = """
import muster

@muster.workload("top")
async def top(ctx, spec):
    return await ctx.child("middle", "middle", None)

@muster.workload("middle")
async def middle(ctx, spec):
    return await ctx.child("bottom", "bottom", None)

@muster.workload("bottom")
async def bottom(ctx, spec):
    raise ValueError("this workload breaks")
"""


def test_a_run_below_others_is_continued_by_the_one_at_the_top(shell: Shell) -> None:
    shell.write("nested.py", NESTED)
    shell.write("muster.toml", '[workloads]\nimport = ["nested"]\n')
    top = shell.submit("top", None)
    shell.muster("runs", "resume", top)
    with closing(sqlite3.connect(shell.folder / ".muster" / "muster.db")) as database:
        ((bottom,),) = database.execute("SELECT id FROM runs WHERE workload = 'bottom'").fetchall()
    assert f"muster runs resume {top} " in shell.muster("runs", "show", bottom).out
    refused = shell.muster("runs", "resume", bottom, "--json").error()
    assert refused["suggestions"] == [f"muster runs resume {top}"]

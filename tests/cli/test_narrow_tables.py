"""Tables in terminals of several widths: columns are left out before an id, a name or an amount is cut."""

import asyncio
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from muster.app.base.costs import Load
from muster.app.pool.monitor import PoolSnapshot
from muster.app.pool.status import PoolStatus, Slot
from muster.app.pool.task_queries import Task
from muster.app.pool.values import AssignedSlot, SlotProfile, TaskSpec
from muster.app.verify.plan import PlannedAgent, VerifyPlan
from muster.app.views.errors import failed_tasks, task_error, undone_tasks
from muster.cli.batches.display import batches_table
from muster.cli.pool.monitor import drawn
from muster.cli.pool.tables import slots_table, task_notes, tasks_table
from muster.cli.runs.display import calls_table, runs_table
from muster.cli.terminal.runs import run_cost
from muster.cli.verify.metrics import tell_metrics
from muster.cli.verify.plan import plan_table
from muster.cli.verify.table import tell_report
from muster.domain.batch import Batch, BatchEndpoint, BatchState
from muster.domain.call import Reply, Stop, Usage
from muster.domain.dispatch import Mode
from muster.domain.entry import Entry, EntryKind, EntryState
from muster.domain.ids import BatchId, RunId
from muster.domain.money import Microdollars
from muster.domain.run import BudgetedCost, CallCounts, Lease, Run, RunState, Spent
from muster.domain.task import TaskState
from muster.store.base import SlotRecord
from muster.verify.findings.finding import Counts
from muster.verify.findings.journal import Ending
from muster.verify.reports.metrics import AgentMetrics, VerifyMetrics
from tests.verify.reports.house import Story, agent, checker, model, summary, wave

WIDTHS = [60, 72, 80, 100, 160]
LONG = "architecture-reviewer"
COST, MORE = Microdollars(1_613), Microdollars(20_000_123)  # "$0.001613" and "$20.000123"


def shown(table: RenderableType, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, markup=False, emoji=False).print(table)
    return out.getvalue()


def assert_whole(text: str, width: int, words: Sequence[str]) -> None:
    """Check that the words stand in it, each on one line, and that nothing is cut or runs out of the lines."""
    assert "…" not in text, text
    assert [word for word in words if word not in text] == [], text
    assert max(len(line) for line in text.splitlines()) <= width, text


def a_batch(number: int) -> Batch:
    return Batch(
        id=BatchId(f"b1m7hctg8e4j7kyk{number}"),
        endpoint=BatchEndpoint(kind="anthropic", base_url="http://127.0.0.1:1", account="a", variable="K"),
        state=BatchState.COLLECTED,
        requests=1200,
        bytes=10,
        tariffs={},
        nonce="n",
        created_at=1_000.0,
        cost=(COST, MORE)[number],
        live_cost=Microdollars(2 * (COST, MORE)[number]),
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_a_list_of_batches_keeps_ids_and_costs(width: int) -> None:
    text = shown(batches_table([a_batch(0), a_batch(1)], 1_040.0, width), width)
    assert_whole(text, width, ("b1m7hctg8e4j7kyk0", "b1m7hctg8e4j7kyk1", "collected", "$0.001613", "$20.000123"))
    assert ("saved" in text, "age" in text) == (width >= 80, width >= 72), text


def a_run(name: str | None, uncertain: int = 0) -> Run:
    return Run(
        id=RunId("1m7hctjgexvzn278"),
        workload="suite",
        spec={},
        state=RunState.INTERRUPTED,
        created_at=1_000.0,
        name=name,
        lease=Lease(epoch=1),
        calls=CallCounts(total=1200, done=1100),
        spent=(spent := Spent(billed=COST, uncertain=Microdollars(uncertain))),
        total=spent,
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("uncertain", [0, COST])
def test_a_list_of_runs_keeps_ids_and_money_and_folds_long_names(width: int, uncertain: int) -> None:
    text = shown(runs_table([a_run(None), a_run("nightly-of-the-long-name", uncertain)], 1_040.0, width), width)
    assert_whole(text, width, ("1m7hctjgexvzn278", "interrupted", "$0.001613", "cost"))
    assert ("uncertain" in text, text.count("$0.00")) == (bool(uncertain), 3 if uncertain else 2), text
    found = re.sub(r"1m7hctjgexvzn278|interrupted|\$\S+|1100/1200|40 s|\s", "", text)
    assert found.endswith("nightly-of-the-long-name"), text


def test_short_names_leave_room_for_everything() -> None:
    text = shown(runs_table([a_run(None)], 1_040.0, 72), 72)
    assert [word for word in ("suite", "1100/1200", "40 s") if word not in text] == [], text


def test_a_run_whose_calls_are_all_of_other_runs_counts_none() -> None:
    text = shown(runs_table([replace(a_run("rows"), calls=CallCounts())], 1_040.0, 160), 160)
    assert "0/0" not in text


def test_a_run_that_continues_another_shows_what_the_whole_work_has_cost_with_all_lanes() -> None:
    own, whole = (
        Spent(imputed=Microdollars(60_000)),
        Spent(imputed=Microdollars(60_000), uncertain=Microdollars(500_000)),
    )
    run = replace(a_run("again"), spent=own, total=whole, cap=Microdollars(1_000_000))
    text = shown(runs_table([run], 1_040.0, 160), 160)
    assert re.findall(r"\$\S+(?: in all)?", text) == ["$0.56 in all", "$1.00", "$0.06", "$0.50"], text
    assert [word for word in ("cost", "budget", "imputed", "uncertain") if word not in text] == [], text
    assert str(run.cost) == "$0.56 of $1.00 ($0.06 imputed, $0.50 uncertain)"
    assert run_cost(run) == f"{run.cost} in all, $0.06 ($0.06 imputed) of it by this run"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_calls_of_a_run_keep_their_costs_and_fold_long_keys(width: int) -> None:
    key = "case/explainer/term/rainbow/@openai/gpt-5-mini/1/1"
    reply = Reply(text="", stop=Stop.END, usage=Usage(), cost=COST, model="gpt-5-mini")
    entry = Entry(
        run=RunId("r1"), key=key, kind=EntryKind.CALL, state=EntryState.DONE, digest="", agent="openai/gpt", reply=reply
    )
    text = shown(calls_table([entry], width), width)
    assert_whole(text, width, ("$0.001613", "done"))
    assert ("agent" in text, "quality" in text) == (True, width >= 100), text


def a_plan() -> VerifyPlan:
    load = Load(calls=3, most_calls=6, tokens=25_000, least=COST, most=MORE)
    verifiers = [model("security-auditor"), checker("checker"), model(LONG, 2)]
    return VerifyPlan(
        files=1,
        bytes=10,
        redacted=0,
        left_out=(),
        parts=tuple(
            PlannedAgent(
                verifier=one, files=1, load=Load(calls=1, most_calls=1) if one.command else load, mode=Mode.BATCH
            )
            for one in verifiers
        ),
        unseen=(),
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_a_plan_of_a_verification_keeps_names_and_the_most_it_can_cost(width: int) -> None:
    text = shown(plan_table(a_plan(), width), width)
    assert_whole(text, width, ("security-auditor", "checker", LONG, "together", "$20.000123", "$40.000246", "at most"))
    assert "$0.001613" in text
    assert ("asks" in text) == (width >= 80), text


def a_story() -> Story:
    agents = [agent("security-auditor", cost=COST), agent(LONG, cost=MORE, score=9.5, coverage=80.0)]
    return Story(verifiers=[model("security-auditor"), model(LONG)], waves=[wave(1, *agents)])


@pytest.mark.parametrize("width", WIDTHS)
def test_the_report_of_a_verification_keeps_names_endings_and_costs(tmp_path: Path, width: int) -> None:
    out = io.StringIO()
    report = asyncio.run(summary(tmp_path, a_story()))
    tell_report(Console(file=out, width=width, highlight=False, markup=False, emoji=False), report, "mine", tmp_path)
    assert_whole(out.getvalue(), width, ("security-auditor", LONG, "✓ passed", "$0.001613", "$20.000123", "crit"))
    assert ("coverage" in out.getvalue()) == (width >= 100)


@pytest.mark.parametrize("width", WIDTHS)
def test_figures_over_verifications_keep_names_and_costs(width: int) -> None:
    out = io.StringIO()
    agents = tuple(
        AgentMetrics(agent=name, endings={Ending.PASSED: 12}, counts=Counts(high=3), cost=cost)
        for name, cost in (("security-auditor", COST), (LONG, MORE))
    )
    found = VerifyMetrics(since=1_000.0, cycles=12, agents=agents)
    tell_metrics(Console(file=out, width=width, highlight=False, markup=False, emoji=False), found)
    assert_whole(out.getvalue(), width, ("security-auditor", LONG, "100%", "$0.001613", "$20.000123"))


def a_task(number: int, state: RunState, **more: Any) -> Task:
    spent = Spent(billed=COST, uncertain=Microdollars(100_000 * number))
    run = replace(a_run(f"fix-{number}"), id=RunId(f"1m7hctjgexvzn27{number}"), workload="task", state=state)
    whole = replace(run, total=spent, cap=Microdollars(5_000_000), budgets=None)
    spec = TaskSpec(prompt="Rewrite the parser so that it reads every form of a date\nand test it. " * 3)
    slot = AssignedSlot(id="slot-1", name="reviewer-of-everything", agent="coder", folder="/project")
    saved = {"branch": f"muster/task-{run.id}", "changed": 12, "summary": "s", "other_branches": []}
    return Task(run=whole, spec=spec, slot=slot, saved=saved | more)


@pytest.mark.parametrize("width", [72, 80, 100, 160, 220])
def test_each_task_has_one_line_with_its_name_and_what_it_cost(width: int) -> None:
    tasks = [a_task(0, RunState.RUNNING), a_task(1, RunState.WAITING), a_task(2, RunState.CANCELED)]
    writing = {tasks[0].id: "Reading src/parser.py and everything that uses it, which takes a while"}
    text = shown(tasks_table(tasks, width, writing), width)
    words = [*(task.id for task in tasks), "fix-0", "fix-1", "fix-2", "$0.001613", "$0.101613", "pending_review"]
    assert [word for word in words if word not in text] == [], text
    assert len(text.strip().splitlines()) == 2 + len(tasks), text
    assert max(len(line) for line in text.splitlines()) <= width, text
    assert ("12 files" in text, "muster/task-" in text) == (width >= 100, width >= 160), text


def test_work_beside_the_branch_of_a_task_is_told_under_the_table() -> None:
    tasks = [
        a_task(0, RunState.COMPLETED),
        a_task(1, RunState.COMPLETED, other_branches=["muster/x-2"], summary="more"),
    ]
    assert task_notes(tasks) == ["task 1m7hctjgexvzn271 (fix-1): more"]


def a_slot(number: int) -> Slot:
    return Slot(
        profile=SlotProfile(id=f"slot-{number}", name=f"coder-{number}", role="coder"),
        record=SlotRecord(name=f"slot-{number}", place=number, completed=3),
        task=a_task(number, RunState.RUNNING),
        cost=BudgetedCost(spent=Spent(imputed=Microdollars(60_000), uncertain=Microdollars(1_000_000))),
    )


def test_slots_show_what_of_their_cost_is_imputed_or_uncertain() -> None:
    text = shown(slots_table([a_slot(1), a_slot(2)], 160), 160)
    assert re.findall(r"\$\S+", text) == ["$1.06", "$0.06", "$1.00"] * 2, text


@pytest.mark.parametrize(("height", "notes", "whole"), [(24, 10, False), (24, 0, True), (60, 10, True)])
def test_a_watched_pool_fits_into_the_terminal_with_its_slots(height: int, notes: int, whole: bool) -> None:
    aside = {"other_branches": ["muster/x-2"], "summary": "a long summary of what lies where " * 5}
    tasks = [a_task(number, RunState.COMPLETED, **(aside if number < notes else {})) for number in range(10)]
    slots = (a_slot(1), a_slot(2))
    counts = dict.fromkeys(TaskState, 0) | {TaskState.COMPLETED: 10}
    status = PoolStatus(slots=slots, tasks=counts, cost=BudgetedCost(), draining=False, driver=None)
    text = shown(drawn(PoolSnapshot(status=status, tasks=tuple(tasks), writing={}), 80, height), 80)
    assert len(text.splitlines()) <= height, text
    assert [word for word in ("coder-1", "coder-2", "fix-0", "fix-8") if word not in text] == [], text
    assert ("muster task list --limit N" in text) is not whole, text


def test_errors_about_tasks_name_them_and_count_in_words() -> None:
    failed = [a_task(number, RunState.FAILED) for number in range(2)]
    done = a_task(3, RunState.COMPLETED)
    first = failed_tasks([*failed, done]) or {}
    assert first["message"] == "2 of 3 tasks failed: 1m7hctjgexvzn270 (fix-0), 1m7hctjgexvzn271 (fix-1)"
    assert (failed_tasks(failed[:1]) or {})["message"] == "the only task failed: 1m7hctjgexvzn270 (fix-0)"
    assert (task_error(failed[0]) or {})["message"].startswith("task 1m7hctjgexvzn270 (fix-0) failed: ")
    waits = undone_tasks([a_task(4, RunState.QUEUED), done]) or {}
    assert waits["message"] == "1 of 2 tasks are not done: 1m7hctjgexvzn274 (fix-4)"

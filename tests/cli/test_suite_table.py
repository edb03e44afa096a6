"""What a suite run looks like in terminals of several widths, while it goes on, and while it waits for a batch."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from muster.cli.suites.table import tell_report
from muster.cli.terminal.table import Column, fitting
from muster.domain.case import Status
from muster.domain.run import RunState
from muster.store.sqlite.store import open_sqlite
from muster.suites.reports.run import open_suite_run
from muster.suites.reports.summary import summarize
from tests.suites.reports.suite_store import Story, a_case, a_result, fill

from .suite_home import NAMES, Home, a_run

LONG, SHORT = "anthropic/claude-haiku-5-5+terse-prompt", "openai/gpt-5-mini+long-prompt"


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.chdir(tmp_path)
    return Home(tmp_path, capsys)


def two_subjects() -> Story:
    """One subject that passes three of three and one that passes two."""
    results = [
        a_result(case, Status.PASSED if subject == LONG or number < 2 else Status.FAILED, subject=subject, seconds=1.5)
        for number, case in enumerate(NAMES[:3])
        for subject in (LONG, SHORT)
    ]
    cases = [a_case(case) for case in NAMES[:3]]
    return a_run("two1", cases=cases, results=results, spec={"path": ["s"], "agents": [LONG, SHORT]})


@pytest.mark.parametrize(
    ("columns", "there", "gone"),
    [
        (60, ("passed",), ("p50", "p95")),
        (80, ("passed", "95% interval", "cost"), ("p50", "p95")),
        (120, ("passed", "95% interval", "score", "p50", "p95", "cost"), ()),
    ],
)
async def test_narrow_tables_keep_the_names_of_subjects_and_leave_latencies_out_first(
    tmp_path: Path, columns: int, there: tuple[str, ...], gone: tuple[str, ...]
) -> None:
    table = await drawn(tmp_path, columns)
    head = next(line for line in table.splitlines() if "subject" in line)
    rows = [line for line in table.splitlines() if re.match(r" *\d\. ", line)]
    assert [name in row for name, row in zip((LONG, SHORT), rows, strict=True)] == [True, True], table
    assert [name for name in there if name not in head] == [], table
    assert [name for name in gone if name in head] == [], table
    assert max(len(line.rstrip()) for line in table.splitlines() if "muster report" not in line) <= columns


async def drawn(folder: Path, columns: int) -> str:
    """Return what a terminal of so many columns shows of two subjects."""
    store, out = open_sqlite(folder / "muster.db"), StringIO()
    try:
        report = await summarize(await open_suite_run(store, await fill(store, two_subjects())))
    finally:
        await store.maintenance.close()
    tell_report(Console(file=out, width=columns), report, "two1")
    return out.getvalue()


def test_overlapping_intervals_are_called_that_and_not_nearly_equal(home: Home) -> None:
    home.keep(two_subjects())
    shown = home.muster("report", "two1").out
    assert "≈" not in shown
    assert shown.count("intervals overlap") == 2  # under the name of the second, and in the caption
    markdown = home.muster("report", "two1", "--format", "markdown").out
    assert len(re.findall(r"% to \d+%, intervals overlap \|", markdown)) == 1


SUITE = """
schema_version: 1
skill_or_agent: s
cases:
  - id: s/one
    input: {messages: [{role: user, content: hello}]}
    expected: {output: [{kind: contains, value: hello}]}
  - id: s/two
    input: {messages: [{role: user, content: hello}]}
    expected: {output: [{kind: contains, value: hello}]}
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "2 of 2 cases done"),
        (("--epochs", "3"), "6 of 6 cases × epochs done"),
        (("--epochs", "3", "--agent", "sim/slow"), "12 of 12 cases × subjects × epochs done"),
    ],
)
def test_progress_counts_one_unit_and_names_it(home: Home, arguments: tuple[str, ...], words: str) -> None:
    (home.folder / "s.yaml").write_text(SUITE)
    found = home.muster("run", "s.yaml", "--agent", "sim/echo", *arguments)
    counted = re.findall(r"[\d,]+ of [\d,]+ [^,]*? done", found.err)
    assert counted[-1:] == [words], found.err
    assert f"done, {words.split()[0]} passed" in found.err  # of the same unit
    assert {one.split(maxsplit=3)[3] for one in counted} == {words.split(maxsplit=3)[3]}


def waiting() -> Story:
    return a_run("wait1", results=[a_result(case) for case in NAMES[:10]], state=RunState.WAITING)


def test_a_run_that_waits_for_a_batch_is_reported_as_waiting(home: Home) -> None:
    home.keep(waiting())
    shown = home.muster("report", "wait1")
    assert "The run is waiting for batches, and 20 cases with it. 20 of 30 results are still to come." in shown.out
    assert "skipped" not in shown.out
    data = json.loads(home.muster("report", "wait1", "--format", "json").out)
    assert data["counts"] == {"passed": 10, "waiting": 20}
    assert data["cases"][-1]["why"] == "the run waits for a batch"
    junit = home.muster("report", "wait1", "--format", "junit").out
    assert (junit.count('type="waiting"'), "<skipped" in junit) == (20, False)
    markdown = home.muster("report", "wait1", "--format", "markdown").out
    assert markdown.startswith("## ⏳ `wait1-name`")
    assert "waiting for batches" in markdown
    assert "❌" not in markdown
    listed = "".join(f"- `{case}` · `sim/echo`\n" for case in NAMES[10:])
    assert markdown.endswith(f"### 20 waiting for a batch\n\n{listed}")
    page = home.muster("report", "wait1", "--format", "html").out
    assert ('"waiting":20' in page, '"pending":true' in page) == (True, True)


def test_a_waiting_run_in_which_a_case_failed_is_headed_as_failed_and_lists_both(home: Home) -> None:
    results = [a_result(NAMES[0], Status.FAILED), *(a_result(case) for case in NAMES[1:29])]
    home.keep(a_run("wait2", results=results, state=RunState.WAITING))
    markdown = home.muster("report", "wait2", "--format", "markdown").out
    assert markdown.startswith("## ❌ `wait2-name`")
    assert "### 1 did not pass\n" in markdown
    assert markdown.endswith(f"### 1 waiting for a batch\n\n- `{NAMES[29]}` · `sim/echo`\n")


def test_a_run_that_stopped_is_reported_with_what_is_missing_and_not_as_waiting(home: Home) -> None:
    home.keep(a_run("stopped1", results=[a_result(case) for case in NAMES[:10]], state=RunState.INTERRUPTED))
    shown = home.muster("report", "stopped1").out
    assert "The run was interrupted. 20 of 30 results are missing." in shown
    assert "waiting" not in shown


def test_a_plan_leaves_columns_out_before_it_cuts_a_name() -> None:
    columns = [Column("who", [LONG], right=False, folds=True), Column("calls", ["1"]), Column("tokens at most", ["2"])]
    shown = fitting(columns, ("tokens at most",), 60, 2)
    assert [one.name for one in shown] == ["who", "calls"]
    assert [one.name for one in fitting(columns, ("tokens at most",), 80, 2)] == ["who", "calls", "tokens at most"]

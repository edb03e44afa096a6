"""Figures of a suite run that has ended: made once, kept in the store, and made anew when the run has changed."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import muster
from muster.domain.case import Status
from muster.domain.run import RunState
from muster.settings import load_settings
from muster.suites.reports.summary import FIGURES, SuiteFigures, summarize
from muster.text import typed
from tests.suites.reports.house import Story, case, opened, result, step

STORY = Story(
    cases=[case(f"c{number}") for number in range(40)],
    results=[result(f"c{number}", Status.FAILED if number % 3 else Status.PASSED) for number in range(40)],
)

SUITE = """
schema_version: 1
skill_or_agent: desk
cases:
  - id: desk/greets
    description: It greets.
    tags: [smoke]
    input:
      messages: [{ role: user, content: hi }]
    expected:
      output: [{ kind: contains, value: hello }]
"""


async def test_figures_that_are_kept_are_those_that_were_made(tmp_path: Path) -> None:
    async with opened(tmp_path, STORY) as (suite, made):
        table, run = suite.store.records, suite.run.id
        await suite.store.maintenance.touch()  # which waits for what was queued before it
        kept = await table.find_figures(run, f"{FIGURES} {await table.figures_version(run)}")
        assert typed.convert(kept, SuiteFigures).subjects == made.subjects
        assert await summarize(suite) == made


async def test_figures_of_a_run_that_has_ended_are_not_made_again(tmp_path: Path) -> None:
    async with opened(tmp_path, STORY) as (suite, made):
        table, run = suite.store.records, suite.run.id
        kept = typed.to_builtins(replace(made, run=None)) | {"cases": 4711}  # type: ignore[arg-type]
        await table.keep_figures(run, f"{FIGURES} {await table.figures_version(run)}", kept)
        assert (await summarize(suite)).cases == 4711


async def test_figures_are_made_anew_when_the_run_has_changed(tmp_path: Path) -> None:
    async with opened(tmp_path, STORY) as (suite, made):
        table, run = suite.store.records, suite.run.id
        await table.keep_figures(run, f"{FIGURES} {await table.figures_version(run)}", {"cases": 4711})
        await suite.store.archive.restore_entries([step("late", 1)])
        assert await summarize(suite) == made
        assert await summarize(suite) == made


async def test_figures_that_cannot_be_read_are_made_anew(tmp_path: Path) -> None:
    async with opened(tmp_path, STORY) as (suite, made):
        table, run = suite.store.records, suite.run.id
        await table.keep_figures(run, f"{FIGURES} {await table.figures_version(run)}", {"cases": 4711})
        assert await summarize(suite) == made


async def test_figures_of_a_run_that_goes_on_are_not_kept(tmp_path: Path) -> None:
    async with opened(tmp_path, replace(STORY, state=RunState.INTERRUPTED)) as (suite, _):
        table, run = suite.store.records, suite.run.id
        assert await table.find_figures(run, f"{FIGURES} {await table.figures_version(run)}") is None


async def test_figures_are_deleted_with_their_run(tmp_path: Path) -> None:
    async with opened(tmp_path, STORY) as (suite, _):
        table, run = suite.store.records, suite.run.id
        made_from = f"{FIGURES} {await table.figures_version(run)}"
        await suite.store.runs.delete(run, 0.0)
        assert await table.find_figures(run, made_from) is None
        await table.keep_figures(run, made_from, {})
        assert await table.find_figures(run, made_from) is None


async def test_a_worker_makes_the_figures_of_a_suite_run_when_it_ends(tmp_path: Path) -> None:
    (tmp_path / "muster.toml").write_text('[agents.a]\nkind = "scripted"\nscript = "answers.yaml"\n', encoding="utf-8")
    (tmp_path / "answers.yaml").write_text("otherwise: hello\n", encoding="utf-8")
    (tmp_path / "s.yaml").write_text(SUITE, encoding="utf-8")
    settings = load_settings(tmp_path / ".muster", folder=tmp_path, environment={})
    async with muster.open(settings=settings) as m:
        handle = await m.submit("suite", {"path": [str(tmp_path / "s.yaml")], "agents": ["a"]})
        await m.worker().serve(until_idle=True)
        assert (await handle.run()).state is RunState.COMPLETED
    with sqlite3.connect(tmp_path / ".muster" / "muster.db") as database:
        assert database.execute("SELECT run_id FROM figures").fetchall() == [(handle.id,)]

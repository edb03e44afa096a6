"""Killed in councils that judge, a suite comes to the verdicts it would have had; no reply is paid twice."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.entry import EntryKind
from tests.chaos import work
from tests.chaos.books import Books, books_of, check_paid_once
from tests.chaos.stage import PRICES, Stage, declare_prices
from tests.chaos.suites import perform
from tests.rehearsal import ForkedRehearsal
from tests.suites.councils import spoken, write_council
from tests.suites.stage import a_judged_case, a_suite

NANO = "openai/gpt-5-nano"
MEMBERS = (work.ANTHROPIC, work.OPENAI, NANO)
JUDGE = "council:council.yaml"
SAID = {"s/one": "hello", "s/two": "good day"}
POINTS = (
    "call.answered:3",
    "call.opened:2",
    "call.settled:2",
    "store.after_commit:6",
    "call.answered:2",
    "call.settled:3",
    "run.before_release:1",
)


@pytest.fixture
def judged_stage(tmp_path: Path) -> Iterator[Stage]:
    """A folder with a suite and a council before a server that plays its members."""
    verdicts = dict(zip(MEMBERS, (0.9, 0.8, 0.2), strict=True))
    rules = spoken(JUDGE, SAID, verdicts, winner=work.ANTHROPIC, agent=work.ANTHROPIC)
    with ForkedRehearsal(latency_ms=40, script={"rules": rules}) as running:
        stage = Stage(tmp_path / "stage", running)
        declare_prices(stage.folder)
        settings = stage.folder / "muster.toml"
        third = f'[agents."{NANO}"]\nkind = "openai"\nmodel = "gpt-5-nano"\n{PRICES}\n'
        settings.write_text(settings.read_text(encoding="utf-8") + "\n" + third, encoding="utf-8")
        write_council(stage.folder, members=MEMBERS)
        a_suite(stage.folder, *(a_judged_case(case.removeprefix("s/"), words) for case, words in SAID.items()))
        yield stage


def has_run(stage: Stage) -> bool:
    file = stage.folder / ".muster" / "muster.db"
    if not file.exists():
        return False
    database = sqlite3.connect(file)
    try:
        return bool(database.execute("SELECT 1 FROM runs").fetchone())
    finally:
        database.close()


def command(stage: Stage) -> tuple[str, ...]:
    """Return the command that begins, or goes on with what was begun; the policy is read only by the first."""
    if not has_run(stage):
        return ("run", "cases.yaml", "--agent", work.ANTHROPIC, "--judge", JUDGE, "--name", "judged")
    (stage.folder / "council.yaml").unlink(missing_ok=True)
    return ("runs", "resume", "judged")


async def all_books(stage: Stage) -> Books:
    """Return the books of the suite and of its councils as one; keys begin with the run that they are of."""
    async with stage.open() as muster:
        run = await muster.runs.find("judged")
        children = await muster._backend.store.archive.children(run.id)
        every = [await books_of(muster, one) for one in (run, *children)]
    return replace(
        every[0],
        entries=[
            replace(entry, key=f"{entry.run}/{entry.key}")
            for books in every
            for entry in books.entries
            if entry.kind is EntryKind.CALL
        ],
        attempts=[
            replace(attempt, key=f"{books.run.id}/{attempt.key}") for books in every for attempt in books.attempts
        ],
    )


async def test_a_suite_that_is_killed_in_its_councils_pays_no_reply_twice(judged_stage: Stage) -> None:
    stage = judged_stage
    kills = [(await (await perform(stage, *command(stage), crash_at=point)).end()).killed for point in POINTS]
    assert sum(kills) > 4, kills
    ended = await (await perform(stage, *command(stage))).end()
    assert (ended.code, ended.said["ok"]) == (0, True), ended
    assert ended.said["data"]["subjects"][0]["mean_score"] == 0.9
    books = await all_books(stage)
    assert len(books.entries) == len(SAID) * (1 + 2 * len(MEMBERS))
    check_paid_once(books, stage.sim.audit())

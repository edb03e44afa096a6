"""A suite for the crash proofs, the judge of it, and the command that runs it: one process after the other, killable.

Every case asks the agent to repeat something. The judge is scripted: it finds some answers bad, and about some it talks
at first instead of scoring them, so that its reply has to be repaired.
"""

import asyncio
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from muster.domain.entry import EntryKind
from muster.domain.run import RunState
from muster.suites.journal import SNAPSHOT
from muster.suites.reports.run import open_suite_run
from muster.suites.values.verdict import CaseResult
from tests import forked
from tests.chaos import work
from tests.chaos.books import Books, books_of
from tests.chaos.stage import PATIENCE, Driver, Ended, Stage
from tests.forked import ForkedProcess

FOLDER = "parrot"
FINE, BAD, MUDDLED = "fine", "bad", "muddled"
BRISK = ("--poll-interval", "0.05")  # a rehearsed batch takes no minutes
HEADER = "schema_version: 1\nskill_or_agent: parrot\ncases:\n"
CASE = """\
- id: parrot/{number:05d}
  description: It repeats what it hears.
  input: {{messages: [{{role: user, content: "{said}"}}]}}
  expected:
    output: [{{kind: contains, value: "item {shown:05d}"}}]
    rubric:
    - {{id: whole, description: Nothing is missing., weight: 0.75}}
    - {{id: plain, description: Nothing is added., weight: 0.25}}
"""


def _verdict(whole: float, plain: float) -> str:
    items = [
        {"id": "whole", "score": whole, "evidence": "item", "rationale": "It stands there."},
        {"id": "plain", "score": plain, "evidence": "", "rationale": "It is as it is."},
    ]
    return json.dumps({"items": items})


SCRIPT: Mapping[str, Any] = {
    "rules": [
        {"text": "^Your reply cannot be used", "answer": _verdict(1.0, 0.5)},
        {"text": f"^The fence token(.|\n)* {MUDDLED}\n", "answer": "Well, how shall I put it?"},
        {"text": f"^The fence token(.|\n)* {BAD}\n", "answer": _verdict(0.25, 1.0)},
        {"text": "^The fence token", "answer": _verdict(1.0, 1.0)},
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What is run: so many cases, by whom, judged by whom, and how."""

    cases: int
    epochs: int = 1
    agent: str = work.ANTHROPIC
    judge: str = work.OPENAI
    dispatch: str = "live"
    concurrency: int = 20
    bad: bool = True  # whether some answers are bad
    muddled: bool = False  # whether the judge must be asked for a repair

    @property
    def units(self) -> int:
        """How many results there are in the end."""
        return self.cases * self.epochs

    @property
    def calls(self) -> int:
        """How many calls are made, if none is made twice."""
        repairs = sum(self.mood(number) == MUDDLED for number in range(self.cases))
        return (2 * self.cases + repairs) * self.epochs

    @property
    def code(self) -> int:
        """What the command says at the end."""
        return int(any(self.mood(number) == BAD for number in range(self.cases)))

    def mood(self, number: int) -> str:
        """Say what becomes of a case; one in twenty-five is the case before it once more."""
        shown = _shown(number)
        if self.bad and shown % 7 == 3:
            return BAD
        return MUDDLED if self.muddled and shown % 11 == 5 else FINE

    def text(self) -> str:
        """Give the suite."""
        numbers = range(self.cases)
        return HEADER + "".join(
            CASE.format(number=number, shown=_shown(number), said=f"item {_shown(number):05d} {self.mood(number)}")
            for number in numbers
        )

    def write(self, stage: Stage) -> None:
        """Put the suite into a folder."""
        (stage.folder / FOLDER).mkdir(exist_ok=True)
        (stage.folder / FOLDER / "cases.yaml").write_text(self.text(), encoding="utf-8")

    @property
    def brisk(self) -> tuple[str, ...]:
        """The options that make a run look for its batches often, if it has any."""
        return BRISK if self.dispatch == "batch" else ()

    def command(self, *more: str) -> tuple[str, ...]:
        """Give the command that begins."""
        told = ("--agent", self.agent, "--judge", self.judge, "--epochs", str(self.epochs), "--evaluator", "all")
        sent = ("--dispatch", self.dispatch, "--concurrency", str(self.concurrency), *self.brisk)
        return ("run", FOLDER, *told, *sent, *more)


RESUME = ("runs", "resume", "last")


def _shown(number: int) -> int:
    return number - (number % 25 == 24)


class Performance(Driver):
    """One process that runs the command."""

    def __init__(self, process: ForkedProcess) -> None:
        super().__init__(process)
        self._stderr = process.stderr

    async def ready(self) -> None:
        """Wait for its first words, after which it begins or goes on."""
        assert self._stderr is not None
        await asyncio.wait_for(self._stderr.readline(), PATIENCE)


async def perform(stage: Stage, *arguments: str, crash_at: str | None = None) -> Performance:
    """Start the command itself."""
    more = {} if crash_at is None else {"MUSTER_CRASH_AT": crash_at}
    return Performance(
        await forked.start("muster", *arguments, "--json", folder=stage.folder, environment=stage.environment | more)
    )


async def go_on(stage: Stage, play: Play, crash_at: str | None = None) -> Performance:
    """Begin, or go on with what was begun; a batch that the provider never got is given up first, by hand."""
    if state_of(stage) is None:
        return await perform(stage, *play.command(), crash_at=crash_at)
    if _waits_for_nothing(stage):
        ended = await (await perform(stage, "batch", "reconcile", "--resubmit", "--grace", "0.3", *BRISK)).end()
        assert ended.code == 0, ended
    return await perform(stage, *RESUME, *play.brisk, crash_at=crash_at)


def _waits_for_nothing(stage: Stage) -> bool:
    """Whether resuming would look in vain, and for minutes, for a batch that may have been sent."""
    known = {name for (name,) in _look(stage, "SELECT provider_id FROM batches")}
    unclear = _look(stage, "SELECT id FROM batches WHERE state = 'sent'")
    return bool(unclear) and all(batch["id"] in known for batch in stage.sim.audit().batches)


async def finish(stage: Stage, play: Play) -> Ended:
    """Let the last process come to its end; its exit code and its words say whether all cases passed."""
    ended = await (await go_on(stage, play)).end()
    assert (ended.code, ended.said["ok"]) == (play.code, play.code == 0), ended
    return ended


def state_of(stage: Stage) -> RunState | None:
    """Give the state of the run; going on never makes another one."""
    states = [RunState(state) for (state,) in _look(stage, "SELECT state FROM runs")]
    assert len(states) <= 1, states
    return states[0] if states else None


def pages_read(stage: Stage) -> int:
    """Say how many pages of cases are kept."""
    return len(_look(stage, "SELECT key FROM journal WHERE key LIKE 'suite/cases/%'"))


def is_read_in(stage: Stage) -> bool:
    """Return whether all cases are kept, so that the files are not read again."""
    return bool(_look(stage, f"SELECT key FROM journal WHERE key = '{SNAPSHOT}'"))


def _look(stage: Stage, sql: str) -> list[Any]:
    """Look at what a process left behind; whoever opened the store would begin to clear it up."""
    file = stage.folder / ".muster" / "muster.db"
    if not file.exists():
        return []
    database = sqlite3.connect(file)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


@dataclass(frozen=True)
class Outcome:
    """What a suite run left in its store: its results in order, and the books of its calls."""

    results: tuple[CaseResult, ...]
    books: Books

    @property
    def resumed(self) -> int:
        """How often a process went on with it."""
        return [event.kind for event in self.books.events].count("run.resumed")

    @property
    def lasting(self) -> list[Any]:
        """The results without what the clock says."""
        return [msgspec.to_builtins(replace(result, seconds=0.0)) for result in self.results]


async def outcome_of(stage: Stage, reference: str = "last") -> Outcome:
    """Read a run back."""
    async with stage.open() as muster:
        run = await muster.runs.find(reference)
        suite = await open_suite_run(muster._backend.store, run)
        results = tuple([result async for result in suite.results()])
        books = await books_of(muster, run)
    calls = [entry for entry in books.entries if entry.kind is EntryKind.CALL]
    return Outcome(results=results, books=replace(books, entries=calls))

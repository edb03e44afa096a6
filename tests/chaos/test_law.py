"""The law of the crash proofs notices what must not be: two drivers at once, a call that nobody was killed for, a
lineage with two ends, and work that is done twice."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.chaos import law

TABLES = """
CREATE TABLE runs (id, epoch);
CREATE TABLE events (run_id, seq, kind, at, data);
CREATE TABLE attempts (run_id, key, n, epoch, state, started_at);
"""
Told = tuple[str, float, dict[str, Any]]
Row = tuple[str | None, ...]
STARTED: Told = ("run.started", 1.0, {"driver": "process 7 on here"})
DIED: Told = ("run.interrupted", 3.0, {"reason": "driver_died"})
RESUMED: Told = ("run.resumed", 4.0, {"driver": "process 8 on there"})
DONE: Told = ("call.done", 5.0, {"key": "a", "attempt": 1})
COMPLETED: Told = ("run.completed", 6.0, {"reason": "done"})


@dataclass(frozen=True, kw_only=True)
class OneCall:
    """A run with one call, as a store tells of it."""

    history: tuple[Told, ...] = (STARTED, DIED, RESUMED, DONE, COMPLETED)
    epoch: int = 3
    attempt: tuple[int, str, float] = (3, "succeeded", 4.5)

    def violations(self, deaths: Mapping[int, float]) -> list[str]:
        with closing(sqlite3.connect(":memory:")) as database:
            database.row_factory = sqlite3.Row
            database.executescript(TABLES)
            database.execute("INSERT INTO runs VALUES ('r', ?)", (self.epoch,))
            database.execute("INSERT INTO attempts VALUES ('r', 'a', 1, ?, ?, ?)", self.attempt)
            rows = [("r", seq, kind, at, json.dumps(data)) for seq, (kind, at, data) in enumerate(self.history, 1)]
            database.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
            return list(law.of_drivers(database, deaths))


def test_a_driver_that_was_killed_may_be_replaced() -> None:
    assert OneCall().violations({7: 2.0}) == []


@pytest.mark.parametrize(
    ("found", "deaths", "words"),
    [
        (OneCall(), {}, "process 7, which was alive"),
        (OneCall(), {7: 3.5}, "process 7, which was alive"),
        (OneCall(history=(STARTED, RESUMED, DONE, COMPLETED), epoch=2, attempt=(2, "", 4.5)), {}, "which was alive"),
        (OneCall(attempt=(1, "succeeded", 1.5)), {7: 2.0}, "epoch 1 settled in epoch 3"),
        (OneCall(attempt=(3, "succeeded", 2.5)), {7: 2.0}, "began when another driver had the run"),
        (OneCall(attempt=(3, "uncertain", 4.5)), {7: 2.0}, "its driver was not killed"),
        (OneCall(epoch=4), {7: 2.0}, "its events tell of 3"),
    ],
)
def test_what_must_not_be_is_told(found: OneCall, deaths: dict[int, float], words: str) -> None:
    assert words in "; ".join(found.violations(deaths))


WORK_TABLES = """
CREATE TABLE runs (id, state, parent_id, parent_key, lineage, continued_by);
CREATE TABLE journal (position, run_id, key, kind, state, digest, agent);
CREATE TABLE requests (position, request);
CREATE TABLE outcomes (position, outcome);
CREATE TABLE attempts (run_id, key, n, state);
CREATE TABLE events (run_id, seq, kind, data);
"""


def run(name: str, state: str, continued_by: str | None = None, lineage: str | None = "run:r1") -> Row:
    return (name, state, None, None, lineage, continued_by)


FIRST, SECOND = run("r1", "failed", "r2", lineage=None), run("r2", "completed")
PAID = law.digest({"model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5})


@dataclass(frozen=True, kw_only=True)
class OneQuestion:
    """Runs that ask one question under one key, as a store and its provider tell of them."""

    runs: tuple[Row, ...] = (FIRST, SECOND)
    attempts: tuple[tuple[str, str], ...] = (("r2", "succeeded"),)  # by run, each with its state
    late: tuple[str, ...] = ()  # runs that were told of a late reply
    digests: Mapping[str, str] = field(default_factory=dict)  # of the question, in runs that ask another
    paid: int = 1

    def violations(self) -> list[str]:
        request = json.dumps({"messages": [{"text": "hello"}], "max_tokens": 5})
        with closing(sqlite3.connect(":memory:")) as database:
            database.executescript(WORK_TABLES)
            database.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", self.runs)
            for n, (run, *_) in enumerate(self.runs):
                row = (n, run, "a", "call", "done", self.digests.get(str(run), "d"), "anthropic/m")
                database.execute("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)", row)
                database.execute("INSERT INTO requests VALUES (?, ?)", (n, request))
            for n, (run, state) in enumerate(self.attempts):
                database.execute("INSERT INTO attempts VALUES (?, 'a', ?, ?)", (run, n, state))
            for n, run in enumerate(self.late):
                database.execute("INSERT INTO events VALUES (?, ?, 'call.late', ?)", (run, n, '{"key": "a"}'))
            return list(law.of_work(database, {"by_digest": {PAID: self.paid}}))


BOTH = (("r1", "succeeded"), ("r2", "succeeded"))
FORKED = (("r1", "succeeded"), ("f1", "succeeded"))
CHILDREN: tuple[Row, ...] = (
    FIRST,
    SECOND,
    ("c1", "failed", "r1", "part", "lineage:c1", "c2"),
    ("c2", "completed", "r2", "part\x1fc1", "lineage:c1", None),
)
OF_CHILDREN = (("c1", "succeeded"), ("c2", "succeeded"))


@pytest.mark.parametrize(
    "found",
    [
        OneQuestion(),
        OneQuestion(attempts=BOTH, late=("r1",), paid=2),
        OneQuestion(attempts=(("r1", "uncertain"), ("r2", "succeeded")), paid=2),
        OneQuestion(attempts=(("r1", "failed"), ("r2", "succeeded")), paid=2),
        OneQuestion(attempts=BOTH, digests={"r2": "e"}, paid=2),
        OneQuestion(runs=(run("r1", "failed"), run("f1", "completed", lineage="lineage:f1")), attempts=FORKED, paid=2),
        OneQuestion(runs=CHILDREN),
        OneQuestion(runs=(FIRST,), attempts=(), paid=0),  # what it was continued as has completed and was deleted
        OneQuestion(runs=(FIRST, run("r2", "running"))),
    ],
)
def test_work_that_is_done_once_is_no_violation(found: OneQuestion) -> None:
    assert found.violations() == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (OneQuestion(attempts=BOTH, paid=2), "run:r1 / a: done 2 times, 0 of them late"),
        (OneQuestion(attempts=(*BOTH, ("r2", "succeeded")), late=("r1",)), "done 3 times, 1 of them late"),
        (OneQuestion(paid=2), "run:r1 / a: paid 2 times, which is explained 1 times"),
        (OneQuestion(attempts=(("r1", "unsent"), ("r2", "succeeded")), paid=2), "paid 2 times"),
        (OneQuestion(attempts=(("r1", "uncertain"), ("r2", "succeeded")), paid=3), "explained 2 times"),
        (OneQuestion(attempts=(), paid=1), "a request of no run: paid 1 times"),
        (OneQuestion(runs=CHILDREN, attempts=OF_CHILDREN, paid=2), "run:r1 / part / a: done 2 times"),
        (OneQuestion(runs=(FIRST, SECOND, run("r3", "failed"))), "run:r1 has 2 ends: r2, r3"),
        (
            OneQuestion(runs=(run("r1", "queued", "r2"), run("r2", "waiting"))),
            "run:r1 has 2 runs that can go on: r1, r2",
        ),
        (OneQuestion(runs=(run("r1", "queued", "r2"), SECOND)), "run r1 was continued, and is queued"),
        (OneQuestion(runs=(run("r1", "failed", "r9"), SECOND)), "was continued as run r9, which is not its end"),
        (OneQuestion(runs=(FIRST, run("r2", "failed", "r1"), run("r3", "failed"))), "in a circle"),
    ],
)
def test_work_that_is_done_twice_is_told(found: OneQuestion, words: str) -> None:
    assert words in "; ".join(found.violations())

"""The law of the fleet notices what must not be: two drivers at once, and a call that nobody was killed for."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from tests.chaos import law

TABLES = """
CREATE TABLE runs (id, epoch);
CREATE TABLE events (run_id, seq, kind, at, data);
CREATE TABLE attempts (run_id, key, n, epoch, state, started_at);
"""
Told = tuple[str, float, dict[str, Any]]
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

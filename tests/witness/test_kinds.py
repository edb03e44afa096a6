"""Runs of every kind of work that an older program left are continued and replayed, and nothing is paid for again."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.variants import first_of
from tests.witness.home import Home
from tests.witness.kinds import COMPLETED, CUT, FAILED, KINDS, STORES, WAITING, at_rest, open_kinds
from tests.witness.opening import ORIGIN, map_address

Key = tuple[str, str]  # the name of a run, and of one of its calls
every_store = pytest.mark.parametrize("store", first_of(reversed(STORES)))
PATIENTLY = ("--poll-interval", "0.05")
LUCKY = at_rest() | {"faults": str(KINDS / "sim-no-faults.yaml")}


@every_store
def test_interrupted_work_of_every_kind_is_resumed_and_pays_only_for_what_is_missing(
    tmp_path: Path, store: str
) -> None:
    home = open_kinds(tmp_path, store)
    with home.rehearse(**LUCKY) as rehearsal:
        before, calls = Books(home), rehearsal.audit()["calls"]
        for name in CUT:
            resume(home, name)
        home.muster("pool", "start", "--until-idle")
        after = Books(home)
        assert rehearsal.audit()["calls"] - calls == after.paid_since(before)
    assert all(after.states[name] == "completed" for name in (*CUT, "cut-task"))
    assert "interrupted" not in after.states.values()
    assert after.paid_again(before) == []
    assert len(before.answered) > 90


@every_store
def test_failed_work_of_every_kind_is_continued_and_pays_only_for_what_is_missing(tmp_path: Path, store: str) -> None:
    home = open_kinds(tmp_path, store)
    with home.rehearse(**LUCKY) as rehearsal:
        before, calls = Books(home), rehearsal.audit()["calls"]
        for name, (_, words) in FAILED.items():
            resume(home, name, *(("--budget", "5") if "--budget" in words else ()))
        assert home.muster("task", "retry", "failed-task").code == 0
        home.muster("pool", "start", "--until-idle")
        after = Books(home)
        assert rehearsal.audit()["calls"] - calls == after.paid_since(before)
    assert all(after.states[name] == "completed" for name in (*FAILED, "failed-task"))
    assert after.paid_again(before) == []


@every_store
def test_waiting_work_of_every_kind_takes_its_replies_from_the_batches_that_were_left(
    tmp_path: Path, store: str
) -> None:
    home = open_kinds(tmp_path, store)
    with home.rehearse(**LUCKY) as rehearsal:
        map_address(home.database, ORIGIN, rehearsal.origin)
        before = Books(home)
        for name in WAITING:
            resume(home, name, *PATIENTLY)
        assert home.muster("task", "approve", "reviewed-task").code == 0
        home.muster("pool", "start", "--until-idle")
        after = Books(home)
    assert all(after.states[name] == "completed" for name in (*WAITING, "reviewed-task"))
    assert after.paid_again(before) == []
    assert [key for key, count in after.attempts.items() if key[0] in WAITING and count > 1] == []


@every_store
def test_completed_work_of_every_kind_is_replayed_and_asks_nobody(tmp_path: Path, store: str) -> None:
    home = open_kinds(tmp_path, store)
    before = Books(home)
    for name, (code, _) in COMPLETED.items():
        done = home.muster("runs", "replay", name)
        assert done.code == code, done
    after = Books(home)
    assert after.attempts == before.attempts
    assert all(after.states[name] == "completed" for name in COMPLETED)
    unknown = [name for name in after.replayed if after.calls[name][0] != after.calls[name][1]]
    assert unknown == []  # every call that is made again is known; some are not made, since the step around them is
    assert set(COMPLETED) <= after.replayed


@every_store
def test_a_fork_of_work_of_every_kind_pays_only_for_what_it_leaves_out(tmp_path: Path, store: str) -> None:
    home = open_kinds(tmp_path, store)
    with home.rehearse(**LUCKY) as rehearsal:
        for name in ("judged", "judged-at-length", "looked", "noted", "deliberated", "fought", "scaled", "labels"):
            last, calls = Books(home).last_call(name), rehearsal.audit()["calls"]
            assert home.muster("runs", "fork", name, "--from", last).code in (0, 1)
            assert (name, rehearsal.audit()["calls"] - calls) == (name, 1)


def resume(home: Home, name: str, *options: str) -> None:
    done = home.muster("runs", "resume", name, *options, "--json")
    assert done.code in (0, 1), (name, done)
    assert "key_reused" not in done.out + done.err, (name, done)


class Books:
    """What a store says of its runs: where they stand, which calls are answered, and how often each was tried."""

    def __init__(self, home: Home) -> None:
        self._store = home.database
        self.states = dict(self._rows("SELECT coalesce(name, id), state FROM runs ORDER BY created_at"))
        counted = "SELECT coalesce(name, id), calls_total, calls_reused FROM runs ORDER BY created_at"
        self.calls = {name: (total, reused) for name, total, reused in self._rows(counted)}
        self.replayed = {name for (name,) in self._rows("SELECT name FROM runs WHERE origin_reuse = 'replay'")}
        self.answered: set[Key] = set(
            self._rows(
                "SELECT coalesce(name, run_id), key FROM journal JOIN runs ON runs.id = run_id "
                "WHERE kind = 'call' AND journal.state = 'done'"
            )
        )
        tried = self._rows("SELECT coalesce(name, run_id), key FROM attempts JOIN runs ON runs.id = run_id")
        self.attempts: Counter[Key] = Counter(tried)

    def last_call(self, name: str) -> str:
        """Return the key of the last call of a run."""
        rows = self._rows(
            "SELECT key FROM journal JOIN runs ON runs.id = run_id "
            "WHERE kind = 'call' AND name = ? ORDER BY position DESC LIMIT 1",
            name,
        )
        return str(rows[0][0])

    def paid_since(self, before: "Books") -> int:
        """Return how many attempts were made."""
        return self.attempts.total() - before.attempts.total()

    def paid_again(self, before: "Books") -> list[Key]:
        """Return the calls that were asked again although their replies were stored."""
        return sorted(key for key in self.attempts - before.attempts if key in before.answered)

    def _rows(self, query: str, *values: str) -> list[Any]:
        with closing(sqlite3.connect(self._store)) as store:
            return store.execute(query, values).fetchall()

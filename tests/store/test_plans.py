"""No named query reads a table that grows: each is run once on 100,000 runs, and what it reads is counted."""

import re
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from muster.store.queries import migrations, numbered_queries, queries
from tests.store.many_runs import RUNS, run_id, statements

# What reads all of something by nature, and why it may.
READ_ALL = {
    "total_runs": "metrics sum counters that change with every call; an index over them would cost each call more",
    "total_batches": "metrics count the entries of an index, one for each batch",
    "count_task_runs": "the pool counts the entries of an index, one for each task",
    "sum_slot_costs": "the pool sums one narrow row for each task",
    "select_known_batches": "a create that got no answer is looked for among all batches of the account",
}
STEPS = 1000  # instructions of SQLite's machine that are counted as one
MAX_STEPS = RUNS // STEPS // 2  # a look at each run takes several instructions
MAX_ROWS = RUNS // 50

_RUN = run_id(50_002)
_VALUES = {
    **dict.fromkeys(("id", "run_id", "parent_id", "origin_id", "next", "root_id", "reference", "first"), _RUN),
    **dict.fromkeys(("lineage", "address", "level"), f"lineage:{_RUN}"),
    **dict.fromkeys(("search", "states", "workloads", "searched_workloads"), ""),
    **dict.fromkeys(("before_at", "after_at", "before", "created_at", "since"), str(RUNS - 100)),
    "batch_id": "br050001",
    "day": "1",
    "limit": "20",
    "most": "1000",
    "state": "queued",
    "workload": "ask",
    "client": "c1",
    "name": "n5",
    "owner": "u5",
    "roots": "0",
    "account": "a",
}
_PAGE = {
    "before_at": str(RUNS // 2), "before_id": _RUN, "name": None, "owner": None, "agent": None, "since": "0"
}  # fmt: skip
_OWN_VALUES: Mapping[str, Mapping[str, str | None]] = {
    "match_runs": {"after": f"{_RUN}{{"},
    "match_batches": {"reference": "br050001", "after": "br050001{"},
    "page_runs": _PAGE,
    "page_named_runs": {**_PAGE, "name": "n5"},
    "page_runs_of_owner": {**_PAGE, "owner": "u5", "agent": "often"},
    "page_runs_of_agent": {**_PAGE, "agent": "seldom"},
    "page_runs_in_state": {**_PAGE, "before_at": str(RUNS)},
    "page_runs_of_workload": {**_PAGE, "workload": "suite", "state": "completed"},
    "select_batches": {"before_at": "100", "before_id": "b"},
    "select_audit": {"before": "100"},
    "select_ended": {"before": "500"},
    "set_session": {"lock_timeout": "0", "idle_timeout": "0"},
    "select_members": {"first": "0", "after": "5"},
    **{name: {"id": f"run:{_RUN}"} for name in ("cap_budget", "reserve_again", "lock_budgets", "select_budgets")},
    **{name: {"id": f"lineage:{_RUN}"} for name in ("delete_unused_budget", "delete_orphaned_budget")},
}


def _values(query: str, names: Iterable[str]) -> dict[str, str | None]:
    return {name: _OWN_VALUES.get(query, {}).get(name, _VALUES.get(name, "1")) for name in names}


def _names(text: str) -> list[str]:
    return re.findall(r"(?<![:\w]):(\w+)", text)


def _steps(database: sqlite3.Connection, text: str, values: Mapping[str, str | None]) -> int:
    """Run a query, undo it, and return what it took."""
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    database.set_progress_handler(count, STEPS)
    database.execute("BEGIN")
    with suppress(sqlite3.IntegrityError):  # the row is there already, which took a look
        database.execute(text, values).fetchall()
    database.execute("ROLLBACK")
    database.set_progress_handler(None, STEPS)
    return steps[0]


def test_no_query_reads_all_that_sqlite_holds() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    for _, _, text in migrations("sqlite"):
        database.executescript(text)
    for statement in statements("sqlite"):
        database.execute(statement)
    steps = {name: _steps(database, text, _values(name, _names(text))) for name, text in queries().items()}
    database.close()
    assert {name: taken for name, taken in steps.items() if taken > MAX_STEPS and name not in READ_ALL} == {}


_COUNTED = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck")


def _rows(plan: Mapping[str, Any]) -> int:
    """Return the most rows that one step of a plan has read."""
    own = sum(plan.get(name, 0) for name in _COUNTED) * plan["Actual Loops"]
    return max([int(own), *map(_rows, plan.get("Plans", ()))])


def _rows_read(database: "psycopg.Connection[Any]", name: str, values: Iterable[str | None]) -> int:
    arguments = ", ".join("NULL" if value is None else f"'{value}'" for value in values)
    explained = f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE {name}{f'({arguments})' if arguments else ''}"
    try:
        with database.transaction(force_rollback=True):
            row = database.execute(explained.encode()).fetchone()
    except psycopg.errors.IntegrityError:
        return 0  # the row is there already
    assert row is not None
    return _rows(row[0][0]["Plan"])


@pytest.mark.chaos  # 100,000 runs are made anew for it
@pytest.mark.timeout(180)
def test_no_query_reads_all_that_postgres_holds(database_url: str) -> None:
    found = {}
    with psycopg.connect(database_url, autocommit=True) as database:
        for statement in statements("postgres"):
            database.execute(statement.encode())
        database.execute("ANALYZE")
        for name, query in numbered_queries().items():
            if not query.text.startswith(b"CREATE"):
                database.execute(f"PREPARE {name} AS ".encode() + query.text)
                found[name] = _rows_read(database, name, _values(name, query.names).values())
    assert {name: rows for name, rows in found.items() if rows > MAX_ROWS and name not in READ_ALL} == {}


_LEVELS = """'{"lineage":"lineage:c","above":["run:p","lineage:p","user:u","pool:x"],"day_cap":null}'"""
_CHILD = f"""INSERT INTO runs (id, workload, spec, state, tags, seed, concurrency, created_at, levels)
VALUES ('c', 'ask', '', 'completed', '', 1, 1, 1, {_LEVELS}), ('old', 'ask', '', 'completed', '', 1, 1, 1, NULL)"""
_UNDER = "SELECT level, run_id FROM run_levels ORDER BY level"


def test_an_older_store_is_asked_once_which_runs_count_under_others() -> None:
    database = sqlite3.connect(":memory:")
    for number, _, text in migrations("sqlite"):
        if number == 18:
            database.execute(_CHILD)
        database.executescript(text)
    assert database.execute(_UNDER).fetchall() == [("lineage:p", "c"), ("run:p", "c")]
    database.close()


def test_an_older_store_on_postgres_is_asked_the_same(postgres: str) -> None:
    with psycopg.connect(postgres) as database:
        for number, _, text in migrations("postgres"):
            if number == 18:
                database.execute(_CHILD.encode())
            database.execute(text.encode())
        assert database.execute(_UNDER).fetchall() == [("lineage:p", "c"), ("run:p", "c")]
        database.rollback()

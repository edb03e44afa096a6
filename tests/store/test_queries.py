"""The named queries: loaded once, and understood by both databases."""

import re
import sqlite3
from collections.abc import Callable

import psycopg

from muster.store.queries import for_postgres, for_sqlite, migrations, queries


def _parameters(query: str) -> list[str]:
    return re.findall(r"(?<![:\w]):(\w+)", query)


def test_every_query_is_understood_by_sqlite() -> None:
    database = sqlite3.connect(":memory:")
    for _, _, text in migrations("sqlite"):
        database.executescript(text)
    for query in queries().values():
        database.execute(f"EXPLAIN {query}", dict.fromkeys(_parameters(query)))
    database.close()


def test_every_query_is_understood_by_postgres(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as database:
        for _, _, text in migrations("postgres"):
            database.execute(text.encode())
        database.execute("CREATE TABLE muster_schema (version BIGINT NOT NULL)")
        for name, text in queries("postgres").items():
            if text.startswith("CREATE"):
                continue
            # PREPARE makes the server parse it and settle every type, which nothing short of running it does.
            numbered = re.sub(r"%\((\w+)\)s", _numbering(), text)
            database.execute(f"PREPARE {name} AS {numbered}".encode())


def _numbering() -> Callable[[re.Match[str]], str]:
    seen: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${seen.setdefault(match[1], len(seen) + 1)}"

    return number


def test_no_query_uses_names_that_a_database_makes_up_for_columns() -> None:
    made_up = {name: found for name, text in queries().items() if (found := re.findall(r"\bcolumn_?\d+\b", text))}

    assert made_up == {}


def test_a_query_that_postgres_does_not_know_would_be_noticed(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as database:
        try:
            database.execute("PREPARE wrong AS SELECT json_extract('{}', '$.a')")
        except psycopg.errors.UndefinedFunction:
            return
    raise AssertionError("PREPARE let an unknown function through")


def test_parameters_are_spelled_for_postgres() -> None:
    assert for_postgres("a = :a AND b = ':x' || :b") == "a = %(a)s AND b = '%(x)s' || %(b)s"
    assert for_postgres("100 % :n") == "100 %% %(n)s"


def test_locks_on_rows_are_left_out_for_sqlite() -> None:
    assert for_sqlite("SELECT epoch FROM runs WHERE id = :id FOR UPDATE") == "SELECT epoch FROM runs WHERE id = :id"
    assert queries("postgres")["select_lease"].endswith("FOR UPDATE")


def test_both_databases_have_the_same_migrations() -> None:
    assert [step[:2] for step in migrations("sqlite")] == [step[:2] for step in migrations("postgres")]

"""The named queries: loaded once, and understood by both databases."""

import re
import sqlite3

import psycopg

from muster.store.queries import for_postgres, for_sqlite, migrations, numbered_queries, numbered_rows, queries


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
        for name, query in numbered_queries().items():
            if query.text.startswith(b"CREATE"):
                continue
            # PREPARE makes the server parse it and settle every type, which nothing short of running it does.
            database.execute(f"PREPARE {name} AS ".encode() + query.text)


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
    query = for_postgres("a = :b AND b = :a OR :b = 100 % 7")
    assert (query.text, query.names) == (b"a = $1 AND b = $2 OR $1 = 100 % 7", ("b", "a"))
    assert query.values({"a": 1, "b": 2, "c": 3}) == [2, 1]


def test_a_query_for_many_rows_numbers_the_parameters_of_all_of_them() -> None:
    query = numbered_rows("select_budgets", 3)
    assert (b"$1" in query.text, b"$3" in query.text, b"$4" in query.text) == (True, True, False)
    assert query.names == ("id",)


def test_locks_on_rows_are_left_out_for_sqlite() -> None:
    assert for_sqlite("SELECT epoch FROM runs WHERE id = :id FOR UPDATE") == "SELECT epoch FROM runs WHERE id = :id"
    assert numbered_queries()["select_lease"].text.endswith(b"FOR UPDATE")


def test_both_databases_have_the_same_migrations() -> None:
    assert [step[:2] for step in migrations("sqlite")] == [step[:2] for step in migrations("postgres")]

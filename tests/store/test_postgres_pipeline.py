"""Statements of a transaction that are sent together: every error undoes all of it, and belongs to who caused it."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest

from muster.domain.errors import BadArgument, Conflict, StoreFailed
from muster.domain.run import RunState
from muster.store.postgres.connection import PostgresConnection, WriterMark
from muster.store.postgres.failures import ServerAway, parse_address
from muster.store.postgres.leases import LEASE_SECONDS
from muster.store.postgres.store import open_database, open_postgres
from muster.store.queries import CommitUnknown, Locked, Locks
from muster.testing.stores.values import DRIVER, NOW, new_run
from tests.gated_proxy import GatedProxy

Sending = Callable[[PostgresConnection], None]


@pytest.fixture
def connection(database_url: str) -> Iterator[PostgresConnection]:
    open_database(database_url).close()
    with closing(PostgresConnection(parse_address(database_url), WriterMark(token="t"))) as found:
        yield found


def traits(url: str) -> list[str]:
    """Return the names of what is committed, without the mark of the writer."""
    with psycopg.connect(url) as other:
        return [name for (name,) in other.execute("SELECT name FROM traits WHERE name NOT LIKE 'writer:%' ORDER BY 1")]


def setting(name: str, value: str = "v") -> Sending:
    return lambda connection: connection.send_many("set_trait", [{"name": name, "value": value}])


def written(name: str) -> Sending:
    def write(connection: PostgresConnection) -> None:
        connection.execute("set_trait", {"name": name, "value": "v"})

    return write


def missing(connection: PostgresConnection) -> None:
    """Send a statement that changes no row although it must."""
    nobody = {"run_id": "nobody", "key": "k"}
    connection.send_many("drop_partial", [nobody], lambda: Conflict("it is gone"))


def failing(connection: PostgresConnection) -> None:
    """Send a statement that the server refuses."""
    connection.send_many("put_version", [{"version": None}])


def transact(connection: PostgresConnection, *sendings: Sending) -> None:
    with connection.transaction():
        for send in sendings:
            send(connection)


def protected(connection: PostgresConnection, *sendings: Sending) -> None:
    with connection.savepoint():
        for send in sendings:
            send(connection)


def test_what_is_sent_is_committed_together(connection: PostgresConnection, database_url: str) -> None:
    with connection.transaction():
        setting("a")(connection)
        setting("b")(connection)
        assert [row["value"] for row in connection.rows("select_trait", {"name": "b"})] == ["v"]
        assert traits(database_url) == []
    assert traits(database_url) == ["a", "b"]


def test_a_statement_that_changed_too_few_rows_undoes_what_was_sent_with_it(
    connection: PostgresConnection, database_url: str
) -> None:
    with pytest.raises(Conflict, match="gone"):
        transact(connection, setting("a"), missing, setting("b"))
    assert traits(database_url) == []
    transact(connection, setting("c"))
    assert traits(database_url) == ["c"]


def test_a_statement_that_fails_undoes_what_was_sent_with_it(connection: PostgresConnection, database_url: str) -> None:
    with pytest.raises(StoreFailed, match="violates"):
        transact(connection, setting("a"), failing, setting("b"))
    assert traits(database_url) == []


def test_the_first_of_two_errors_is_told(connection: PostgresConnection) -> None:
    with pytest.raises(Conflict, match="gone"):
        transact(connection, missing, failing)


def test_a_value_that_cannot_be_sent_undoes_what_was_sent_before(
    connection: PostgresConnection, database_url: str
) -> None:
    with pytest.raises(BadArgument, match="NUL"):
        transact(connection, setting("a"), setting("b\0"))
    assert traits(database_url) == []


def test_a_savepoint_undoes_only_what_was_sent_inside(connection: PostgresConnection, database_url: str) -> None:
    with connection.transaction():
        setting("a")(connection)
        with pytest.raises(Conflict):
            protected(connection, setting("b"), missing)
        with pytest.raises(StoreFailed):
            protected(connection, setting("c"), failing)
        protected(connection, setting("d"))
    assert traits(database_url) == ["a", "d"]


def test_an_error_from_before_a_savepoint_is_not_taken_for_its_own(connection: PostgresConnection) -> None:
    reached: list[PostgresConnection] = []
    with pytest.raises(Conflict):
        transact(connection, missing, lambda _: protected(connection, reached.append))
    assert reached == []


def test_rows_that_were_undone_are_not_counted(connection: PostgresConnection) -> None:
    before = connection.changes
    with pytest.raises(Conflict):
        transact(connection, setting("a"), missing)
    assert connection.changes == before
    with connection.transaction():
        setting("a")(connection)
        connection.flush()
        assert connection.changes == before + 1


def test_a_session_that_ends_while_statements_wait_is_told_and_opened_again(
    connection: PostgresConnection, database_url: str
) -> None:
    def end_session(ended: PostgresConnection) -> None:
        ended.flush()
        with psycopg.connect(database_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", (ended.raw.info.backend_pid,))

    with pytest.raises(ServerAway):
        transact(connection, setting("a"), end_session, setting("b"))
    transact(connection, setting("c"))
    assert traits(database_url) == ["c"]


def test_more_than_the_buffers_of_both_sides_hold_can_be_sent(
    connection: PostgresConnection, database_url: str
) -> None:
    transact(connection, *(setting(f"n{number:03}", "x" * 100_000) for number in range(200)))
    assert len(traits(database_url)) == 200


def test_a_commit_that_the_server_gets_to_late_is_waited_for(database_url: str) -> None:
    open_database(database_url).close()
    proxy = GatedProxy(Path(str(psycopg.conninfo.conninfo_to_dict(database_url)["host"])) / ".s.PGSQL.5432")
    with proxy.listening() as port:
        url = psycopg.conninfo.make_conninfo(database_url, host="127.0.0.1", port=port, sslmode="disable")
        connection = PostgresConnection(parse_address(url), WriterMark(token="t"))
        session = connection.raw.info.backend_pid

        def stop(_: PostgresConnection) -> None:
            os.kill(session, signal.SIGSTOP)

        try:
            with pytest.raises(CommitUnknown) as unknown:
                transact(connection, written("a"), stop, lambda _: proxy.cut_after(b"COMMIT"))
            proxy.open()
            with pytest.raises(Locked):  # not: it is not there, which would let it be written twice
                unknown.value.confirm()
        finally:
            os.kill(session, signal.SIGCONT)
        assert until_it_is_known(unknown.value)
        assert traits(database_url) == ["a"]
        connection.close()


def until_it_is_known(commit: CommitUnknown) -> bool:
    while True:
        with suppress(Locked):
            return commit.confirm()


async def test_a_process_that_hangs_in_a_transaction_costs_no_driver_its_run(
    connection: PostgresConnection, database_url: str
) -> None:
    store = open_postgres(database_url)
    run = (await store.runs.create(new_run("run1"))).id
    claim = await store.leases.claim(run, DRIVER, 0, NOW, NOW + LEASE_SECONDS)
    with suppress(StoreFailed), connection.transaction():
        connection.lock(lambda: Locks(runs=(run,)))
        connection.flush()
        assert not await store.leases.beat(run, claim.epoch, NOW + 2 * LEASE_SECONDS, 1.0, RunState.RUNNING)
    assert connection.is_lost
    await store.maintenance.close()

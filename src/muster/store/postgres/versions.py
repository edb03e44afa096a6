"""The version of the tables of a PostgreSQL database: brought up to date, and noticed when it is a newer one."""

from muster.domain.errors import StoreFailed
from muster.store.postgres.connection import PostgresConnection
from muster.store.queries import POSTGRES, DatabaseConnection, Locks, migrations, newest_version, upgraded
from muster.store.tables import TABLES

MIGRATION = "migration"  # the lock under which tables are made and changed


def migrate(connection: PostgresConnection) -> None:
    """Bring the tables up to this version, one process at a time; a newer one is refused."""
    newest = newest_version(POSTGRES)
    if stored_version(connection) == newest:
        return
    with connection.transaction():
        connection.lock(lambda: Locks(names=(MIGRATION,)))
        version = stored_version(connection)  # another process may have been faster
        if version > newest:
            raise StoreFailed(
                f"the store {connection.address} has version {version}; this program supports versions up to {newest}",
                suggestions=("upgrade muster, or use another database",),
            )
        if version == 0:
            connection.execute("make_schema", {})
        elif version < newest:
            _require_undriven(connection)
        for number, _, text in migrations(POSTGRES):
            if number > version:
                connection.script(text)
                connection.execute("put_version", {"version": number})


def require_known_tables(database: DatabaseConnection) -> None:
    """Raise StoreFailed when a newer program has changed the tables since this one opened them."""
    version, newest = database.rows("select_version", {})[0]["version"], newest_version(POSTGRES)
    if version > newest:
        raise upgraded(version, newest)


def require_usable(database: DatabaseConnection) -> None:
    """Raise StoreFailed when a write would be refused: by other tables, none, a standby, or for want of a right.

    The server checks all of that for a statement that finds no row. A row that is changed would give the transaction a
    number, which wakes every process that looks for those of others.
    """
    require_known_tables(database)
    missing = [
        row["name"] for row in database.rows_of_many("select_missing_tables", [{"name": name} for name in TABLES])
    ]
    if missing:
        raise StoreFailed(
            f"the store has lost tables: {', '.join(missing)}",
            suggestions=("restore it from a backup, or use an empty database",),
        )
    database.execute("touch", {})


def stored_version(connection: PostgresConnection) -> int:
    """Return the version of the tables; 0 when there are none."""
    if not connection.rows("find_schema", {})[0]["found"]:
        return 0
    return int(connection.rows("select_version", {})[0]["version"] or 0)


def _require_undriven(connection: PostgresConnection) -> None:
    """Refuse to change the tables under an older program that is at work: what it is about to write would be lost."""
    driven = connection.rows("select_driven", {"now": connection.now()})
    if driven:
        run, host = driven[0]["id"], driven[0]["driver_host"]
        raise StoreFailed(
            f"the store {connection.address} must be upgraded, and run {run} is in progress on {host}",
            suggestions=("wait until it has ended, or stop it; after a crash wait 15 seconds; then try again",),
        )

"""Failures of PostgreSQL as errors that say what happened, where, and what to do; passwords are never in them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from muster.domain.errors import (
    BadArgument,
    BadConfiguration,
    KeyTaken,
    MusterError,
    StoreAway,
    StoreFailed,
    StoreUnreachable,
)
from muster.store.queries import Locked

JOURNAL_KEY = "journal_by_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresAddress:
    """Where a database is: the address as it was given, and as it is shown."""

    url: str = field(repr=False)  # may hold a password
    shown: str

    def __str__(self) -> str:
        return self.shown


def parse_address(url: str) -> PostgresAddress:
    """Read the address of a database; raises BadConfiguration without showing what may be a password."""
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items() if value}
    except psycopg.Error:
        raise _no_address() from None
    hosts, ports = parts.get("host", "").split(","), parts.get("port", "").split(",")
    if any("@" in name for name in (*hosts, *ports)):
        raise _no_address()  # libpq takes what follows an @ in a password for the host
    if len(ports) == 1:  # one for all of them
        ports *= len(hosts)
    places = ",".join(f"{host or 'localhost'}{port and f':{port}'}" for host, port in zip(hosts, ports, strict=False))
    user = parts.get("user", "")
    return PostgresAddress(
        url=url, shown=f"postgresql://{user}{'@' if user else ''}{places}/{parts.get('dbname') or user}"
    )


def _no_address() -> BadConfiguration:
    return BadConfiguration(
        "the address of the store is not that of a PostgreSQL database",
        suggestions=(
            "write it like postgresql://USER@HOST:5432/DATABASE, and set PGPASSWORD",
            "escape special characters of a password in it: %40 for @",
        ),
    )


class ServerAway(Locked, StoreAway):
    """The server does not answer, or has ended the connection; nothing of the transaction was written."""


class ServerUnreachable(ServerAway, StoreUnreachable):
    """Nobody takes connections there, or not yet."""


class ServerFull(Locked, StoreAway):
    """The disk of the server has no room; nothing of the transaction was written."""

    pause = 0.25
    refuses_new = True


def why_it_waits(address: PostgresAddress, error: Locked, answers: int) -> str:
    """Return what is said of a write that waits."""
    if isinstance(error, ServerFull):
        waiting = "1 answer waits" if answers == 1 else f"{answers} answers wait"
        return (
            f"{error.message}; {waiting} in memory, and no calls are started. "
            "Free some space there, and they are stored; press Ctrl-C twice to wait no longer"
        )
    return (
        f"waiting for the store {address}: its server does not answer, or another process is writing to it; "
        "press Ctrl-C twice to wait no longer"
    )


# What the server says about a connection that it refuses; there is no code for it before the session has begun.
_REFUSALS: Mapping[str, tuple[str, str]] = {
    "root certificate file": (
        "cannot be trusted: the file of sslrootcert is missing or is not a certificate",
        "correct sslrootcert in the address (or PGSSLROOTCERT), or use sslrootcert=system",
    ),
    "certificate file": (
        "cannot be asked: the file of sslcert is missing",
        "correct sslcert and sslkey in the address",
    ),
    "private key file": ("cannot be asked: the file of sslkey is missing", "correct sslcert and sslkey in the address"),
    "password authentication failed": ("refuses the password", "check the user, and the password or PGPASSWORD"),
    "no password supplied": ("wants a password", "set PGPASSWORD, or put it into MUSTER_DATABASE_URL"),
    "does not exist": ("does not know it", "create the database or the user, or correct the address"),
    "no pg_hba.conf entry": ("refuses this machine or user", "allow it in pg_hba.conf, or use sslmode=require"),
    "certificate verify failed": ("has a certificate that is not trusted", "set sslrootcert in the address"),
    "does not support ssl": ("speaks no TLS", "set sslmode=disable in the address, or turn TLS on"),
    "too many clients": ("has no connection left", "raise max_connections, or run fewer processes"),
    "connection slots are reserved": ("has no connection left", "raise max_connections, or run fewer processes"),
}

_POOLER = "is reached through a connection pooler in transaction mode, such as PgBouncer"
_DIRECTLY = "connect to the server directly, or set pool_mode = session in the pooler"

_RETRIED = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)

_EXPLANATIONS: Mapping[type[psycopg.Error], tuple[str, str]] = {
    # What was prepared belongs to a session, and the pooler has given the next transaction another one.
    errors.InvalidSqlStatementName: (_POOLER, _DIRECTLY),
    errors.DuplicatePreparedStatement: (_POOLER, _DIRECTLY),
    errors.InsufficientPrivilege: (
        "may not be used by this user",
        "make the user the owner of the database, or GRANT CREATE ON SCHEMA public to it",
    ),
    errors.UndefinedTable: ("has lost tables", "restore it from a backup, or use an empty database"),
}


def explain_connect(address: PostgresAddress, error: psycopg.Error) -> StoreFailed:
    """Make the error for a connection that could not be opened."""
    said = _first_line(error)
    for words, (what, remedy) in _REFUSALS.items():
        if words in str(error).lower():
            return ServerAway(f"the server of the store {address} {what}: {said}", suggestions=(remedy,))
    return ServerUnreachable(
        f"the server of the store {address} cannot be reached: {said}",
        suggestions=("start it, or check host and port in MUSTER_DATABASE_URL",),
    )


def pooled(address: PostgresAddress) -> StoreFailed:
    """Make the error for a pooler that gives one session of the server to several of ours."""
    return StoreFailed(f"the store {address} {_POOLER}: two sessions are one there", suggestions=(_DIRECTLY,))


def read_only(address: PostgresAddress, said: str) -> ServerAway:
    """Make the error for a server that takes no writes, which may be over with the next session: after a failover."""
    return ServerAway(
        f"the store {address} cannot be written: {said}",
        suggestions=("use the address of the primary server, not of a standby",),
    )


def explain_query(address: PostgresAddress, error: psycopg.Error, *, broken: bool) -> MusterError:
    """Make the error for a query that failed."""
    said = _first_line(error)
    if broken:
        return ServerAway(f"the connection to the store {address} was lost: {said}", suggestions=("try again",))
    if isinstance(error, _RETRIED):
        return Locked(f"another process is writing to the store {address}: {said}")
    if isinstance(error, errors.DiskFull):
        return ServerFull(
            f"the store {address} cannot grow: the disk of the server is full ({said})",
            suggestions=("free some space there; nothing was half-written; then resume",),
        )
    if isinstance(error, errors.UniqueViolation) and error.diag.constraint_name == JOURNAL_KEY:
        return KeyTaken("the journal already has an entry under this key")
    if isinstance(error, psycopg.DataError) and "NUL" in said:
        return BadArgument("a text contains a NUL character, which PostgreSQL does not store")
    for kind, (what, remedy) in _EXPLANATIONS.items():
        if isinstance(error, kind):
            return StoreFailed(f"the store {address} {what}: {said}", suggestions=(remedy,))
    return StoreFailed(f"the store {address} failed: {said} ({type(error).__name__})")


@contextmanager
def explained(address: PostgresAddress, raw: "psycopg.Connection[object]") -> Iterator[None]:
    """Turn failures of queries into errors that a person can act on."""
    try:
        yield
    except errors.ReadOnlySqlTransaction as error:
        raw.close()
        raise read_only(address, _first_line(error)) from error
    except psycopg.Error as error:
        raise explain_query(address, error, broken=raw.broken or raw.closed) from error


def _first_line(error: psycopg.Error) -> str:
    """Return the first line: what follows are values of rows, which are private."""
    lines = str(error).strip().splitlines()
    return lines[0].removesuffix(".") if lines else type(error).__name__

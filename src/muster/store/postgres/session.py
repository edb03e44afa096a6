"""A session with a PostgreSQL server: opened so that a server that is gone is noticed, and refused if it is too old."""

from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from muster.domain.errors import StoreFailed
from muster.store.postgres.failures import PostgresAddress, explain_connect

OLDEST_SERVER = 140000
CHANGES, OFFERS = "muster", "muster_offers"  # channels of notifications: any commit, and runs that became due
WATCHED = "changes are waited for"  # the lock of sessions that listen to all changes

_DEFAULTS = {
    "connect_timeout": "10",
    "application_name": "muster",
    # A connection whose other end is gone without a word is noticed within the time of a lease.
    "keepalives": "1",
    "keepalives_idle": "4",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}


class WholeNumberLoader(Loader):
    """Reads sums of whole numbers, which PostgreSQL returns as `numeric`, as whole numbers."""

    def load(self, data: Buffer) -> int:
        """Read one value."""
        return int(bytes(data))


def connect(address: PostgresAddress) -> "psycopg.Connection[Any]":
    """Open a session; raises StoreFailed for a server that is away, refuses it, is too old or not for UTF-8."""
    given = conninfo_to_dict(address.url)
    place = make_conninfo(address.url, **{name: value for name, value in _DEFAULTS.items() if name not in given})
    try:
        raw = psycopg.connect(place, autocommit=True, client_encoding="UTF8")
    except psycopg.Error as error:
        raise explain_connect(address, error) from None  # its chain may hold the address
    if raw.info.server_version < OLDEST_SERVER:
        raw.close()
        raise StoreFailed(
            f"the server of the store {address} has version {raw.info.server_version // 10000}",
            suggestions=(f"use PostgreSQL {OLDEST_SERVER // 10000} or newer",),
        )
    if raw.info.parameter_status("server_encoding") != "UTF8":
        raw.close()
        raise StoreFailed(
            f"the store {address} cannot hold all texts: its encoding is not UTF8",
            suggestions=("CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",),
        )
    # One type for all whole numbers: else the server would prepare a query for every combination of sizes.
    raw.adapters.register_dumper(int, Int8Dumper)
    raw.adapters.register_dumper(int, Int8BinaryDumper)
    raw.adapters.register_loader("numeric", WholeNumberLoader)
    return raw

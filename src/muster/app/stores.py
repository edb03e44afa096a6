"""Which store the settings choose: a file, or a database that several machines share."""

import asyncio
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muster.domain.errors import BadConfiguration
from muster.settings import Settings
from muster.store.base import Store
from muster.store.sqlite import open_sqlite


def _nowhere(point: str) -> None:
    """Pass a kill point without dying."""


def _unheard(words: str) -> None:
    """Ignore the message."""


async def open_store(
    settings: Settings,
    *,
    reach: Callable[[str], None] = _nowhere,
    on_wait: Callable[[str], None] = _unheard,
    create: bool = True,
) -> Store:
    """Open the store of the settings; a server that takes its time does not keep the event loop waiting.

    Without `create` a file that is not there is not made. The tables of a database that is named are made in any case.
    """
    place = settings.database if settings.database_url is None else settings.database_url
    if isinstance(place, Path):
        return open_sqlite(place, secrets=settings.secrets, reach=reach, on_wait=on_wait, create=create)
    postgres = load_postgres()
    preparing = asyncio.ensure_future(asyncio.to_thread(postgres.prepare_postgres, place))
    try:
        prepared = await asyncio.shield(preparing)
    except asyncio.CancelledError:
        preparing.add_done_callback(lambda done: done.exception() or done.result().close())
        raise
    store: Store = postgres.PostgresStore(prepared, secrets=settings.secrets, reach=reach, on_wait=on_wait)
    return store


def load_postgres() -> Any:
    """Load what opens databases, which takes longer than a short command; raises BadConfiguration without psycopg."""
    try:
        return importlib.import_module("muster.store.postgres.store")
    except ImportError as error:
        raise BadConfiguration(
            "the store is a PostgreSQL database, and the package psycopg is not installed",
            suggestions=("pip install 'muster-ai[postgres]'", "or unset MUSTER_DATABASE_URL to use a file"),
        ) from error

"""Which store the settings choose: a file, or a database that several machines share."""

import importlib
from collections.abc import Callable, Sequence
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


def open_store(
    settings: Settings,
    *,
    reach: Callable[[str], None] = _nowhere,
    on_wait: Callable[[str], None] = _unheard,
    create: bool = True,
) -> Store:
    """Open the store of the settings; call inside a running event loop.

    Without `create` a file that is not there is not made. The tables of a database that is named are made in any case.
    """
    place = settings.database if settings.database_url is None else settings.database_url
    return open_store_at(place, secrets=settings.secrets, reach=reach, on_wait=on_wait, create=create)


def open_store_at(
    place: Path | str,
    *,
    secrets: Sequence[str] = (),
    reach: Callable[[str], None] = _nowhere,
    on_wait: Callable[[str], None] = _unheard,
    create: bool = True,
) -> Store:
    """Open the store of a file, or of a database."""
    if isinstance(place, Path):
        return open_sqlite(place, secrets=secrets, reach=reach, on_wait=on_wait, create=create)
    store: Store = load_postgres().open_postgres(place, secrets=secrets, reach=reach, on_wait=on_wait)
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

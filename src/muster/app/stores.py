"""Which store the settings choose: a file, or a database that several machines share."""

from collections.abc import Callable, Sequence
from pathlib import Path

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
    try:
        from muster.store.postgres.store import open_postgres
    except ImportError as error:
        raise missing_driver() from error
    return open_postgres(place, secrets=secrets, reach=reach, on_wait=on_wait)


def missing_driver() -> BadConfiguration:
    """Make the error for a database that cannot be spoken to."""
    return BadConfiguration(
        "the store is a PostgreSQL database, and the package psycopg is not installed",
        suggestions=("pip install 'muster-ai[postgres]'", "or unset MUSTER_DATABASE_URL to use a file"),
    )

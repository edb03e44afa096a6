from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from muster.store.base import Store
from muster.store.postgres.store import open_postgres
from muster.store.sqlite.store import open_sqlite
from muster.testing.stores import CHECKS, SECRET, Check


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = open_sqlite(tmp_path / "muster.db", secrets=[SECRET])
    yield opened
    await opened.maintenance.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_store_on_sqlite(check: Check, store: Store) -> None:
    await check(store)


@pytest.fixture
async def postgres_store(database_url: str) -> AsyncIterator[Store]:
    opened = open_postgres(database_url, secrets=[SECRET])
    yield opened
    await opened.maintenance.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_store_on_postgres(check: Check, postgres_store: Store) -> None:
    await check(postgres_store)

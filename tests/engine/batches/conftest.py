"""What the proofs of batches share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from muster.app import Muster
from tests.engine.batches.house import PROVIDERS, House, open_house


@pytest.fixture(params=PROVIDERS)
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A folder before a server whose batches end at once."""
    async with open_house(tmp_path / "house") as opened:
        yield opened


@pytest.fixture
async def muster(house: House) -> AsyncIterator[Muster]:
    async with house.open() as opened:
        yield opened

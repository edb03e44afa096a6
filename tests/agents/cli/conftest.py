"""One household for each test, which must be empty when the test is over."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from muster.agents.processes.household import Household
from muster.agents.processes.identity import this_process
from muster.testing.processes import RememberedProcesses

from .stage import Stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    remembered = RememberedProcesses()
    household = Household(remembered, this_process())
    stage = Stage(household, remembered, tmp_path)
    yield stage
    await household.close()
    assert (household.at_work, remembered.noted, stage.alive()) == (0, {}, [])

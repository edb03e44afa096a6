"""A stage for each test, over a household that must be empty when the test is over."""

from pathlib import Path

import pytest

from muster.agents.processes.registry import Household
from muster.testing.processes import RememberedProcesses

from .stage import Stage


@pytest.fixture
def stage(tmp_path: Path, household: Household, remembered: RememberedProcesses) -> Stage:
    return Stage(household, remembered, tmp_path)

"""A stage for each test, over a registry that must be empty when the test is over."""

from pathlib import Path

import pytest

from muster.agents.processes.registry import ProcessRegistry
from muster.testing.agents import RememberedProcesses

from .stage import Stage


@pytest.fixture
def stage(tmp_path: Path, processes: ProcessRegistry, remembered: RememberedProcesses) -> Stage:
    return Stage(processes, remembered, tmp_path)

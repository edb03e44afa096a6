"""What the crash proofs share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.stage import FAULTS, Stage
from tests.rehearsal import ForkedRehearsal


@pytest.fixture
def sim() -> Iterator[ForkedRehearsal]:
    """A rehearsal server that takes its time, so that there is something on the wire when a process dies."""
    with ForkedRehearsal(latency_ms=40) as running:
        yield running


@pytest.fixture
def stage(tmp_path: Path, sim: ForkedRehearsal) -> Stage:
    """A folder of its own before the rehearsal server."""
    return Stage(tmp_path / "stage", sim)


@pytest.fixture
def rough_stage(tmp_path: Path) -> Iterator[Stage]:
    """A folder of its own before a server where much goes wrong."""
    with ForkedRehearsal(latency_ms=10, faults=FAULTS) as running:
        yield Stage(tmp_path / "stage", running)

from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.testing.sim import RehearsalProcess

from .shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def slow_batches() -> Iterator[RehearsalProcess]:
    """A provider whose batches take long enough to leave them, and to find them under way with the next command."""
    with RehearsalProcess(batch_ms=6000) as process:
        yield process


@pytest.fixture
def endless_batches() -> Iterator[RehearsalProcess]:
    """A provider whose batches do not end while a test runs."""
    with RehearsalProcess(batch_ms=600_000) as process:
        yield process


@pytest.fixture
def rehearsal() -> Iterator[RehearsalProcess]:
    with RehearsalProcess() as process:
        yield process

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rehearsal import ForkedRehearsal

from .shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def slow_batches() -> Iterator[ForkedRehearsal]:
    """A provider whose batches take long enough to leave them, and to find them under way with the next command."""
    with ForkedRehearsal(batch_ms=6000) as process:
        yield process


@pytest.fixture
def endless_batches() -> Iterator[ForkedRehearsal]:
    """A provider whose batches do not end while a test runs."""
    with ForkedRehearsal(batch_ms=600_000) as process:
        yield process


@pytest.fixture
def rehearsal() -> Iterator[ForkedRehearsal]:
    with ForkedRehearsal() as process:
        yield process

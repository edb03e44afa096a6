from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.testing.sim import RehearsalProcess

from .shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def rehearsal() -> Iterator[RehearsalProcess]:
    with RehearsalProcess() as process:
        yield process

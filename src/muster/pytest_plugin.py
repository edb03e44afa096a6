"""The pytest plugin: a fixture for tests of workloads. Nothing else is loaded before a test asks for it."""

from collections.abc import Iterator

import pytest

import muster


@pytest.fixture
def muster_test() -> "Iterator[muster.testing.MusterTest]":
    """Give a Muster of its own: `muster_test.agents["desk"] = …`, then `async with muster_test.open() as m:`."""
    with muster.testing.memory_folder() as folder:
        yield muster.testing.MusterTest(folder, muster.testing.FakeClock())

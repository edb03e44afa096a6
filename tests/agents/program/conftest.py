"""A household whose processes are all seen dead when a test is over."""

from collections.abc import AsyncIterator

import pytest

from muster.agents.processes.household import Household
from muster.agents.processes.identity import this_process
from muster.testing.processes import RememberedProcesses
from tests.agents.program.stage import alive


@pytest.fixture
def remembered() -> RememberedProcesses:
    return RememberedProcesses()


@pytest.fixture
async def household(remembered: RememberedProcesses) -> AsyncIterator[Household]:
    household = Household(remembered, this_process())
    yield household
    assert household.at_work == 0, "a call left a process behind"
    await household.close()
    assert remembered.noted == {}
    assert not remembered.seen or not alive(remembered)

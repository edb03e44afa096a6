"""The states of tasks under many more orders of commands than `tests/pool/test_states.py` tries."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.pool.test_states import TaskStates

MANY = settings(max_examples=80, stateful_step_count=40, deadline=None)


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_no_long_order_of_commands_makes_an_illegal_step() -> None:
    run_state_machine_as_test(TaskStates, settings=MANY)

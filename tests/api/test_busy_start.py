"""A server that has just started, with battles to take up and many watchers: it lives, and nobody misses an event."""

import sys

import pytest
from bench.processes import run_child

ROUNDS = 20
WATCHERS = 1_000


@pytest.mark.chaos
@pytest.mark.one_server
@pytest.mark.timeout(3600)
def test_ten_battles_and_their_watchers_at_the_start_end_no_server() -> None:
    rounds = [run_child([sys.executable, "-m", "bench.streams", str(WATCHERS)]) for _ in range(ROUNDS)]
    assert [found["complete"] for found in rounds] == [WATCHERS] * ROUNDS

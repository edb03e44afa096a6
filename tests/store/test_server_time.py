"""The time of a server, as a machine with a clock of its own knows it."""

import time
from typing import Any, cast

import pytest

from muster.store.postgres.server_time import OLD_SECONDS, STALE_SECONDS, ServerTime
from muster.store.queries import DatabaseConnection


class Clocks:
    """A server whose answer takes a while, and the monotonic clock of this machine."""

    def __init__(self) -> None:
        self.here, self.there, self.takes = 50.0, 9_000_000.0, 0.0

    def rows(self, query: str, parameters: Any) -> Any:
        assert query == "select_time"
        self.pass_(self.takes / 2)
        answer = [{"now": self.there}]
        self.pass_(self.takes / 2)
        return answer

    def pass_(self, seconds: float) -> None:
        self.here, self.there = self.here + seconds, self.there + seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def asked(clocks: Clocks, takes: float = 0.0) -> ServerTime:
    """Return the time of a server that was asked once."""
    found = ServerTime(lambda: clocks.here)
    ask(found, clocks, takes)
    return found


def ask(found: ServerTime, clocks: Clocks, takes: float) -> None:
    clocks.takes = takes
    found.ask(cast(DatabaseConnection, clocks))


def test_the_time_goes_on_from_the_answer_by_the_monotonic_clock(clocks: Clocks) -> None:
    found = asked(clocks, takes=0.2)
    clocks.pass_(3.0)
    assert found.now() == pytest.approx(clocks.there)


def test_the_server_is_asked_again_after_some_seconds(clocks: Clocks) -> None:
    found = asked(clocks)
    stale, old = [found.is_stale], [found.is_old]
    clocks.pass_(OLD_SECONDS + 1)
    stale.append(found.is_stale)
    old.append(found.is_old)
    clocks.pass_(STALE_SECONDS - OLD_SECONDS)
    stale.append(found.is_stale)
    clocks.there += 7.0  # somebody set its clock
    ask(found, clocks, 0.0)
    assert [*stale, found.is_stale] == [False, False, True, False]
    assert [*old, found.is_old] == [False, True, False]
    assert found.now() == pytest.approx(clocks.there)


def test_an_answer_that_took_long_counts_only_if_there_is_no_other(clocks: Clocks) -> None:
    found = asked(clocks, takes=10.0)
    assert found.now() == pytest.approx(clocks.there)
    clocks.there += 7.0
    ask(found, clocks, 10.0)
    assert found.now() == pytest.approx(clocks.there - 7.0)


def test_before_the_first_answer_it_is_the_time_of_this_machine() -> None:
    before = time.time()
    assert before <= ServerTime().now() <= time.time()

"""Deadlines: the time left is divided by what phases took, and a phase needs a quorum."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.councils.deadlines import PhaseTime, call_seconds, phase_seconds, quorum_of
from muster.councils.rules.values import CouncilPhase
from muster.domain.errors import BadArgument

PROPOSE, EVALUATE = CouncilPhase.PROPOSE, CouncilPhase.EVALUATE


@pytest.mark.parametrize(
    ("members", "share", "needed"),
    [
        (2, 2 / 3, 2),
        (3, 2 / 3, 2),
        (3, 0.67, 2),
        (4, 2 / 3, 3),
        (6, 0.67, 4),
        (9, 0.67, 6),
        (5, 0.5, 3),
        (3, 0.1, 2),
        (3, 1, 3),
    ],
)
def test_a_quorum_is_a_share_of_the_members_and_at_least_two(members: int, share: float, needed: int) -> None:
    assert quorum_of(members, share) == needed


@pytest.mark.parametrize("share", [0, -1, 1.01])
def test_a_quorum_that_cannot_be_met_or_missed_is_refused(share: float) -> None:
    with pytest.raises(BadArgument, match="quorum must be above 0 and at most 1"):
        quorum_of(3, share)


def test_before_anything_was_seen_all_phases_get_the_same() -> None:
    assert phase_seconds(60, PROPOSE, 3) == 10
    assert phase_seconds(50, EVALUATE, 3) == 10
    assert phase_seconds(10, EVALUATE, 1) == 10
    assert phase_seconds(None, PROPOSE, 3) is None
    assert phase_seconds(-5, PROPOSE, 3) == 0


def test_a_phase_that_takes_longer_gets_more_of_what_is_left() -> None:
    seen = [PhaseTime(phase=PROPOSE, seconds=9), PhaseTime(phase=EVALUATE, seconds=3)]
    assert phase_seconds(48, PROPOSE, 2, seen) == pytest.approx(18)
    assert phase_seconds(30, EVALUATE, 2, seen) == pytest.approx(6)
    only_one = [PhaseTime(phase=PROPOSE, seconds=9)]
    assert phase_seconds(30, EVALUATE, 2, only_one) == pytest.approx(10)


def test_a_phase_that_was_quick_once_gets_time_to_be_slow() -> None:
    seen = [PhaseTime(phase=PROPOSE, seconds=0.001), PhaseTime(phase=EVALUATE, seconds=20)]
    assert phase_seconds(100, PROPOSE, 1, seen) == 20
    nothing = [PhaseTime(phase=phase, seconds=0.0) for phase in CouncilPhase]
    assert phase_seconds(100, PROPOSE, 1, nothing) == 50


@given(st.floats(1, 1000), st.integers(1, 5), st.lists(st.tuples(st.sampled_from(CouncilPhase), st.floats(0, 100))))
def test_phases_that_use_all_they_get_use_all_that_is_left_and_no_more(
    left: float, rounds: int, seen: list[tuple[CouncilPhase, float]]
) -> None:
    observed = [PhaseTime(phase=phase, seconds=seconds) for phase, seconds in seen]
    rest = left
    for number in range(rounds, 0, -1):
        for phase in CouncilPhase:
            allowed = phase_seconds(rest, phase, number, observed)
            assert allowed is not None
            assert 0 <= allowed <= rest * (1 + 1e-9)
            rest -= allowed
    assert rest == pytest.approx(0, abs=left * 1e-6)


@pytest.mark.parametrize(
    ("own", "left", "seconds"),
    [(None, None, inf), (5, None, 5), (None, 3, 3), (5, 3, 3), (2, 3, 2), (5, 0, 0), (5, -1, 0)],
)
def test_a_call_is_bounded_by_its_own_time_and_by_what_is_left(
    own: float | None, left: float | None, seconds: float
) -> None:
    assert call_seconds(own, left) == seconds


def test_a_phase_belongs_to_a_round() -> None:
    with pytest.raises(BadArgument, match="rounds_left must be 1 or more"):
        phase_seconds(10, PROPOSE, 0)

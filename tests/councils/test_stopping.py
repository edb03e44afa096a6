"""Stopping: conviction, evidence, the reasons in their order, and that more conviction never takes longer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.councils.rules.scoring import score_round
from muster.councils.rules.stopping import (
    ROUND_WEIGHT,
    Conditions,
    StopReason,
    StopRule,
    conviction_of,
    decide,
    evidence_budget,
    evidence_of,
)
from muster.domain.errors import BadArgument
from muster.domain.money import Microdollars
from tests.councils.cases import evaluation, proposals

FREE = Conditions(candidates=3, members=3)


def test_conviction_is_the_support_of_the_winner_over_all_support() -> None:
    score = score_round(proposals("ada", "bob"), [evaluation("ada", bob=80), evaluation("bob", ada=-5)], seed=1)
    assert conviction_of(score) == 0.5


@pytest.mark.parametrize("weights", [(80, 5), (-80, -5), (0, 0), (0, -5)])
def test_a_tie_and_a_round_without_a_winner_are_no_evidence(weights: tuple[float, float]) -> None:
    said = [evaluation("ada", bob=weights[0]), evaluation("bob", ada=weights[1])]
    assert conviction_of(score_round(proposals("ada", "bob"), said, seed=1)) == 0


def test_evidence_adds_up_with_less_weight_each_round_and_never_below_nothing() -> None:
    assert evidence_of([]) == 0
    assert evidence_of([0.5, 0.4]) == pytest.approx(0.5 + 0.4 * ROUND_WEIGHT)
    assert evidence_of([-1.0, 0.4, 0.4]) == pytest.approx(0.4 * ROUND_WEIGHT + 0.4 * ROUND_WEIGHT**2)


def test_a_council_is_convinced_at_its_effort_and_not_before_its_least_rounds() -> None:
    rule = StopRule(max_rounds=5, effort=0.5)
    just_enough = round(0.5 * evidence_budget(3), 12)
    assert decide(rule, [just_enough - 0.001], FREE).reason is None
    decision = decide(rule, [just_enough], FREE)
    assert (decision.reason, decision.evidence, decision.needed) == (StopReason.CONVINCED, just_enough, just_enough)
    assert decide(StopRule(max_rounds=5, min_rounds=2, effort=0.5), [just_enough], FREE).reason is None


def test_effort_one_is_what_evenly_split_support_never_reaches() -> None:
    for candidates in (2, 3, 8):
        split = [1 / candidates] * 30
        assert evidence_of(split) < evidence_budget(candidates)
        assert evidence_of(split) == pytest.approx(evidence_budget(candidates))


def test_no_evidence_convinces_nobody_even_without_effort() -> None:
    assert decide(StopRule(effort=0), [0.0], FREE).reason is None
    assert decide(StopRule(effort=0), [0.01], FREE).reason is StopReason.CONVINCED


@pytest.mark.parametrize(
    ("convictions", "conditions", "reason", "words"),
    [
        ([0.1, 0.1, 0.1], FREE, StopReason.ROUNDS, "round 3 was the last"),
        ([0.1], Conditions(candidates=3, members=3, stop_signal=True), StopReason.STOPPED, "after round 1"),
        ([], Conditions(candidates=3, members=3, stop_signal=True), StopReason.STOPPED, "after round 0"),
        ([0.1], Conditions(candidates=3, members=1), StopReason.MEMBERS, "1 of at least 2 agents"),
        (
            [0.1],
            Conditions(candidates=3, members=2, money_left=Microdollars(90_000), last_round_cost=Microdollars(100_000)),
            StopReason.BUDGET,
            "$0.0900 are left; the last round cost $0.1000",
        ),
        (
            [0.1],
            Conditions(candidates=3, members=2, seconds_left=4.9, last_round_seconds=10),
            StopReason.TIME,
            "4.9 s are left",
        ),
        ([0.1], Conditions(candidates=3, members=2, seconds_left=0), StopReason.TIME, "0.0 s are left"),
        (
            [0.1],
            Conditions(
                candidates=3, members=2, money_left=Microdollars(10), last_round_cost=Microdollars(10), seconds_left=9
            ),
            None,
            "evidence 0.100 (0.400 needed) after round 1 of 3",
        ),
        (
            [0.9],
            Conditions(candidates=3, members=1, money_left=Microdollars(0), last_round_cost=Microdollars(1)),
            StopReason.CONVINCED,
            "evidence 0.900 (0.400 needed) was reached after round 1",
        ),
        ([0.9], Conditions(candidates=3, members=3, stop_signal=True), StopReason.STOPPED, "signal"),
    ],
)
def test_the_first_reason_that_holds_is_the_reason(
    convictions: list[float], conditions: Conditions, reason: StopReason | None, words: str
) -> None:
    decision = decide(StopRule(max_rounds=3, effort=0.6), convictions, conditions)
    assert decision.reason is reason
    assert words in decision.detail


@pytest.mark.parametrize(
    "wrong", [{"max_rounds": 0}, {"min_rounds": 4}, {"min_rounds": 0}, {"effort": 1.1}, {"effort": -0.1}]
)
def test_a_rule_that_no_council_can_follow_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadArgument, match="must be from"):
        StopRule(**wrong)  # type: ignore[arg-type]


CONVICTIONS = st.lists(st.floats(-1, 1), min_size=1, max_size=6)


@given(CONVICTIONS, st.lists(st.floats(0, 1), min_size=6, max_size=6), st.floats(0, 1), st.integers(1, 6))
def test_more_conviction_never_takes_longer(
    convictions: list[float], more: list[float], effort: float, least: int
) -> None:
    rule = StopRule(max_rounds=10, min_rounds=least, effort=effort)
    surer = [one + add for one, add in zip(convictions, more, strict=False)]
    if decide(rule, convictions, FREE).reason is StopReason.CONVINCED:
        assert decide(rule, surer, FREE).reason is StopReason.CONVINCED


@given(CONVICTIONS, st.floats(0, 1), st.floats(0, 1), st.floats(-1, 1))
def test_less_effort_or_another_round_never_takes_a_conviction_back(
    convictions: list[float], effort: float, share: float, another: float
) -> None:
    if decide(StopRule(max_rounds=10, effort=effort), convictions, FREE).reason is StopReason.CONVINCED:
        assert decide(StopRule(max_rounds=10, effort=effort * share), convictions, FREE).reason is StopReason.CONVINCED
        assert decide(StopRule(max_rounds=10, effort=effort), [*convictions, another], FREE).reason is not None

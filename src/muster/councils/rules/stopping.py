"""Stopping: when a council has argued enough, and the reason. Pure.

The constants are chosen from the simulation in docs/COUNCILS.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import fsum

from muster.councils.order import DEFAULT_EFFORT, DEFAULT_MIN_ROUNDS, DEFAULT_ROUNDS
from muster.councils.rules.scoring import RoundScore
from muster.domain.errors import BadArgument
from muster.domain.money import NOTHING, Microdollars, to_usd

# Each round counts half of the round before: all members have read the same critiques by then, so their agreement is
# less and less independent evidence. In the simulation lower values gain less, and higher ones seldom stop early.
ROUND_WEIGHT = 0.5
# A round is begun with at least this share of what the last one took: with less, even a quorum seldom answers.
_MIN_TIME = 0.5
_DIGITS = 12  # equal sums of other rounding are equal
MIN_MEMBERS = 2


class StopReason(StrEnum):
    """Why a council ended."""

    STOPPED = "stopped"  # a person sent the signal
    CONVINCED = "convinced"  # the evidence reached what the effort asks for
    ROUNDS = "rounds"  # the last round that is allowed
    MEMBERS = "members"  # fewer than two agents are left
    BUDGET = "budget"  # the money does not suffice for another round
    TIME = "time"  # the time does not suffice for another round


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """What was asked of a council."""

    max_rounds: int = DEFAULT_ROUNDS
    min_rounds: int = DEFAULT_MIN_ROUNDS
    effort: float = DEFAULT_EFFORT

    def __post_init__(self) -> None:
        """Refuse what no council can do."""
        if not 1 <= self.min_rounds <= self.max_rounds:
            raise BadArgument(
                f"min_rounds must be from 1 to max_rounds: {self.min_rounds} and {self.max_rounds} were given"
            )
        if not 0 <= self.effort <= 1:
            raise BadArgument(f"effort must be from 0 to 1, not {self.effort!r}")

    def needed(self, candidates: int) -> float:
        """Return the evidence at which a council is convinced that chooses between so many proposals."""
        return round(self.effort * evidence_budget(candidates), _DIGITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What is left after a round; None where nothing bounds it."""

    candidates: int  # proposals in the last round
    members: int  # that can still be asked
    stop_signal: bool = False
    money_left: Microdollars | None = None
    last_round_cost: Microdollars = NOTHING
    seconds_left: float | None = None
    last_round_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDecision:
    """Whether to stop, why, and how far the evidence is."""

    reason: StopReason | None  # None: another round
    evidence: float
    needed: float
    detail: str  # the numbers behind the reason


def conviction_of(score: RoundScore) -> float:
    """Return the support of the winner over the sum of absolute supports; of a tie, or without a winner, it is 0.

    Evidence is for one proposal against the others, and a tie has none.
    """
    if score.winner is None or score.tied:
        return 0.0
    return score.support_of(score.winner) / fsum(abs(one.support) for one in score.standings)


def evidence_budget(candidates: int, round_weight: float = ROUND_WEIGHT) -> float:
    """Return the evidence that support split evenly over so many proposals would add up to in endless rounds.

    It is less for more proposals, since even a clear winner has a smaller share of all support then.
    """
    return 1 / (max(candidates, 1) * (1 - round_weight))


def evidence_of(convictions: Sequence[float], round_weight: float = ROUND_WEIGHT) -> float:
    """Return the evidence of rounds in their order; a conviction below 0 adds none, and takes none."""
    return round(fsum(max(one, 0.0) * round_weight**place for place, one in enumerate(convictions)), _DIGITS)


def decide(rule: StopRule, convictions: Sequence[float], conditions: Conditions) -> StopDecision:
    """Return whether a council stops after its complete rounds; without any evidence it is never convinced."""
    evidence, needed = evidence_of(convictions), rule.needed(conditions.candidates)
    reason = _reason(rule, len(convictions), evidence, conditions)
    detail = _detail(reason, rule, len(convictions), f"evidence {evidence:.3f} ({needed:.3f} needed)", conditions)
    return StopDecision(reason=reason, evidence=evidence, needed=needed, detail=detail)


def _reason(rule: StopRule, rounds: int, evidence: float, conditions: Conditions) -> StopReason | None:
    """Return the first reason that holds: a person's word first, then a full answer, then what ran out."""
    is_convinced = 0 < evidence >= rule.needed(conditions.candidates)
    tests = {
        StopReason.STOPPED: conditions.stop_signal,
        StopReason.CONVINCED: rounds >= rule.min_rounds and is_convinced,
        StopReason.ROUNDS: rounds >= rule.max_rounds,
        StopReason.MEMBERS: conditions.members < MIN_MEMBERS,
        StopReason.BUDGET: _lacks_money(conditions),
        StopReason.TIME: _lacks_time(conditions),
    }
    return next((reason for reason, holds in tests.items() if holds), None)


def _lacks_money(conditions: Conditions) -> bool:
    left = conditions.money_left
    return left is not None and left < conditions.last_round_cost


def _lacks_time(conditions: Conditions) -> bool:
    left = conditions.seconds_left
    return left is not None and left <= _MIN_TIME * conditions.last_round_seconds


def _detail(reason: StopReason | None, rule: StopRule, rounds: int, evidence: str, conditions: Conditions) -> str:
    match reason:
        case None:
            return f"{evidence} after round {rounds} of {rule.max_rounds}"
        case StopReason.STOPPED:
            return f"a stop signal came after round {rounds}"
        case StopReason.CONVINCED:
            return f"{evidence} was reached after round {rounds}"
        case StopReason.ROUNDS:
            return f"round {rounds} was the last; {evidence}"
        case StopReason.MEMBERS:
            return f"{conditions.members} of at least {MIN_MEMBERS} agents are left"
        case StopReason.BUDGET:
            left, cost = to_usd(conditions.money_left or NOTHING), to_usd(conditions.last_round_cost)
            return f"${left:.4f} are left; the last round cost ${cost:.4f}"
        case StopReason.TIME:
            seconds, took = conditions.seconds_left or 0.0, conditions.last_round_seconds
            return f"{seconds:.1f} s are left; the last round took {took:.1f} s"

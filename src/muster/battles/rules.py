"""When a battle ends by its own rules, from what was decided after each reply. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from muster.battles.values import PLATEAU, BattleDecision, BattleEnding, DecisionSource, GoalVerdict

FINAL = frozenset({GoalVerdict.YES, GoalVerdict.NO})


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleStop:
    """That a battle ends, and why."""

    ending: BattleEnding
    detail: str = ""


def is_reached(decisions: Sequence[BattleDecision]) -> bool:
    """Return whether the decisions of one turn say that the goal is reached.

    A yes of a validator is enough; one of the judge needs that of the confirming judge.
    """
    return any(
        one.verdict is GoalVerdict.YES and one.source in (DecisionSource.VALIDATOR, DecisionSource.CONFIRM)
        for one in decisions
    )


def confidence_of(decisions: Sequence[BattleDecision]) -> float | None:
    """Return how sure the decisions of one turn are that the goal is reached: what the last that said so said."""
    return next((one.confidence for one in reversed(decisions) if one.confidence is not None), None)


def is_plateau(confidences: Sequence[float | None], turns: int) -> bool:
    """Return whether the confidence has not risen in so many turns above the best before them."""
    if len(confidences) <= turns:
        return False
    known = [-1.0 if one is None else one for one in confidences]
    return max(known[-turns:]) <= max(known[:-turns])


def stop_after(
    history: Sequence[Sequence[BattleDecision]], *, limit: int, plateau_turns: int | None
) -> BattleStop | None:
    """Return why a battle ends after its last turn; None when it goes on. `history` has the decisions of each turn."""
    if history and is_reached(history[-1]):
        return BattleStop(ending=BattleEnding.GOAL)
    if len(history) >= limit:
        return BattleStop(ending=BattleEnding.LIMIT)
    if plateau_turns is not None and is_plateau([confidence_of(one) for one in history], plateau_turns):
        return BattleStop(ending=BattleEnding.LIMIT, detail=PLATEAU)
    return None

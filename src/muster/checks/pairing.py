"""Two runs laid side by side: which epochs of which cases are compared, and which only one of them has."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.checks.comparison import Change, Outcome
from muster.domain.verdict import NOT_RUN, Status

Outcomes = Mapping[tuple[str, int], Outcome]

NO_RESULT = frozenset({Status.ERROR, Status.TIMED_OUT, Status.UNJUDGED, Status.SKIPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One epoch of a case in both runs; what has no result did not pass and scores 0."""

    case: str
    epoch: int
    before: Outcome
    after: Outcome | None

    @property
    def hollow(self) -> bool:
        """Whether there is no result in A."""
        return self.before.status in NO_RESULT

    @property
    def lost(self) -> bool:
        """Whether there is no result in B."""
        return self.after is None or self.after.status in NO_RESULT

    @property
    def passes(self) -> tuple[bool, bool]:
        """Whether it passed in A, and in B."""
        return _passed(self.before), _passed(self.after)

    @property
    def scores(self) -> tuple[float, float]:
        """The scores in A and in B."""
        return _score(self.before), _score(self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """All pairs, and what cannot be paired."""

    pairs: tuple[Pair, ...]
    new: tuple[tuple[str, int], ...]
    left_out: int


def pair_up(a: Outcomes, b: Outcomes) -> Pairing:
    """Pair two runs. What A skipped is no part of the comparison; what only A has is lost in B.

    When B was run with fewer epochs, those that it has of no case at all are left out rather than lost.
    """
    epochs = max((epoch for _, epoch in b), default=None)
    asked = {key: outcome for key, outcome in a.items() if outcome.status not in NOT_RUN}
    kept = {key: outcome for key, outcome in asked.items() if epochs is None or key[1] <= epochs}
    pairs = (
        Pair(case=case, epoch=epoch, before=kept[case, epoch], after=b.get((case, epoch)))
        for case, epoch in sorted(kept)
    )
    new = sorted(key for key, outcome in b.items() if key not in asked and outcome.status not in NOT_RUN)
    return Pairing(pairs=tuple(pairs), new=tuple(new), left_out=len(asked) - len(kept))


def change_of(pair: Pair) -> Change:
    """Describe a pair whose two sides differ."""
    after = pair.after
    return Change(
        case=pair.case,
        epoch=pair.epoch,
        before=pair.before.status,
        after=None if after is None else after.status,
        before_score=pair.before.score,
        after_score=None if after is None else after.score,
        reason=_reason(pair),
    )


def _reason(pair: Pair) -> str:
    if pair.after is None:
        return "missing in B"
    if pair.lost:
        return f"no result in B: {_word(pair.after.status)}"
    if pair.hollow:
        return f"no result in A: {_word(pair.before.status)}"
    return f"{_word(pair.before.status)} in A, {_word(pair.after.status)} in B"


def _word(status: Status) -> str:
    return status.value.replace("_", " ")


def _passed(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.status is Status.PASSED


def _score(outcome: Outcome | None) -> float:
    if outcome is None or outcome.status in NO_RESULT:
        return 0.0
    return float(outcome.status is Status.PASSED) if outcome.score is None else outcome.score

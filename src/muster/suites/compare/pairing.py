"""The pairs of two suite runs: each epoch of a case in A with the same one in B, and what cannot be paired."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.domain.case import Status
from muster.suites.compare.values import Change, EpochOutcome, PairChange
from muster.suites.values.verdict import NOT_RUN

Outcomes = Mapping[tuple[str, int], EpochOutcome]

NO_RESULT = frozenset({Status.ERROR, Status.TIMED_OUT, Status.UNJUDGED, Status.SKIPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One epoch of a case in both runs; what has no result did not pass and scores 0."""

    case: str
    epoch: int
    before: EpochOutcome
    after: EpochOutcome | None

    @property
    def hollow(self) -> bool:
        """Return whether there is no result in A."""
        return self.before.status in NO_RESULT

    @property
    def lost(self) -> bool:
        """Return whether there is no result in B."""
        return self.after is None or self.after.status in NO_RESULT

    @property
    def passes(self) -> tuple[bool, bool]:
        """Return whether it passed in A, and in B."""
        return _passed(self.before), _passed(self.after)

    @property
    def change(self) -> PairChange:
        """Return whether B is worse or better than A here; only passing counts."""
        before, after = self.passes
        if before == after:
            return PairChange.SAME
        return PairChange.WORSE if before else PairChange.BETTER

    @property
    def reason(self) -> str:
        """How it ended in A and in B, or where a result is missing."""
        if self.after is None:
            return "missing in B"
        if self.lost:
            return f"no result in B: {_word(self.after.status)}"
        if self.hollow:
            return f"no result in A: {_word(self.before.status)}"
        return f"{_word(self.before.status)} in A, {_word(self.after.status)} in B"

    @property
    def one_number(self) -> bool:
        """Return whether the scores say only whether it passed."""
        return self.scores == self.passes

    @property
    def cost(self) -> int:
        """What it cost in both runs, in microdollars."""
        return self.before.cost + (0 if self.after is None else self.after.cost)

    @property
    def scores(self) -> tuple[float, float]:
        """The scores in A and in B."""
        return _score(self.before), _score(self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """All pairs, and what cannot be paired."""

    pairs: tuple[Pair, ...]
    new: tuple[tuple[str, int], ...]
    new_failed: tuple[tuple[str, int], ...]  # of these, what did not pass
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
    failed = tuple(key for key in new if not _passed(b[key]))
    return Pairing(pairs=tuple(pairs), new=tuple(new), new_failed=failed, left_out=len(asked) - len(kept))


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
        reason=pair.reason,
    )


def _word(status: Status) -> str:
    return status.value.replace("_", " ")


def _passed(outcome: EpochOutcome | None) -> bool:
    return outcome is not None and outcome.status is Status.PASSED


def _score(outcome: EpochOutcome | None) -> float:
    if outcome is None or outcome.status in NO_RESULT:
        return 0.0
    return float(outcome.status is Status.PASSED) if outcome.score is None else outcome.score

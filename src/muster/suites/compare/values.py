"""What a comparison of two runs says: a verdict, the numbers it rests on, and the cases that changed."""

from dataclasses import dataclass
from enum import StrEnum

from muster.domain.case import Status
from muster.domain.money import NOTHING, Microdollars
from muster.statistics.intervals import Interval
from muster.statistics.sample_size import Needed


class ComparisonVerdict(StrEnum):
    """The verdict on whether B is better than A."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"  # so near that the difference does not matter
    NOT_WORSE = "not worse"  # by more than the margin that was asked for
    UNSURE = "inconclusive"  # neither a difference nor its absence is shown


class Gate(StrEnum):
    """Whether a comparison lets B take the place of A."""

    PASSED = "passed"
    FAILED = "failed"
    BLIND = "blind"  # inconclusive, and such runs would hardly notice the drop that was asked about


ENOUGH_POWER = 0.5  # that a comparison must have to pass without having decided


class PairChange(StrEnum):
    """How one epoch of a case in B is against the same in A."""

    WORSE = "worse"  # passed in A, and not in B
    BETTER = "better"  # passed in B, and not in A
    NEW = "new"  # only B has it
    SAME = "same"  # passed in both or in neither


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochOutcome:
    """How one epoch of a case ended in one of the runs, what it cost, and the keys of its calls."""

    status: Status
    score: float | None = None
    cost: Microdollars = NOTHING  # of agent and judge
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One epoch of a case that passed in only one of the runs; `after` is None when B does not have it."""

    case: str
    epoch: int
    before: Status
    after: Status | None
    before_score: float | None
    after_score: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticing:
    """The power of a comparison: how often runs like these would show a drop of the pass rate."""

    drop: float
    power: float
    possible: bool = True  # whether so much passes that it can drop by so much
    more_cases: int | None = None  # that would be enough, if the power is not; None: not known, or no number would
    more_epochs: int | None = None
    cases_cost: Microdollars | None = None  # of these in both runs, at the price of those that were compared
    epochs_cost: Microdollars | None = None

    @property
    def enough(self) -> bool:
        """Return whether the drop would be noticed often enough."""
        return self.power >= ENOUGH_POWER

    @property
    def words(self) -> str:
        """How often it would be noticed, rounded down: what is just below the limit is not shown as at it."""
        drop = f"a drop of {100 * self.drop:.4g} points"
        if not self.possible:
            return f"{drop} is not possible, since fewer pass"
        share = f"{int(100 * self.power)} %" if self.power >= 0.01 else "less than 1 %"
        return f"{drop} would be noticed in {share} of comparisons"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A and B, paired by case and epoch. Differences are B less A, as the mean over cases of the mean over epochs."""

    verdict: ComparisonVerdict
    why: str
    threshold: float
    alpha: float
    cases: int = 0  # that are compared
    pairs: int = 0  # epochs of them
    b: int = 0  # cases that passed in more epochs of A
    c: int = 0  # cases that passed in more epochs of B
    pass_p: float = 1.0  # McNemar's, exact, of b and c
    pass_before: float | None = None
    pass_after: float | None = None
    pass_difference: float | None = None
    pass_interval: Interval | None = None
    score_p: float = 1.0  # of the paired differences
    score_before: float | None = None
    score_after: float | None = None
    score_difference: float | None = None
    score_interval: Interval | None = None
    regressions: tuple[Change, ...] = ()  # passed in A, and not in B
    improvements: tuple[Change, ...] = ()
    no_result: int = 0  # pairs in which B has no result: missing, error, timed out, unjudged, skipped
    new: tuple[tuple[str, int], ...] = ()  # cases and epochs that only B has
    new_failed: int = 0  # of these, how many did not pass
    left_out: int = 0  # epochs of A beyond the last that B has of any case
    compared: int = 0  # pairs with a result in both
    margin: float | None = None  # None: not asked for
    pass_at_least: float | None = None  # limits that the differences are below with a probability of alpha at most
    score_at_least: float | None = None
    needed: Needed | None = None  # what would decide, when nothing is decided
    contradictory: bool = False  # undecided since pass rate and score moved in different directions
    noticing: Noticing | None = None  # of a result that decided nothing, or in which nothing passed

    @property
    def repeated(self) -> bool:
        """Return whether epochs are told apart, so that what is counted are cases × epochs."""
        return self.pairs > self.cases or any(epoch > 1 for _, epoch in self.new)


def counted(number: int, *, repeated: bool) -> str:
    """Return a number with the unit that all of a comparison is counted in: cases, or cases × epochs."""
    if repeated:
        return f"{number:,} case × epoch" if number == 1 else f"{number:,} cases × epochs"
    return f"{number:,} case" if number == 1 else f"{number:,} cases"


def has(number: int) -> str:
    """Return the verb for a number of cases."""
    return "has" if number == 1 else "have"

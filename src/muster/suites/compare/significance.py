"""Which of the tests of a comparison are significant, and whether they agree. Pure.

Pass and fail are tested by McNemar's exact test on cases, scores by the randomization test. They share alpha (Holm).
Where every score says only whether it passed, score and pass rate are one number, and one test has all of alpha:
McNemar's with one epoch, which is the exact form of the other, and the randomization test with several.
"""

from dataclasses import dataclass

from muster.text.scores import reaches


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What the tests go by; differences are B less A."""

    worse: int  # cases that passed in fewer epochs of B
    better: int
    pass_difference: float
    score_difference: float
    pass_p: float
    score_p: float
    one_number: bool  # score and pass rate are the same
    repeated: bool  # a case has several epochs

    @property
    def p_of_passing(self) -> float:
        """Return the p that a change of the pass rate rests on."""
        return self.score_p if self.one_number and self.repeated else self.pass_p


def significant(numbers: Numbers, alpha: float) -> tuple[bool, bool]:
    """Return whether the pass rate, and whether the score, differs by more than chance."""
    if numbers.one_number:
        found = numbers.p_of_passing <= alpha
        return found, found
    # That with the lower p at half of alpha, the other at alpha.
    first = min(numbers.pass_p, numbers.score_p) <= alpha / 2
    return first and numbers.pass_p <= alpha, first and numbers.score_p <= alpha


def contradictory(numbers: Numbers, *, by_passing: bool) -> bool:
    """Return whether pass rate and score, or pass rate and number of cases, moved in different directions."""
    if numbers.pass_difference * numbers.score_difference < 0:
        return True
    by_cases = by_passing and numbers.p_of_passing == numbers.pass_p
    return by_cases and (numbers.better - numbers.worse) * numbers.pass_difference < 0


def counting(numbers: Numbers, *, alpha: float, threshold: float) -> tuple[bool, bool]:
    """Return whether pass rate, and whether score, differ by more than chance; a score alone by the threshold too."""
    by_passing, by_score = significant(numbers, alpha)
    return by_passing, by_score and (by_passing or reaches(abs(numbers.score_difference), threshold))


def is_worse(numbers: Numbers, *, alpha: float, threshold: float) -> bool:
    """Return whether the tests show that B is worse."""
    by_passing, by_score = counting(numbers, alpha=alpha, threshold=threshold)
    lower = numbers.pass_difference + numbers.score_difference < 0
    return lower and (by_passing or by_score) and not contradictory(numbers, by_passing=by_passing)

"""Where scores differ from: the cases, the agent between epochs of a case, the judge between samples of one answer.

Variance components of a nested design, by the method of moments for unequal numbers. A part that the data cannot show,
because nothing was repeated, is None and then is in the part above it. No part is negative.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceSplit:
    """Variances of a score."""

    case: float | None = None  # between cases
    agent: float | None = None  # between epochs of a case
    judge: float | None = None  # between samples of one answer


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSums:
    """What is needed of one case: sums over its epochs and the samples in them."""

    epochs: int
    samples: int
    total: float  # of all scores
    squares: float  # samples of an epoch times the square of their mean
    crowd: float  # squares of the numbers of samples


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSums:
    """What is needed of the samples, over all cases."""

    squares: float = 0.0  # of the distances from the mean of the answer
    freedom: int = 0


def split_sums(cases: Sequence[CaseSums], judge: JudgeSums) -> VarianceSplit:
    """Split scores of which only sums are kept."""
    samples = sum(case.samples for case in cases)
    epochs = sum(case.epochs for case in cases)
    within = fsum(case.crowd / case.samples for case in cases)
    judged = judge.squares / judge.freedom if judge.freedom else None
    agent = case = None
    if epochs > len(cases):
        freedom = epochs - len(cases)
        squares = fsum(max(0.0, case.squares - case.total**2 / case.samples) for case in cases)
        agent = max(0.0, (squares / freedom - (judged or 0.0)) / ((samples - within) / freedom))
    if len(cases) > 1:
        case = _between(cases, samples, within, judged or 0.0, agent or 0.0)
    return VarianceSplit(case=case, agent=agent, judge=judged)


def _between(cases: Sequence[CaseSums], samples: int, within: float, judge: float, agent: float) -> float:
    mean = fsum(case.total for case in cases) / samples
    squares = fsum(case.samples * (case.total / case.samples - mean) ** 2 for case in cases)
    freedom = len(cases) - 1
    of_agent = (within - fsum(case.crowd for case in cases) / samples) / freedom
    of_case = (samples - fsum(case.samples**2 for case in cases) / samples) / freedom
    return max(0.0, (squares / freedom - judge - of_agent * agent) / of_case)

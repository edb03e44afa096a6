"""Where scores differ from, where the truth is known."""

from collections.abc import Iterable, Sequence
from math import fsum
from random import Random

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.statistics.repeats import CaseSums, ErrorSums, VarianceComponents, variance_components

NESTED = st.lists(st.lists(st.lists(st.floats(0, 1), max_size=3), max_size=3), max_size=6)


def variance_split(cases: Iterable[Sequence[Sequence[float]]]) -> VarianceComponents:
    """Split scores that are given by case, epoch and sample."""
    sums, squares, freedom = [], [], 0
    for case in cases:
        epochs = [epoch for epoch in case if epoch]
        means = [fsum(epoch) / len(epoch) for epoch in epochs]
        squares += [(score - mean) ** 2 for epoch, mean in zip(epochs, means, strict=True) for score in epoch]
        freedom += sum(len(epoch) - 1 for epoch in epochs)
        if epochs:
            sums.append(_sums(epochs, means))
    return variance_components(sums, ErrorSums(ss=fsum(squares), df=freedom))


def _sums(epochs: Sequence[Sequence[float]], means: Sequence[float]) -> CaseSums:
    return CaseSums(
        b=len(epochs),
        n=sum(map(len, epochs)),
        y=fsum(score for epoch in epochs for score in epoch),
        ss=fsum(len(epoch) * mean**2 for epoch, mean in zip(epochs, means, strict=True)),
        nn=float(sum(len(epoch) ** 2 for epoch in epochs)),
    )


def scores(case: float, agent: float, judge: float, *, ragged: bool) -> list[list[list[float]]]:
    """Scores of 1,500 cases with known deviations; ragged ones have unequal numbers of epochs and samples."""
    random = Random(11)
    found = []
    for _ in range(1500):
        level = random.gauss(0.5, case)
        answers = [random.gauss(level, agent) for _ in range(random.randint(1, 4) if ragged else 3)]
        found.append(
            [[random.gauss(one, judge) for _ in range(random.randint(1, 4) if ragged else 3)] for one in answers]
        )
    return found


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(("case", "agent", "judge"), [(0.3, 0.1, 0.05), (0.05, 0.2, 0.1), (0.0, 0.1, 0.3)])
def test_the_parts_come_to_the_truth(case: float, agent: float, judge: float, ragged: bool) -> None:
    found = variance_split(scores(case, agent, judge, ragged=ragged))
    assert found.judge == pytest.approx(judge**2, rel=0.1)
    assert found.agent == pytest.approx(agent**2, rel=0.25)
    assert found.case == pytest.approx(case**2, rel=0.15, abs=0.002)


def test_an_equal_design_gives_the_means_of_squares() -> None:
    """With one sample each it is the analysis of variance by one factor."""
    table = [[0.2, 0.4], [0.9, 0.7], [0.5, 0.5]]
    found = variance_split([[[score] for score in case] for case in table])
    within = float(numpy.mean([numpy.var(case, ddof=1) for case in table]))
    between = 2 * float(numpy.var([numpy.mean(case) for case in table], ddof=1))
    assert found.judge is None
    assert found.agent == pytest.approx(within)
    assert found.case == pytest.approx((between - within) / 2)


def test_what_was_not_repeated_cannot_be_told() -> None:
    assert variance_split([]) == VarianceComponents()
    assert variance_split([[[0.5]]]) == VarianceComponents()
    alone = variance_split([[[0.2]], [[0.8]]])
    assert (alone.agent, alone.judge) == (None, None)
    assert alone.case == pytest.approx(0.18)
    assert variance_split([[[0.2, 0.4]]]).judge == pytest.approx(0.02)


@given(NESTED)
def test_no_part_is_negative(nested: list[list[list[float]]]) -> None:
    found = variance_split(nested)
    assert all(part is None or part >= 0 for part in (found.case, found.agent, found.judge))

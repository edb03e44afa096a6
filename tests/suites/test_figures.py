"""Single figures, against others who compute the same."""

import math
from math import comb
from random import Random

import numpy
import pytest
import scipy  # type: ignore[import-untyped]  # its parts are loaded when they are used
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import BadArgument
from muster.statistics.intervals import Interval, bootstrap_mean, percentile, student, wilson
from muster.statistics.paired_tests import mcnemar_exact, randomization_test
from muster.statistics.repeats import cohen_kappa, mean_pass_at_k, mean_pass_hat_k, pass_at_k, pass_hat_k

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_is_what_scipy_says(counts: tuple[int, int], confidence: float) -> None:
    passed, n = counts
    expected = scipy.stats.binomtest(passed, n).proportion_ci(confidence, method="wilson")
    found = wilson(passed, n, confidence)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0 <= found.low <= passed / n <= found.high <= 1


def test_wilson_of_nothing_is_everything_and_nonsense_is_refused() -> None:
    assert wilson(0, 0) == Interval(low=0.0, high=1.0)
    for passed, n, confidence in ((2, 1, 0.95), (-1, 1, 0.95), (0, 1, 1.0), (0, 0, 0.0)):
        with pytest.raises(BadArgument):
            wilson(passed, n, confidence)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_the_exact_binomial_test(b: int, c: int) -> None:
    expected = scipy.stats.binomtest(b, b + c, 0.5).pvalue if b + c else 1.0
    # SciPy tells 0 for some probabilities below 1e-289.
    assert mcnemar_exact(b, c) == pytest.approx(expected, rel=1e-8, abs=1e-289)
    assert mcnemar_exact(b, c) == mcnemar_exact(c, b)


def test_mcnemar_stays_quick_and_sane_for_many() -> None:
    assert mcnemar_exact(100_000, 100_001) == pytest.approx(1.0, abs=0.01)
    assert mcnemar_exact(0, 100_000) == 0
    with pytest.raises(BadArgument):
        mcnemar_exact(-1, 2)


@given(SCORES, st.floats(0, 100))
def test_a_percentile_is_what_numpy_says(values: list[float], q: float) -> None:
    assert percentile(values, q) == pytest.approx(float(numpy.percentile(values, q)), abs=1e-12)


def test_there_is_no_percentile_of_nothing_and_none_beyond_100() -> None:
    assert percentile([], 50) is None
    with pytest.raises(BadArgument):
        percentile([1.0], 101)


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_and_pass_hat_k_are_shares_of_all_draws(counts: tuple[int, int, int]) -> None:
    n, c, k = counts
    draws = [bits for bits in range(2**n) if bits.bit_count() == k]
    passed = (1 << c) - 1
    assert pass_at_k(n, c, k) == pytest.approx(sum(bool(bits & passed) for bits in draws) / comb(n, k))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(bits & passed == bits for bits in draws) / comb(n, k))
    assert pass_hat_k(n, c, k) <= pass_at_k(n, c, k) + 1e-12


def test_means_over_cases_take_those_that_have_enough_epochs() -> None:
    cases = [(3, 3), (3, 0), (1, 1)]
    assert mean_pass_at_k(cases, 1) == pytest.approx(2 / 3)
    assert mean_pass_hat_k(cases, 3) == 0.5
    assert mean_pass_at_k(cases, 4) is None
    with pytest.raises(BadArgument):
        pass_at_k(2, 1, 3)


def test_repeats_are_unbiased() -> None:
    """Over many cases of five epochs the estimate of two in a row comes to the truth."""
    random, truth = Random(5), 0.6
    cases = [(5, sum(random.random() < truth for _ in range(5))) for _ in range(20_000)]
    assert mean_pass_hat_k(cases, 2) == pytest.approx(truth**2, abs=0.01)
    assert mean_pass_at_k(cases, 2) == pytest.approx(1 - (1 - truth) ** 2, abs=0.01)


def test_kappa_of_a_known_table() -> None:
    pairs = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    found = cohen_kappa(pairs)
    assert (found.n, found.raw) == (50, 0.7)
    assert found.kappa == pytest.approx(0.4)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), max_size=30))
def test_kappa_is_its_definition_or_undefined(pairs: list[tuple[str, str]]) -> None:
    found = cohen_kappa(pairs)
    if not pairs:
        assert (found.raw, found.kappa) == (None, None)
        return
    n = len(pairs)
    left, right = [one for one, _ in pairs], [other for _, other in pairs]
    chance = sum(left.count(rating) * right.count(rating) for rating in "abc") / n**2
    if math.isclose(chance, 1):
        assert found.kappa is None
    else:
        assert found.raw is not None
        assert found.kappa == pytest.approx((found.raw - chance) / (1 - chance))


# Bootstrap


@given(SCORES, st.integers(0, 5))
def test_a_bootstrap_lies_among_the_values_and_is_the_same_for_the_same_seed(values: list[float], seed: int) -> None:
    found = bootstrap_mean(values, resamples=60, seed=seed)
    if len(values) < 2:
        assert found is None
        return
    assert found is not None
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found == bootstrap_mean(values, resamples=60, seed=seed)


def test_a_bootstrap_agrees_with_scipy_where_there_are_many_values() -> None:
    random = Random(3)
    values = [random.betavariate(5, 2) for _ in range(200)]
    expected = scipy.stats.bootstrap(
        (values,), numpy.mean, n_resamples=2000, method="percentile", rng=numpy.random.default_rng(1)
    ).confidence_interval
    found = bootstrap_mean(values)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.005)


def test_many_values_get_the_normal_interval() -> None:
    random = Random(4)
    values = [random.random() for _ in range(1001)]
    found = bootstrap_mean(values)
    assert found is not None
    expected = scipy.stats.norm.interval(0.95, numpy.mean(values), scipy.stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize(("freedom", "tolerance"), [(4, 0.01), (9, 0.001), (50, 0.0001)])
def test_the_wider_levels_are_those_of_student(freedom: int, tolerance: float) -> None:
    assert student(0.95, freedom) == pytest.approx(float(scipy.stats.t.ppf(0.975, freedom)), rel=tolerance)


@pytest.mark.parametrize(("n", "least"), [(8, 0.90), (30, 0.92)])
def test_a_bootstrap_interval_holds_the_truth_about_as_often_as_it_says(n: int, least: float) -> None:
    """Skewed scores, as good agents have them; the truth is known."""
    random, held, rounds = Random(n), 0, 300
    for _ in range(rounds):
        found = bootstrap_mean([random.betavariate(4, 1.5) for _ in range(n)], resamples=150, seed=1)
        held += found is not None and found.holds(4 / 5.5)
    assert least <= held / rounds <= 0.99


# Signs drawn anew


def test_a_randomization_is_what_scipy_says() -> None:
    random = Random(6)
    differences = [random.gauss(0.08, 0.3) for _ in range(60)]
    expected = scipy.stats.permutation_test(
        (differences,), numpy.sum, permutation_type="samples", n_resamples=5000, rng=numpy.random.default_rng(1)
    ).pvalue
    assert randomization_test(differences, resamples=5000) == pytest.approx(expected, abs=0.02)


def test_few_differences_are_never_sure() -> None:
    assert randomization_test([]) == 1
    assert randomization_test([0.0] * 50) == 1
    assert randomization_test([1.0] * 4) > 0.1
    assert randomization_test([1.0] * 12) < 0.01


def test_very_many_differences_are_judged_by_the_normal_distribution() -> None:
    random = Random(7)
    assert randomization_test([random.gauss(0, 1) for _ in range(5000)]) > 0.05
    assert randomization_test([random.gauss(0.1, 1) for _ in range(5000)]) < 0.001

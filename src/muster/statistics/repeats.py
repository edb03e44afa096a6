"""Repeated measurements: pass@k and pass^k, variance components, and agreement (Cohen's kappa). Pure."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import comb, fsum

from muster.domain.errors import BadArgument

# (n, c) of each case: its epochs, and how many of them passed; or how many cases have the same two numbers.
Counts = Iterable[tuple[int, int]] | Counter[tuple[int, int]]


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the unbiased estimate 1 - C(n-c, k) / C(n, k) that at least one of k epochs passes, when c of n did.

    Reference: Chen et al., Evaluating Large Language Models Trained on Code (2021), equation 1.
    """
    _require(n, c, k)
    return 1 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Return the unbiased estimate C(c, k) / C(n, k) that all of k epochs pass, when c of n did.

    Reference: Yao et al., τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains (2024).
    """
    _require(n, c, k)
    return comb(c, k) / comb(n, k)


def mean_pass_at_k(cases: Counts, k: int) -> float | None:
    """Return the mean of pass@k over the cases that have so many epochs; None when none has."""
    return _mean(pass_at_k, cases, k)


def mean_pass_hat_k(cases: Counts, k: int) -> float | None:
    """Return the mean of pass^k over the cases that have so many epochs; None when none has."""
    return _mean(pass_hat_k, cases, k)


def _mean(of: Callable[[int, int, int], float], cases: Counts, k: int) -> float | None:
    alike = {counts: number for counts, number in Counter(cases).items() if counts[0] >= k}
    total = sum(alike.values())
    return fsum(number * of(n, c, k) for (n, c), number in alike.items()) / total if total else None


def _require(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise BadArgument(f"{k} epochs cannot be drawn when {c} of {n} passed")


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceComponents:
    """Variance components of a score; None where nothing was repeated that would show one."""

    case: float | None = None  # σ²_τ, between cases
    agent: float | None = None  # σ²_β, between epochs of a case
    judge: float | None = None  # σ², between samples of one answer


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSums:
    """The sums over case i that the analysis of variance needs: epochs j, and in each of them samples k."""

    b: int  # b_i, its epochs
    n: int  # n_i. = Σ_j n_ij, its samples
    y: float  # y_i.. = Σ_j Σ_k y_ijk
    ss: float  # Σ_j n_ij ȳ_ij.²
    nn: float  # Σ_j n_ij²


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSums:
    """The error term over all cases: samples about the mean of their answer."""

    ss: float = 0.0  # SS_E = Σ_i Σ_j Σ_k (y_ijk - ȳ_ij.)²
    df: int = 0  # Σ_i Σ_j (n_ij - 1)


def variance_components(cases: Sequence[CaseSums], error: ErrorSums) -> VarianceComponents:
    """Return the ANOVA estimates of y_ijk = μ + τ_i + β_j(i) + ε_k(ij), with unequal numbers; negative ones become 0.

    The mean squares are set equal to their expectations:
    E(MS_E) = σ², E(MS_B(A)) = σ² + c0 σ²_β, E(MS_A) = σ² + c1 σ²_β + c2 σ²_τ.

    Reference: D. C. Montgomery, Design and Analysis of Experiments (Wiley), chapter on nested designs, the unbalanced
    two-stage nested design with random factors; c0, c1 and c2 are named as there.
    """
    a = len(cases)
    n = sum(case.n for case in cases)
    b = sum(case.b for case in cases)
    nested = fsum(case.nn / case.n for case in cases)  # Σ_i Σ_j n_ij² / n_i.
    ms_e = error.ss / error.df if error.df else None
    sigma2_beta = sigma2_tau = None
    if b > a:
        df = b - a
        ss_b = fsum(max(0.0, case.ss - case.y**2 / case.n) for case in cases)
        c0 = (n - nested) / df
        sigma2_beta = max(0.0, (ss_b / df - (ms_e or 0.0)) / c0)
    if a > 1:
        df = a - 1
        mean = fsum(case.y for case in cases) / n  # ȳ...
        ss_a = fsum(case.n * (case.y / case.n - mean) ** 2 for case in cases)
        c1 = (nested - fsum(case.nn for case in cases) / n) / df
        c2 = (n - fsum(case.n**2 for case in cases) / n) / df
        sigma2_tau = max(0.0, (ss_a / df - (ms_e or 0.0) - c1 * (sigma2_beta or 0.0)) / c2)
    return VarianceComponents(case=sigma2_tau, agent=sigma2_beta, judge=ms_e)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of two raters; None where it is not defined."""

    n: int
    raw: float | None  # p_o, the share of ratings that are the same
    kappa: float | None  # 1 is perfect, 0 is chance; undefined when both always say the same one thing


def cohen_kappa(pairs: Iterable[tuple[Hashable, Hashable]]) -> Agreement:
    """Return κ = (p_o - p_e) / (1 - p_e) of pairs of ratings; p_e is the agreement expected by chance.

    Reference: J. Cohen, A Coefficient of Agreement for Nominal Scales (1960).
    """
    counts = Counter(pairs)
    n = counts.total()
    if not n:
        return Agreement(n=0, raw=None, kappa=None)
    rows, columns = Counter[Hashable](), Counter[Hashable]()
    for (one, other), number in counts.items():
        rows[one] += number
        columns[other] += number
    observed = sum(number for (one, other), number in counts.items() if one == other)  # n p_o
    expected = sum(rows[rating] * columns[rating] for rating in rows)  # n² p_e: whole numbers, so nothing is rounded
    kappa = (n * observed - expected) / (n * n - expected) if expected < n * n else None
    return Agreement(n=n, raw=observed / n, kappa=kappa)

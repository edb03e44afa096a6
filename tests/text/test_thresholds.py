"""Whether figures are good enough: numbers, and what is not known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import BadArgument
from muster.text.expressions import parse
from muster.text.scores import reaches
from muster.text.thresholds import ThresholdResult, evaluate, known

LEAVES = ("critical == 0", "score >= 9", "high + low < 3")
values = st.fixed_dictionaries(
    {},
    optional={
        name: st.none() | st.integers(0, 4) | st.floats() for name in ("critical", "score", "high", "low", "files")
    },
)
expressions = st.recursive(
    st.sampled_from(LEAVES),
    lambda below: (
        st.tuples(below, st.sampled_from(["and", "or"]), below).map(lambda three: f"({' '.join(three)})")
        | below.map(lambda text: f"not ({text})")
    ),
    max_leaves=5,
)


def test_the_numbers_tell_why() -> None:
    found = evaluate("critical + high == 0", {"critical": 2, "high": 1})
    assert found == ThresholdResult(expression="critical + high == 0", holds=False, why="critical is 2, high is 1")
    assert evaluate(parse("score >= 9.0"), {"score": 9.25}) == ThresholdResult(
        expression="score >= 9.0", holds=True, why="score is 9.25"
    )


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("critical == 2", True),
        ("critical != 2", False),
        ("critical < 2", False),
        ("critical <= 2", True),
        ("critical > 2", False),
        ("critical >= 2", True),
        ("critical - low == -1", True),
        ("critical - (low - 1) == 0", True),
        ("coverage >= 80 %", True),
        ("parts.error-handling >= 8 and not parts.design >= 8", True),
        ("critical == 0 or low == 3", True),
        ("critical == 0 or low == 4", False),
        ("not critical == 0 and not low == 0", True),
        ("not (critical == 2 and low == 3)", False),
    ],
)
def test_an_expression_holds_or_not(expression: str, holds: bool) -> None:
    figures = {"critical": 2, "low": 3, "coverage": 80.0, "parts.error-handling": 8, "parts.design": 7.9}
    assert evaluate(expression, figures).holds is holds


@pytest.mark.parametrize(
    "expression",
    [
        "score >= 9",
        "not score >= 9",
        "score != 9",
        "score == score",
        "score - score == 0",
        "not (score > 1 and low == 0)",
    ],
)
@pytest.mark.parametrize("figures", [{}, {"score": None}, {"score": float("nan")}, {"score": float("inf")}])
def test_what_is_not_known_never_holds(expression: str, figures: dict[str, float | None]) -> None:
    figures = {**figures, "low": 0}
    found = evaluate(expression, figures)
    assert not found.holds
    assert "score is unknown" in found.why
    assert not known(expression, figures)


def test_what_holds_whatever_is_not_known_would_be_does_hold() -> None:
    figures = {"score": None, "low": 0.0}
    assert evaluate("score >= 9 or low == 0", figures).holds
    assert evaluate("not (score >= 9 and low == 1)", figures).holds
    assert known("low == 0", figures)


def test_sums_beyond_all_bounds_are_not_known() -> None:
    figures = {"critical": 1.7e308, "high": 1.7e308}
    for expression in ("critical + high != 0", "critical + high - critical - high == 0", "critical + high > 0"):
        assert not evaluate(expression, figures).holds


def test_rounding_is_no_reason_to_fail() -> None:
    assert evaluate("coverage >= 80", {"coverage": 79.99999999999999}).holds
    assert evaluate("score == 0.3", {"score": 0.1 + 0.2}).holds
    assert not evaluate("score > 0.3", {"score": 0.1 + 0.2}).holds
    assert evaluate("score >= 9", {"score": 8.9999}) == ThresholdResult(
        expression="score >= 9", holds=False, why="score is 8.9999"
    )
    assert reaches(0.1 + 0.2, 0.3)


def test_what_is_no_expression_is_refused() -> None:
    for ask in (evaluate, known):
        with pytest.raises(BadArgument, match="is not a valid threshold"):
            ask("True", {})


@given(expressions, values)
def test_an_expression_and_its_opposite_never_hold_both(expression: str, figures: dict[str, float | None]) -> None:
    holds, opposite = evaluate(expression, figures).holds, evaluate(f"not ({expression})", figures).holds
    assert not (holds and opposite)
    if known(expression, figures):
        assert holds or opposite


@given(
    expressions,
    values,
    st.fixed_dictionaries({name: st.integers(0, 9) for name in ("critical", "score", "high", "low")}),
)
def test_what_holds_still_holds_when_more_is_known(
    expression: str, figures: dict[str, float | None], more: dict[str, int]
) -> None:
    if evaluate(expression, figures).holds:
        unknown = {name: value for name, value in more.items() if not known(f"{name} == 0", figures)}
        assert evaluate(expression, {**figures, **unknown}).holds


@given(expressions, expressions, values)
def test_both_and_either_mean_what_they_say(left: str, right: str, figures: dict[str, float | None]) -> None:
    one, other = evaluate(left, figures).holds, evaluate(right, figures).holds
    assert evaluate(f"{left} and {right}", figures).holds is (one and other)
    assert evaluate(f"({left}) or ({right})", figures).holds is (one or other)

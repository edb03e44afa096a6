"""Conditions of chains and thresholds have one grammar: what both can say means the same in both."""

import operator
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from muster.pool.chains.conditions import holds, parse_condition
from muster.text.thresholds import evaluate

VALUES: Mapping[str, int] = {"critical": 0, "high": 2, "low": 3}
SIGNS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPARISON, NEGATION, CONJUNCTION, DISJUNCTION = 3, 2, 1, 0  # the higher binds closer

Clause = tuple[int, str, bool]  # how closely it binds, its text, and whether it holds


def comparison(name: str, sign: str, number: int) -> Clause:
    return COMPARISON, f"{name} {sign} {number}", SIGNS[sign](VALUES[name], number)


def negation(part: Clause) -> Clause:
    return NEGATION, f"not {inside(part, NEGATION)}", not part[2]


def conjunction(parts: list[Clause]) -> Clause:
    return CONJUNCTION, " and ".join(inside(part, CONJUNCTION) for part in parts), all(part[2] for part in parts)


def disjunction(parts: list[Clause]) -> Clause:
    return DISJUNCTION, " or ".join(inside(part, DISJUNCTION) for part in parts), any(part[2] for part in parts)


def inside(part: Clause, binding: int) -> str:
    """Return the text of a part, in brackets only where it would otherwise be read as something else."""
    return part[1] if part[0] >= binding else f"( {part[1]})"


def joined(below: "st.SearchStrategy[Clause]") -> "st.SearchStrategy[Clause]":
    several = st.lists(below, min_size=2, max_size=3)
    return below.map(negation) | several.map(conjunction) | several.map(disjunction)


comparisons = st.builds(comparison, st.sampled_from(sorted(VALUES)), st.sampled_from(sorted(SIGNS)), st.integers(0, 4))
clauses: "st.SearchStrategy[Clause]" = st.recursive(comparisons, joined, max_leaves=8)


@given(clauses)
def test_both_languages_read_the_truth_of_what_is_written(clause: Clause) -> None:
    _, text, truth = clause
    assert holds(parse_condition(text), VALUES.__getitem__) is truth
    assert evaluate(text, VALUES).holds is truth

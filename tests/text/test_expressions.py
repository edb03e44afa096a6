"""Expressions over figures: what they mean, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import BadArgument
from muster.text.expressions import (
    NAMES,
    Conjunction,
    Disjunction,
    Expression,
    Name,
    Negation,
    Number,
    Quantity,
    Relation,
    Sum,
    Truth,
    parse,
    spell,
    spell_mapping,
)
from muster.text.logic import MAX_CHARACTERS, MAX_DEPTH

CRITICAL, HIGH = Name("critical"), Name("high")
NONE_CRITICAL = Relation("==", CRITICAL, Number(0))
NONE_HIGH = Relation("==", HIGH, Number(0))

numbers = st.decimals(min_value=0, max_value=10**8, places=3).map(lambda number: Number(float(number)))
parts = st.from_regex(r"[a-z_]{1,5}(-[a-z0-9]{1,3}){0,2}", fullmatch=True).map(lambda name: Name(f"parts.{name}"))
names = st.sampled_from(NAMES).map(Name) | parts
signs = st.sampled_from(["+", "-"])


def sums(below: "st.SearchStrategy[Quantity]") -> "st.SearchStrategy[Quantity]":
    several = st.lists(st.tuples(signs, below), min_size=2, max_size=3)
    return several.map(lambda terms: Sum(tuple(terms))) | below.map(lambda term: Sum((("-", term),)))


def joined(below: "st.SearchStrategy[Truth]") -> "st.SearchStrategy[Truth]":
    several = st.lists(below, min_size=2, max_size=3).map(tuple)
    return several.map(Conjunction) | several.map(Disjunction) | below.map(Negation)


quantities: "st.SearchStrategy[Quantity]" = st.recursive(names | numbers, sums, max_leaves=4)
comparisons = st.builds(Relation, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), quantities, quantities)
truths: "st.SearchStrategy[Truth]" = st.recursive(comparisons, joined, max_leaves=4)


def refusal(text: str) -> str:
    with pytest.raises(BadArgument) as caught:
        parse(text)
    return caught.value.message.partition(" is not a valid threshold: ")[2]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("critical == 0", NONE_CRITICAL),
        ("  critical==0\n", NONE_CRITICAL),
        ("(critical) == (0)", NONE_CRITICAL),
        ("((critical == 0))", NONE_CRITICAL),
        ("critical + high == 0", Relation("==", Sum((("+", CRITICAL), ("+", HIGH))), Number(0))),
        ("-critical < .5", Relation("<", Sum((("-", CRITICAL),)), Number(0.5))),
        ("coverage >= 80 %", Relation(">=", Name("coverage"), Number(80))),
        ("coverage >= 80%", Relation(">=", Name("coverage"), Number(80))),
        ("parts.error-handling > 8", Relation(">", Name("parts.error-handling"), Number(8))),
        (
            "parts.design - 1 > 8",
            Relation(">", Sum((("+", Name("parts.design")), ("-", Number(1)))), Number(8)),
        ),
        ("not critical == 0", Negation(NONE_CRITICAL)),
        ("critical == 0 and high == 0", Conjunction((NONE_CRITICAL, NONE_HIGH))),
        (
            "critical == 0 or high == 0 and not high == 0",
            Disjunction((NONE_CRITICAL, Conjunction((NONE_HIGH, Negation(NONE_HIGH))))),
        ),
        (
            "(critical == 0 or high == 0) and high == 0",
            Conjunction((Disjunction((NONE_CRITICAL, NONE_HIGH)), NONE_HIGH)),
        ),
    ],
)
def test_an_expression_is_read_as_it_is_meant(text: str, tree: Truth) -> None:
    assert parse(text) == Expression(text=text.strip(), tree=tree)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at character 1: expected a number or a metric, but the expression ends"),
        ("critical ==", "at character 12: expected a number or a metric, but the expression ends"),
        (
            "critcal == 0",
            "at character 1: unknown name 'critcal' (did you mean critical?); the metrics are total, critical, ",
        ),
        ("score.high > 1", "at character 1: unknown name 'score.high'"),
        ("parts. > 1", "at character 1: unknown name 'parts.'"),
        ("critical = 0", "at character 10: write == instead of ="),
        ("critical == 0 && high == 0", "at character 15: write and instead of &&"),
        ("score ≥ 9", "at character 7: write >= instead of ≥"),
        ("critical", "at character 1: this is a number; compare it"),
        ("critical == 0 and high", "at character 19: this is a number; compare it"),
        ("not critical", "at character 5: this is a number; compare it"),
        ("0 <= critical <= 5", "at character 15: comparisons cannot be chained; join them with and"),
        ("(critical == 0) == high", "at character 1: this is a condition, not a number"),
        ("1 + (critical == 0) > 1", "at character 5: this is a condition, not a number"),
        ("(critical == 0", "at character 1: this parenthesis is not closed"),
        ("critical == 0)", "at character 14: unexpected ')'"),
        ("critical == 0 high == 0", "at character 15: unexpected 'high'"),
        ("critical == and", "at character 13: expected a number or a metric, but found 'and'"),
        ("critical % == 0", "at character 10: unexpected '%'"),
        ("critical == 1" + "0" * 20, "at character 13: this number has more than 15 digits"),
        ("__import__(1) == 0", "at character 1: unknown name '__import__'"),
        ("critical == `0`", "at character 13: unexpected character '`'"),
        ("1 == 1", "at character 1: an expression needs a metric; the metrics are "),
    ],
)
def test_what_is_no_expression_is_refused_with_its_place(text: str, message: str) -> None:
    assert refusal(text).startswith(message)


def test_an_expression_is_bounded_in_length_and_depth() -> None:
    assert parse("(" * MAX_DEPTH + "critical" + ")" * MAX_DEPTH + " == 0").names == ("critical",)
    assert "nested more than" in refusal("(" * (MAX_DEPTH + 1) + "critical == 0")
    assert "nested more than" in refusal("not " * (MAX_DEPTH + 1) + "critical == 0")
    with pytest.raises(BadArgument, match=f"longer than {MAX_CHARACTERS} characters"):
        parse("critical == 0" + " " * MAX_CHARACTERS)


def test_names_are_told_once_and_in_their_order() -> None:
    assert parse("high + critical > 1 or not (score - high < parts.a)").names == (
        "high",
        "critical",
        "score",
        "parts.a",
    )


@given(truths)
def test_what_is_spelled_is_read_as_the_same(tree: Truth) -> None:
    text = spell(tree)
    if len(text) <= MAX_CHARACTERS and Expression(text=text, tree=tree).names:
        assert parse(text) == Expression(text=text, tree=tree)


@given(
    st.text(max_size=40)
    | st.lists(st.sampled_from([*NAMES, "parts.a-b", "==", "<", "+", "-", "(", ")", "not", "and", "or", "1", "%"])).map(
        " ".join
    )
)
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        found = parse(text)
    except BadArgument:
        return
    assert parse(spell(found.tree)).tree == found.tree


def test_bounds_are_spelled_as_the_most_of_counts_and_the_least_of_measures() -> None:
    given = {
        "critical": 0,
        "rejected": 2,
        "score": 9.0,
        "coverage": "80 %",
        "parts": {"error-handling": 8},
        "parts.a": 7.5,
    }
    assert spell_mapping(given) == (
        "critical <= 0",
        "rejected <= 2",
        "score >= 9",
        "coverage >= 80",
        "parts.error-handling >= 8",
        "parts.a >= 7.5",
    )
    assert spell_mapping({}) == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"criticl": 0}, "did you mean critical"),
        ({"parts.a b": 0}, "is not a known metric"),
        ({"critical": -1}, "must be a number of at least 0, not '-1'"),
        ({"critical": True}, "not 'True'"),
        ({"critical": None}, "not 'None'"),
        ({"critical": "== 0"}, "not '== 0'"),
        ({"score": float("nan")}, "not 'nan'"),
        ({"score": float("inf")}, "not 'inf'"),
        ({"score": [1]}, "must be a number"),
        ({"parts": 3}, "'parts' is not a known metric"),
    ],
)
def test_a_bound_that_is_none_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(BadArgument, match=message.replace("[", r"\[")):
        spell_mapping(given)

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import BadArgument, BadOutput
from muster.pool.chains.conditions import holds, names_in, parse_condition

VALUES = {
    "steps.plan.count": 4,
    "steps.plan.title": "Bees",
    "steps.plan.tags": ["a", 2, None],
    "steps.plan.object": {"key": 1},
    "steps.skipped.x": None,
    "steps.plan.empty": "",
    "input.number": "10",
    "input.flag": "true",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("steps.plan.count > 3", True),
        ("steps.plan.count == 4.0", True),
        ("steps.plan.count != 4", False),
        ("input.number >= 10", True),
        ("input.number == 10", True),
        ("input.number == '10'", True),
        ("input.flag == true", False),
        ("steps.plan.title == 'Bees'", True),
        ('steps.plan.title contains "ee"', True),
        ("steps.plan.title contains 'x'", False),
        ("steps.plan.tags contains 2", True),
        ("steps.plan.tags contains 'b'", False),
        ("steps.plan.tags contains null", True),
        ("steps.plan.object contains 'key'", True),
        ("steps.plan.title", True),
        ("steps.plan.empty", False),
        ("not steps.plan.empty", True),
        ("steps.skipped.x == null", True),
        ("steps.skipped.x > 3", False),
        ("not not true", True),
        ("true or false and false", True),
        ("(true or false) and false", False),
        ("steps.plan.count > -5 and steps.plan.count <= 4", True),
        ("'and' == 'and'", True),
    ],
)
def test_a_condition_holds_or_not(text: str, expected: bool) -> None:
    assert holds(parse_condition(text), VALUES.__getitem__) is expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the condition ends"),
        ("a ==", "the condition ends"),
        ("a = 1", "write == instead of ="),
        ("a && b", "write and instead of &&"),
        ("a == 1 == 2", "cannot be chained"),
        ("(a", "not closed"),
        ("a b", "unexpected 'b'"),
        ("a == 'x", "unexpected character"),
        ("contains a", "expected a value"),
        ("(" * 40 + "a" + ")" * 40, "nested more than"),
        ("a" * 600, "at most 500"),
        ("a; b", "unexpected character ';'"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadArgument, match=words):
        parse_condition(text)


def test_values_of_different_kinds_are_not_ordered() -> None:
    with pytest.raises(BadOutput, match="different kinds"):
        holds(parse_condition("steps.plan.tags > 3"), VALUES.__getitem__)


def test_the_names_are_known() -> None:
    assert list(names_in(parse_condition("a.b and not (c.d == 'e.f' or 1 < g-h)"))) == ["a.b", "c.d", "g-h"]


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(BadArgument):
        parse_condition(text)

"""When JSON is the same, and when it holds what is asked for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.suites.checks.tool_calls import covers, same

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("found", "asked", "holds"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2}}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1.0}, {"a": 1}, True),
        ({"a": None}, {"a": None}, True),
        ({}, {"a": None}, False),
        ({"a": "1"}, {"a": 1}, False),
        ("text", {}, False),
    ],
)
def test_objects_may_hold_more_and_lists_may_not(found: Any, asked: Any, holds: bool) -> None:
    assert covers(found, asked) is holds


@given(JSON, JSON)
def test_a_value_covers_itself_and_sameness_covers_both_ways(left: Any, right: Any) -> None:
    assert same(left, left)
    assert covers(left, left)
    assert same(left, right) == same(right, left)
    assert same(left, right) == (covers(left, right) and covers(right, left))

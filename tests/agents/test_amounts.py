"""Dollars and counts as agents report them."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.payload import count_of, microdollars_of


@pytest.mark.parametrize(
    ("values", "micro"),
    [
        ([0], 0),
        ([0.01], 10_000),
        ([2], 2_000_000),
        (["0.25"], 250_000),
        ([Decimal("0.0000125")], 13),
        ([1e-7], 1),  # rounded up
        ([0.0000011], 2),
        ([0.1, 0.2], 300_000),  # though the sum of the floating-point numbers is more
        ([0.1 + 0.2], 300_000),
        ([0.012470000000000002], 12_470),
        ([None, 1], 1_000_000),
        ([True], None),
        ([float("nan")], None),
        ([float("inf")], None),
        (["nan"], None),
        ([-1], None),
        ([1, -1], None),
        (["free"], None),
        ([1, "free"], None),
        ([None, {}], None),
        ([None], None),
        ([], None),
        ([10**30], None),
        ([10**9, 10**9], None),
        ([10**5000], None),
    ],
)
def test_amounts_are_added_up_and_nonsense_makes_them_unknown(values: list[Any], micro: int | None) -> None:
    assert microdollars_of(*values) == micro


@given(st.floats(min_value=0, max_value=1e6))
def test_an_amount_is_never_less_than_was_said_by_more_than_noise(dollars: float) -> None:
    cost = microdollars_of(dollars)
    assert cost is not None
    assert -1e-3 <= cost - dollars * 1_000_000 < 1.001


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ([3], 3),
        ([5.0], 5),
        ([1, None, 2], 3),
        ([0], 0),
        ([None], None),
        ([], None),
        ([True], None),
        (["5"], None),
        ([-1], None),
        ([1.5], None),
        ([1.5, 1.5], None),
        ([[3]], None),
        ([float("nan")], None),
        ([float("inf")], None),
        ([2**53], 2**53),
        ([2**53 + 1], None),
        ([2**53, 1], None),
    ],
)
def test_counts_are_whole_numbers_from_nothing_to_what_json_holds_exactly(values: list[Any], count: int | None) -> None:
    assert count_of(*values) == count

"""The chart of support: names stand apart from each other, and inside of the picture."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from muster.councils.reports.chart import name_places, names_together


@given(st.lists(st.floats(16, 246), max_size=14))
def test_names_stand_apart_in_the_order_of_their_lines_and_above_the_bottom(ends: list[float]) -> None:
    places = name_places(sorted(ends), 246)
    assert all(after - before >= 15.999 for before, after in pairwise(places))
    assert all(0 <= place <= 246 for place in places)


def test_names_at_one_place_stand_together_as_far_as_there_is_room() -> None:
    assert names_together(["ada"]) == "ada"
    assert names_together(["ada", "bob", "cyd"]) == "ada, bob, cyd"
    assert names_together(["anthropic/claude-sonnet", "bob"]) == "anthropic/claude and 1 more"

"""Which tool calls meet which expectations."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.call import ToolCall
from muster.suites.checks.tool_calls import check_tools, meets
from muster.suites.values.case import ToolExpectation, ToolOrder
from tests.suites.checks.values import call, expect


def met(expected: Sequence[ToolExpectation], *calls: ToolCall) -> bool:
    found = check_tools(expected, calls)
    assert found is not None
    assert found.passed == (found.why == "")
    return found.passed


def why(expected: Sequence[ToolExpectation], *calls: ToolCall) -> str:
    found = check_tools(expected, calls)
    assert found is not None
    return found.why


def test_nothing_expected_is_no_check() -> None:
    assert check_tools((), (call("a"),)) is None


def test_all_strict_means_exactly_these_calls() -> None:
    both = (expect("a", "strict"), expect("b", "strict"))
    assert met(both, call("a"), call("b"))
    assert not met(both, call("b"), call("a"))
    assert not met(both, call("a"))
    assert not met(both, call("a"), call("b"), call("c"))
    assert not met(both, call("a"), call("x"), call("b"))


def test_a_subsequence_may_have_others_between() -> None:
    both = (expect("a"), expect("b"))
    assert met(both, call("x"), call("a"), call("x"), call("b"), call("x"))
    assert not met(both, call("b"), call("a"))
    assert not met((expect("a"), expect("a")), call("a"))


def test_unordered_calls_are_matched_so_that_all_find_one() -> None:
    wide_first = (expect("a", "unordered"), expect("a", "unordered", n=1))
    assert met(wide_first, call("a", n=1), call("a", n=2))
    assert not met(wide_first, call("a", n=1))
    assert not met(wide_first, call("a", n=2), call("a", n=2))


def test_a_strict_call_among_others_stands_right_after_the_one_before() -> None:
    mixed = (expect("a"), expect("b", "strict"))
    assert met(mixed, call("a"), call("x"), call("a"), call("b"))  # the second a is the one
    assert not met(mixed, call("a"), call("x"), call("b"))
    head = (expect("a", "strict"), expect("b"))
    assert met(head, call("a"), call("x"), call("b"))
    assert not met(head, call("x"), call("a"), call("b"))


def test_the_chain_leaves_calls_to_unordered_ones_when_it_can() -> None:
    mixed = (expect("a"), expect("a", "unordered", n=1))
    assert met(mixed, call("a", n=1), call("a", n=2))
    assert not met(mixed, call("a", n=1))


def test_arguments_match_partly() -> None:
    wanted = (expect("search", query={"city": "Oslo"}),)
    assert met(wanted, call("search", query={"city": "Oslo", "days": 3}, more=True))
    assert not met(wanted, call("search", query={"city": "Rome"}))


@pytest.mark.parametrize(
    ("expected", "calls", "words"),
    [
        ((expect("a"),), (), ("a was not called", "no tool was called")),
        ((expect("a"), expect("b")), (call("b"), call("a")), ("b was not called after a", "called: b(), a()")),
        ((expect("a"), expect("b", "strict")), (call("a"),), ("b was not called right after a",)),
        ((expect("a", "strict"), expect("b")), (call("b"),), ("a was not called first",)),
        ((expect("a", "strict"),), (call("b", n=1),), ("call 1 is b", '"n": 1', "not a")),
        ((expect("a", "strict"),), (call("a"), call("z")), ("call 2, z(), was not expected",)),
        ((expect("a", "strict"),), (), ("call 1, a, is missing",)),
        ((expect("a", "unordered", n=1),), (call("a", n=2),), ('a({"n": 1}) was not called', '"n": 2')),
    ],
)
def test_a_failure_names_what_was_missed_and_what_was_called(
    expected: Sequence[ToolExpectation], calls: Sequence[ToolCall], words: Sequence[str]
) -> None:
    said = why(expected, *calls)
    assert all(word in said for word in words), said


def test_long_and_hostile_calls_are_shown_short() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    said = why((expect("a"),), *[ToolCall(id="1", name="x\x1b[2J" * 50, arguments=deep)] * 1000)
    assert len(said) < 400
    assert "\x1b" not in said


def test_calls_that_others_want_are_left_to_them_among_many() -> None:
    expected = [*[expect("a")] * 6, expect("a", "unordered", n=1), expect("a", "unordered", n=1)]
    assert met(expected, call("a", n=1), *[call("a")] * 20, call("a", n=1))
    assert not met([*[expect("a")] * 20, *[expect("a", "unordered")] * 10], *[call("a")] * 28)
    assert met([expect("a")] * 300, *[call("a")] * 600)


def test_too_many_ways_are_given_up_as_broken() -> None:
    expected = [*[expect("a")] * 10, expect("x"), expect("a", "unordered"), expect("x", "unordered", m=2)]
    found = check_tools(expected, [call("x", m=1), *[call("a")] * 25, call("x", m=2)])
    assert found is not None
    assert (found.passed, found.broken) == (False, True)


# Brute force: every way to give each expectation a call of its own.

CALLS = st.lists(st.builds(call, st.sampled_from("ab"), n=st.integers(0, 1)), max_size=5)
EXPECTED = st.lists(
    st.builds(expect, st.sampled_from("ab"), st.sampled_from(["strict", "subsequence", "unordered"]))
    | st.builds(expect, st.sampled_from("ab"), st.sampled_from(["subsequence", "unordered"]), n=st.integers(0, 1)),
    min_size=1,
    max_size=4,
)


def in_order(expected: Sequence[ToolExpectation], places: Sequence[int], calls: int) -> bool:
    if all(one.order is ToolOrder.STRICT for one in expected):
        return list(places) == list(range(calls))
    before = -1
    for one, place in zip(expected, places, strict=True):
        if one.order is ToolOrder.UNORDERED:
            continue
        if place <= before or (one.order is ToolOrder.STRICT and place != before + 1):
            return False
        before = place
    return True


def by_brute_force(expected: Sequence[ToolExpectation], calls: Sequence[ToolCall]) -> bool:
    return any(
        all(meets(calls[place], one) for one, place in zip(expected, places, strict=True))
        and in_order(expected, places, len(calls))
        for places in permutations(range(len(calls)), len(expected))
    )


@given(EXPECTED, CALLS)
def test_a_match_is_found_exactly_when_there_is_one(expected: list[ToolExpectation], calls: list[ToolCall]) -> None:
    assert met(expected, *calls) is by_brute_force(expected, calls)

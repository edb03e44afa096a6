"""How alike texts are."""

import time
from difflib import SequenceMatcher
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.suites.checks.output import line_ratio, similarity
from muster.suites.values.case import Golden

LINES = st.lists(st.sampled_from("abcd"), max_size=12)


def alike(text: str, golden: str, normalize: bool = False) -> float:
    return similarity(text, Golden(path="g", text=golden, normalize_whitespace=normalize))


def common(left: list[str], right: list[str]) -> int:
    """The longest common subsequence, by its definition."""

    @lru_cache(None)
    def best(i: int, j: int) -> int:
        if i == len(left) or j == len(right):
            return 0
        if left[i] == right[j]:
            return 1 + best(i + 1, j + 1)
        return max(best(i + 1, j), best(i, j + 1))

    return best(0, 0)


def test_likeness_is_the_share_of_lines_in_common() -> None:
    assert alike("a\nb\nc", "a\nb\nc") == 1
    assert alike("a\nb\nc\n", "a\r\nb\r\nc") == 1
    assert alike("a\nb", "c\nd") == 0
    assert alike("", "") == 1
    assert alike("", "a") == 0
    assert alike("a\nb\nx\nd", "a\nb\nc\nd") == pytest.approx(0.75)
    assert alike("a\nb\nc\nd\ne", "a\nb\nc") == pytest.approx(6 / 8)


def test_spaces_count_unless_they_are_normalised() -> None:
    assert alike("a  b \n\n c", "a b\nc") == 0
    assert alike("a  b \n\n c", "a b\nc", normalize=True) == 1


@given(LINES, LINES)
def test_lines_in_common_are_the_longest_common_subsequence(left: list[str], right: list[str]) -> None:
    expected = 2 * common(left, right) / (len(left) + len(right)) if left or right else 1.0
    assert line_ratio(left, right) == pytest.approx(expected)
    assert line_ratio(right, left) == pytest.approx(expected)


@given(LINES, LINES)
def test_likeness_is_never_less_than_what_a_heuristic_diff_finds(left: list[str], right: list[str]) -> None:
    assert line_ratio(left, right) >= SequenceMatcher(None, left, right, autojunk=False).ratio() - 1e-12


def test_huge_texts_are_compared_in_bounded_time_and_never_too_high() -> None:
    begun = time.thread_time()  # of the processor: others may use it too
    many = [str(number) for number in range(30_000)]
    assert line_ratio(many, [*many[:-1], "x"]) == pytest.approx(29_999 / 30_000)
    mixed = [str(number * 7919 % 30_000) for number in range(30_000)]
    assert 0 <= line_ratio(many, mixed) < 0.1
    assert line_ratio(["a", "b"] * 15_000, ["b", "a", "a"] * 10_000) <= 1
    assert time.thread_time() - begun < 10

"""What is kept of the arguments of tools."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.local import MAX_ARGUMENTS, MAX_TEXT, kept_arguments
from muster.text.json_documents import flaw_of

FEW = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    # Halves of characters come from strangers, too.
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
LONG = st.tuples(st.sampled_from(["x", "ä", "🎉", '"', "\x00", "\ud800"]), st.integers(0, 40_000)).map(
    lambda drawn: drawn[0] * drawn[1]
)
MANY = st.builds(lambda item, count: [item] * count, FEW | LONG, st.integers(0, 400))
ANY = st.dictionaries(st.text(max_size=8) | LONG, FEW | LONG | MANY, max_size=4)


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


@given(ANY)
def test_whatever_is_given_little_is_kept_and_it_can_be_kept(arguments: dict[str, Any]) -> None:
    kept = kept_arguments(arguments)
    assert size(kept) <= MAX_ARGUMENTS + 100
    assert flaw_of(kept) is None


@given(st.dictionaries(st.text(max_size=8), FEW, max_size=4))
def test_short_arguments_are_kept_as_they_are(arguments: dict[str, Any]) -> None:
    assert kept_arguments(arguments) == arguments


@given(ANY)
def test_what_is_kept_is_kept_as_it_is_when_it_is_read_again(arguments: dict[str, Any]) -> None:
    kept = kept_arguments(arguments)
    assert kept_arguments(kept) == kept


def test_a_text_of_the_greatest_length_is_whole_and_a_longer_one_ends_with_a_mark() -> None:
    whole, cut = "x" * MAX_TEXT, "x" * (MAX_TEXT - 1) + "…"
    assert kept_arguments({"a": [{"b": whole}, whole + "x"]}) == {"a": [{"b": whole}, cut]}


def test_of_arguments_that_are_still_too_long_the_beginning_is_kept() -> None:
    kept = kept_arguments({"numbers": list(range(100_000)), "after": "them"})
    assert list(kept) == ["_cut"]
    assert kept["_cut"].startswith('{"numbers": [0, 1, 2, ')
    assert (len(kept["_cut"]), kept["_cut"][-1]) == (MAX_TEXT, "…")


def test_a_name_of_any_length_does_not_get_through() -> None:
    assert list(kept_arguments({"x" * 1_000_000: 1})) == ["_cut"]


def deep(levels: int) -> Any:
    found: Any = "the bottom"
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize("value", [deep(200), deep(100_000), float("nan"), float("inf"), 10**30])
def test_what_no_store_could_keep_is_kept_as_text(value: Any) -> None:
    kept = kept_arguments({"value": value})
    assert list(kept) == ["_cut"]
    assert isinstance(kept["_cut"], str)

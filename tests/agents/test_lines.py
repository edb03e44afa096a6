"""Lines out of chunks, and the objects in them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.local import LineBuffer, object_of

LINES = st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), max_size=8)


@given(LINES, st.lists(st.integers(0, 200), max_size=10))
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    together, found = LineBuffer(), []
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    for start, end in pairwise(edges):
        found += together.feed(data[start:end])
    assert (found, together.rest(), together.waiting) == (lines, b"", 0)


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[1]", b'"text"', b"null", b"{bad}", b"\xff\xfe", b'{"a": 1} trailing', b'{"a":' * 9_000]
)
def test_a_line_that_is_no_object_is_none(line: bytes) -> None:
    assert object_of(line) is None


def test_a_line_is_an_object_even_with_bytes_that_are_no_text() -> None:
    assert object_of(b' {"a": "x\xffy \xc3\xbc"}\r') == {"a": "x\\xffy ü"}

"""Files as bytes that are known to be text."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.text.document_tree import Unreadable
from muster.text.files import CheckedStream, byte_lines, opened, text_lines, whole_text
from tests.suites.format.suites import write


def stream(data: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(data))


def read_in_pieces(data: bytes, size: int) -> bytes:
    checked = CheckedStream(stream(data))
    return b"".join(iter(lambda: checked.read(size), b""))


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.just("\n"), max_size=40), st.integers(1, 9))
def test_text_comes_through_however_it_is_cut(text: str, size: int) -> None:
    assert read_in_pieces(text.encode(), size) == text.encode().removeprefix(b"\xef\xbb\xbf") or size < 3


@given(st.lists(st.sampled_from(["ä", "\n", "x", "😀"]), max_size=20), st.integers(1, 9), st.sampled_from([255, 0, 27]))
def test_the_line_of_a_bad_byte_is_exact_however_it_is_cut(parts: list[str], size: int, bad: int) -> None:
    before = "".join(parts)
    with pytest.raises(Unreadable) as caught:
        read_in_pieces(before.encode() + bytes([bad]) + b"\nrest", size)
    assert caught.value.line == before.count("\n") + 1


def test_a_mark_at_the_beginning_is_no_text(tmp_path: Path) -> None:
    assert whole_text(write(tmp_path, b"\xef\xbb\xbfa", "a"), 10) == "a"
    assert read_in_pieces(b"\xef\xbb\xbfabc", 3) == b"abc"


def test_lines_are_bounded_and_counted() -> None:
    assert list(byte_lines(stream(b"\xef\xbb\xbfa\nb"), 10)) == [b"a\n", b"b"]
    with pytest.raises(Unreadable) as caught:
        list(byte_lines(stream(b"a\n" + b"x" * 11), 10))
    assert caught.value.line == 2
    with pytest.raises(Unreadable) as caught:
        list(text_lines(stream(b"a\nb\n\xe4\n"), 10))
    assert caught.value.line == 3


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="cannot be read: No such file"), opened(tmp_path / "no"):
        pass
    with pytest.raises(Unreadable), opened(tmp_path):
        pass
    with pytest.raises(Unreadable, match="not a regular file"), opened(Path("/dev/null")):
        pass

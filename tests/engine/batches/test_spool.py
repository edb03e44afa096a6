"""Results on disk while they come: sorted by places, and none lost unnoticed."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import StoreFailed
from muster.domain.run import Driver
from muster.engine.batches.results import MOST_LINE, UNUSED_SECONDS, Splitter, Spool, own_folder


def filled(folder: Path, lines: dict[int, bytes]) -> Spool:
    spool = Spool(folder, places=100, page=10)
    spool.begin()
    for place, line in lines.items():
        spool.add(place, line)
    spool.finish()
    return spool


def test_lines_come_back_by_pages_of_places(tmp_path: Path) -> None:
    spool = filled(tmp_path / "spool", {25: b"c\n", 3: b"a\n", 21: b"d\n", 4: b"b\n"})
    assert list(spool.pages()) == [
        (0, 10, [(3, b"a\n"), (4, b"b\n")]),
        (20, 30, [(25, b"c\n"), (21, b"d\n")]),
    ]


def test_a_carriage_return_ends_no_line(tmp_path: Path) -> None:
    spool = filled(tmp_path / "spool", {0: b'{"a":\r1}\n', 1: b"{}\r\n"})
    assert list(spool.pages()) == [(0, 10, [(0, b'{"a":\r1}\n'), (1, b"{}\r\n")])]


@pytest.mark.parametrize("kept", [b"", b"first\n", b"first\nsec"])
def test_lines_that_are_gone_from_the_disk_are_an_error(tmp_path: Path, kept: bytes) -> None:
    spool = filled(tmp_path / "spool", {0: b"first\n", 1: b"second\n"})
    (tmp_path / "spool" / "0.jsonl").write_bytes(kept)
    with pytest.raises(StoreFailed, match="spooled results are gone"):
        list(spool.pages())


@given(st.lists(st.binary(max_size=5) | st.sampled_from([b"\n", b"\r", b"a\nb\n"])))
def test_lines_are_the_same_however_they_arrive(chunks: list[bytes]) -> None:
    splitter = Splitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    *whole, rest = b"".join(chunks).split(b"\n")
    assert lines == [line + b"\n" for line in whole]
    assert splitter.rest() == rest + b"\n"


def test_a_line_that_never_ends_is_cut_where_it_cannot_be_read() -> None:
    splitter, piece = Splitter(), b"x" * (MOST_LINE // 4)
    assert splitter.feed(b'before\n{"text":"') == [b"before\n"]
    lengths = [len(splitter.feed(piece)) for _ in range(100)]
    cut, after = splitter.feed(b'"}\nafter\n')
    assert (sum(lengths), after) == (0, b"after\n")
    assert MOST_LINE < len(cut) < 2 * MOST_LINE
    assert not cut.endswith(b'"}\n')


US = Driver(host="here/there", pid=7, started="boot/11/4026531836")
OTHER = Driver(host="here/there", pid=7, started="boot/11/4026532179")
NOW = 1_800_000_000.0


def used_by(spool: Path, driver: Driver, at: float) -> Path:
    """Make the folder of a driver, last written to at this time."""
    folder = own_folder(spool, driver, lambda _: False, NOW)
    folder.mkdir(parents=True)
    (folder / "0.jsonl").write_bytes(b"{}\n")
    for path in (folder / "0.jsonl", folder):
        os.utime(path, (at, at))
    return folder


def test_a_process_with_the_same_number_in_another_namespace_has_another_folder(tmp_path: Path) -> None:
    theirs = used_by(tmp_path, OTHER, NOW - 60)
    ours = own_folder(tmp_path, US, lambda _: False, NOW)
    assert ours != theirs
    assert ours.parent == tmp_path
    assert (theirs / "0.jsonl").exists()


def test_the_folder_of_a_process_that_is_gone_is_removed(tmp_path: Path) -> None:
    theirs = used_by(tmp_path, OTHER, NOW)
    own_folder(tmp_path, US, lambda driver: driver == OTHER, NOW)
    assert not theirs.exists()


def test_a_folder_whose_process_cannot_be_looked_at_is_removed_when_it_is_old(tmp_path: Path) -> None:
    theirs = used_by(tmp_path, OTHER, NOW - UNUSED_SECONDS - 1)
    older = tmp_path / "4711-0"  # as an older version named them
    older.mkdir()
    os.utime(older, (NOW - UNUSED_SECONDS - 1,) * 2)
    ours = used_by(tmp_path, US, NOW - UNUSED_SECONDS - 1)
    own_folder(tmp_path, US, lambda _: False, NOW)
    assert [folder.name for folder in tmp_path.iterdir()] == [ours.name]
    assert not theirs.exists()

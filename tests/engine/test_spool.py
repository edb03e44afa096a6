"""Results on disk while they come: sorted by places, and none lost unnoticed."""

from pathlib import Path

import pytest

from muster.domain.errors import StoreFailed
from muster.engine.spool import Spool


def filled(folder: Path, lines: dict[int, bytes]) -> Spool:
    spool = Spool(folder, places=100, page=10)
    spool.begin()
    for place, line in lines.items():
        spool.add(place, line)
    spool.finish()
    return spool


def test_lines_come_back_by_pages_of_places(tmp_path: Path) -> None:
    spool = filled(tmp_path / "spool", {25: b"c", 3: b"a", 21: b"d", 4: b"b"})
    assert list(spool.pages()) == [(0, 10, [b"a", b"b"]), (20, 30, [b"c", b"d"])]


def test_a_carriage_return_ends_no_line(tmp_path: Path) -> None:
    spool = filled(tmp_path / "spool", {0: b'{"a":\r1}', 1: b"{}\r"})
    assert list(spool.pages()) == [(0, 10, [b'{"a":\r1}', b"{}\r"])]


@pytest.mark.parametrize("kept", [b"", b"first\n", b"first\nsec"])
def test_lines_that_are_gone_from_the_disk_are_an_error(tmp_path: Path, kept: bytes) -> None:
    spool = filled(tmp_path / "spool", {0: b"first", 1: b"second"})
    (tmp_path / "spool" / "0.jsonl").write_bytes(kept)
    with pytest.raises(StoreFailed, match="spooled results are gone"):
        list(spool.pages())

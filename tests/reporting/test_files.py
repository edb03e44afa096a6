"""Reports as files: whole or not at all, and never over something that is not a file."""

from pathlib import Path
from typing import TextIO

import pytest

from muster.domain.errors import BadArgument
from muster.reporting.files import require_file, write_file


async def whole(out: TextIO) -> None:
    out.write("all of it")


async def test_a_file_is_written_whole_and_its_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "out" / "deep" / "report.txt"
    await write_file(path, whole)
    assert path.read_text(encoding="utf-8") == "all of it"
    assert list(path.parent.iterdir()) == [path]


async def test_a_report_that_breaks_off_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    await write_file(path, whole)

    async def breaks(out: TextIO) -> None:
        out.write("half of")
        raise BadArgument("it broke")

    with pytest.raises(BadArgument, match="it broke"):
        await write_file(path, breaks)
    assert path.read_text(encoding="utf-8") == "all of it"
    assert list(tmp_path.iterdir()) == [path]


def test_folders_links_and_devices_are_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "somewhere")
    with pytest.raises(BadArgument, match="is a folder"):
        require_file(tmp_path)
    for path in (link, Path("/dev/null")):
        with pytest.raises(BadArgument, match="is not a regular file"):
            require_file(path)


async def test_a_path_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with pytest.raises(BadArgument, match="cannot be written"):
        await write_file(tmp_path / "file" / "report.txt", whole)

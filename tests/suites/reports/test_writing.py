"""Reports as files: whole or not at all, and never over something that is no file."""

import io
from pathlib import Path
from typing import TextIO

import pytest

from muster.domain.errors import BadArgument
from muster.reporting.files import require_file, write_file
from muster.suites.reports.formats import WRITERS, write_report
from muster.suites.verdict import CheckResult, Status
from tests.suites.reports.house import Story, called, case, opened, result

GOOD = Story(cases=[case("a")], results=[result("a")])


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


async def test_an_unknown_format_is_named_with_those_there_are(tmp_path: Path) -> None:
    async with opened(tmp_path, GOOD) as (suite, report):
        with (tmp_path / "x").open("w") as out, pytest.raises(BadArgument, match="unknown report format 'pdf'"):
            await write_report(suite, report, "pdf", out)


@pytest.mark.parametrize("name", WRITERS)
async def test_a_report_is_the_same_twice(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path, GOOD) as (suite, report):
        for file in ("one", "two"):
            await write_file(tmp_path / file, lambda out: write_report(suite, report, name, out))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("name", list(WRITERS))
async def test_no_report_holds_a_secret_that_can_be_told_by_its_look(tmp_path: Path, name: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    said = called("leaks", f"the token is {secret}")
    failed = CheckResult(name="contains", passed=False, why=f"the answer is {secret}")
    leaky = result("leaks", Status.FAILED, why=f"it says {secret}", checks=(failed,))
    async with opened(tmp_path, Story(cases=[case("leaks")], results=[leaky], calls=said)) as (suite, report):
        out = io.StringIO()
        await write_report(suite, report, name, out)
    assert secret not in out.getvalue()
    assert "leaks" in out.getvalue()

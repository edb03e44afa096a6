"""Reports by format: known ones only, the same twice, and without secrets."""

import io
from pathlib import Path

import pytest

from muster.domain.case import Status
from muster.domain.errors import BadArgument
from muster.reporting.files import write_file
from muster.suites.reports.formats import WRITERS, report_of
from muster.suites.values.verdict import CheckResult
from tests.suites.reports.house import Story, called, case, opened, result

GOOD = Story(cases=[case("a")], results=[result("a")])


async def test_an_unknown_format_is_named_with_those_there_are(tmp_path: Path) -> None:
    async with opened(tmp_path, GOOD) as (suite, report):
        with (
            (tmp_path / "x").open("w") as out,
            pytest.raises(BadArgument, match=r"the format of a report must be one of .*, not 'pdf'"),
        ):
            await report_of(suite, report).write("pdf", out)


@pytest.mark.parametrize("name", WRITERS)
async def test_a_report_is_the_same_twice(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path, GOOD) as (suite, report):
        for file in ("one", "two"):
            await write_file(tmp_path / file, lambda out: report_of(suite, report).write(name, out))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("name", list(WRITERS))
async def test_no_report_holds_a_secret_that_can_be_told_by_its_look(tmp_path: Path, name: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    said = called("leaks", f"the token is {secret}")
    failed = CheckResult(name="contains", passed=False, why=f"the answer is {secret}")
    leaky = result("leaks", Status.FAILED, why=f"it says {secret}", checks=(failed,))
    async with opened(tmp_path, Story(cases=[case("leaks")], results=[leaky], calls=said)) as (suite, report):
        out = io.StringIO()
        await report_of(suite, report).write(name, out)
    assert secret not in out.getvalue()
    assert "leaks" in out.getvalue()

"""Pages of rows: whatever is wanted and however few are asked for at a time, together they are the rows of the run."""

from pathlib import Path

import pytest

from muster.domain.case import Status
from muster.domain.errors import BadArgument, NotFound
from muster.suites.reports.paging import RowFilter, find_row, page_of_rows
from muster.suites.reports.rows import CaseRow, CaseRows
from muster.suites.reports.run import SuiteRun
from tests.suites.reports.house import Story, case, opened, result

SUBJECTS = ("sim/x", "sim/y")
NAMES = [f"case-{number:03}" for number in range(250)]


def a_story() -> Story:
    """A run of several pages of cases and of results; every seventh case fails, every tenth only with one subject."""
    results = [
        result(name, Status.FAILED if number % 7 == 0 or (number % 10 == 3 and subject == "sim/y") else Status.PASSED,
               subject=subject, epoch=epoch)
        for number, name in enumerate(NAMES) for subject in SUBJECTS for epoch in (1, 2)
    ]  # fmt: skip
    return Story(cases=[case(name) for name in NAMES], results=results, agents=SUBJECTS, epochs=2)


async def walked(suite: SuiteRun, wanted: RowFilter, limit: int) -> list[CaseRow]:
    """Return the rows of all pages, one after the other."""
    rows: list[CaseRow] = []
    after = None
    while True:
        page = await page_of_rows(suite, wanted, after=after, limit=limit)
        assert len(page.rows) == limit or page.next is None
        rows += page.rows
        after = page.next
        if after is None:
            return rows


@pytest.mark.parametrize("limit", [7, 100, 499, 500, 1000])
async def test_pages_are_the_rows_of_the_run(tmp_path: Path, limit: int) -> None:
    async with opened(tmp_path, a_story()) as (suite, _):
        every = [row async for row in CaseRows(suite)]
        assert await walked(suite, RowFilter(), limit) == every


@pytest.mark.parametrize(
    "wanted",
    [
        RowFilter(statuses=frozenset({Status.FAILED})),
        RowFilter(subject="sim/y"),
        RowFilter(search="SE-01"),
        RowFilter(statuses=frozenset({Status.FAILED, Status.ERROR}), subject="sim/x", search="is failed"),
        RowFilter(search="nothing has this"),
    ],
    ids=["status", "subject", "search", "all", "none"],
)
async def test_only_rows_that_are_wanted_come_and_all_of_them(tmp_path: Path, wanted: RowFilter) -> None:
    async with opened(tmp_path, a_story()) as (suite, _):
        expected = [row async for row in CaseRows(suite) if wanted.takes(row)]
        assert await walked(suite, wanted, 9) == expected
        assert bool(expected) == (wanted.search != "nothing has this")


async def test_cases_that_ended_alike_are_left_out(tmp_path: Path) -> None:
    async with opened(tmp_path, a_story()) as (suite, _):
        found = await walked(suite, RowFilter(differing=True), 3)
        differ = [name for number, name in enumerate(NAMES) if number % 10 == 3 and number % 7]
        assert [row.case.id for row in found] == [name for name in differ for _ in SUBJECTS]
        assert {(row.subject, row.status) for row in found} == {("sim/x", Status.PASSED), ("sim/y", Status.FAILED)}


async def test_a_row_is_found_by_its_case_and_its_subject(tmp_path: Path) -> None:
    async with opened(tmp_path, a_story()) as (suite, _):
        row = await find_row(suite, "case-203", "sim/y")
        assert (row.case.id, row.subject, len(row.results)) == ("case-203", "sim/y", 2)
        assert (await find_row(suite, "case-203", None)).subject == "sim/x"
        with pytest.raises(NotFound, match="was not run with 'sim/z'"):
            await find_row(suite, "case-203", "sim/z")
        with pytest.raises(NotFound, match="has no case 'other'"):
            await find_row(suite, "other", None)


@pytest.mark.parametrize("after", ["", "1", "1.2.3.4", "1.2.3.4.-5", "1.2.3.4.5.6", "x.2.3.4.5", "9999999999.0.0.0.0"])
async def test_a_place_that_no_page_ended_with_is_refused(tmp_path: Path, after: str) -> None:
    async with opened(tmp_path, a_story()) as (suite, _):
        with pytest.raises(BadArgument, match="`next` of the page before"):
            await page_of_rows(suite, RowFilter(), after=after, limit=1)
        assert await page_of_rows(suite, RowFilter(), after="999.0.999.0.0", limit=1) == await page_of_rows(
            suite, RowFilter(search="nothing has this"), after=None, limit=1
        )

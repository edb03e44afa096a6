"""Rows: cases with their results, in order, and what was never done."""

from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.case import Status
from muster.domain.run import RunState
from muster.suites.reports.markdown import write_markdown
from muster.suites.reports.rows import STOPPED, CaseRow, CaseRows, kind
from muster.suites.values.case import Evaluator
from muster.suites.values.verdict import CaseResult
from tests.suites.reports.house import Story, case, opened, result

ENDINGS = [status for status in Status if status is not Status.FLAKY]


async def rows(tmp_path: Path, story: Story) -> list[CaseRow]:
    async with opened(tmp_path, story) as (suite, _):
        return [row async for row in CaseRows(suite)]


async def test_rows_come_in_the_order_of_cases_and_subjects(tmp_path: Path) -> None:
    results = [result(name, subject=subject) for name in ("b", "a") for subject in ("sim/x", "sim/y")]
    found = await rows(tmp_path, Story(cases=[case("b"), case("a")], results=results, agents=("sim/x", "sim/y")))
    assert [(row.case.id, row.subject) for row in found] == [
        ("b", "sim/x"), ("b", "sim/y"), ("a", "sim/x"), ("a", "sim/y"),
    ]  # fmt: skip
    assert {row.status for row in found} == {Status.PASSED}


async def test_a_row_sums_up_its_epochs(tmp_path: Path) -> None:
    results = [result("a", epoch=1), result("a", Status.FAILED, epoch=2, seconds=1.5)]
    (row,) = await rows(tmp_path, Story(cases=[case("a")], results=results, epochs=2))
    assert (row.status, row.score, row.seconds, row.cost) == (Status.FLAKY, 0.625, 1.0, 2_000)
    assert row.why == "passed in 1 of 2 epochs: a is failed"
    assert row.evaluators == (Evaluator.RULES,)
    assert row.telling is not None
    assert row.telling.epoch == 2


async def test_pages_of_results_are_joined_with_pages_of_cases(tmp_path: Path) -> None:
    names = [f"case-{number:03}" for number in range(250)]
    results = [result(name, epoch=epoch) for name in names for epoch in (1, 2)]
    found = await rows(tmp_path, Story(cases=[case(name) for name in names], results=results, epochs=2))
    assert [row.case.id for row in found] == names
    assert all(len(row.results) == 2 and row.status is Status.PASSED for row in found)


async def test_what_the_run_never_came_to_is_skipped_and_counted(tmp_path: Path) -> None:
    story = Story(cases=[case("a"), case("b")], results=[result("a")], state=RunState.INTERRUPTED)
    first, second = await rows(tmp_path, story)
    assert (first.status, first.missing) == (Status.PASSED, 0)
    assert (second.status, second.missing, second.why, second.telling) == (Status.SKIPPED, 1, STOPPED, None)
    assert (second.score, second.seconds, second.cost) == (None, None, 0)


@pytest.mark.parametrize("state", [RunState.QUEUED, RunState.RUNNING])
async def test_what_a_run_at_work_has_not_come_to_yet_is_not_skipped(tmp_path: Path, state: RunState) -> None:
    story = Story(cases=[case("a"), case("b")], results=[result("a")], epochs=2, state=state)
    first, second = await rows(tmp_path, story)
    assert (first.status, first.why) == (Status.WAITING, "1 of 2 epochs of this case are done")
    assert (second.status, second.why) == (Status.WAITING, "the run has not come to this case yet")


async def test_a_report_of_a_run_at_work_says_what_is_still_to_come(tmp_path: Path) -> None:
    story = Story(cases=[case("a"), case("b")], results=[result("a")], state=RunState.RUNNING)
    async with opened(tmp_path, story) as (suite, report):
        written = StringIO()
        await write_markdown(suite, report, written)
    assert report.verdict == "The run is running. 1 of 2 results are still to come."
    assert "### 1 still to come" in written.getvalue()
    assert not report.ok


async def test_a_case_with_an_epoch_missing_has_not_passed(tmp_path: Path) -> None:
    story = Story(cases=[case("a")], results=[result("a")], epochs=3, state=RunState.INTERRUPTED)
    (row,) = await rows(tmp_path, story)
    assert (row.status, row.missing) == (Status.SKIPPED, 2)
    assert row.why == "the run stopped after 1 of 3 epochs of this case"


async def test_a_failure_stays_a_failure_when_epochs_are_missing(tmp_path: Path) -> None:
    story = Story(cases=[case("a")], results=[result("a", Status.FAILED)], epochs=3, state=RunState.INTERRUPTED)
    (row,) = await rows(tmp_path, story)
    assert (row.status, row.missing) == (Status.FAILED, 2)


async def test_a_case_that_its_author_skips_is_not_missing(tmp_path: Path) -> None:
    (row,) = await rows(tmp_path, Story(cases=[case("a", skip="later")], results=[]))
    assert (row.status, row.missing, row.why) == (Status.SKIPPED, 0, "later")


async def test_agents_of_a_case_take_the_place_of_those_of_the_run(tmp_path: Path) -> None:
    story = Story(
        cases=[case("a", agents=("sim/own",)), case("b")], results=[result("a", subject="sim/own"), result("b")]
    )
    found = await rows(tmp_path, story)
    assert [(row.case.id, row.subject, row.status) for row in found] == [
        ("a", "sim/own", Status.PASSED), ("b", "sim/good", Status.PASSED),
    ]  # fmt: skip


async def test_results_that_belong_to_no_case_are_counted_and_never_a_success(tmp_path: Path) -> None:
    story = Story(cases=[case("a")], results=[result("a"), result("a", subject="sim/other"), result("ghost")])
    async with opened(tmp_path, story) as (suite, report):
        found = CaseRows(suite)
        assert [row.status async for row in found] == [Status.PASSED]
        assert found.stray == 2
        assert (report.ok, report.stray) == (False, 2)
        assert "2 results in the store belong to no case of the run." in report.verdict


@given(st.lists(st.sampled_from(ENDINGS), min_size=1, max_size=5))
def test_the_kind_of_a_failure_is_a_plain_word(statuses: list[Status]) -> None:
    for status in statuses:
        found = CaseResult(case="a", subject="s", epoch=1, status=status)
        assert kind(found, status).replace("-", "").isalpha()

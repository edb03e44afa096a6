"""The summary: figures, warnings, and a verdict that is never good by accident."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muster.domain.case import Status
from muster.domain.money import Microdollars
from muster.domain.run import RunState, Spent
from muster.suites.reports.summary import KEPT
from muster.suites.values.verdict import CheckResult, ItemScore, Judgement
from tests.suites.reports.house import Story, case, result, shop, summary

ENDINGS = [status for status in Status if status is not Status.FLAKY]


async def test_a_run_in_which_everything_passed_is_good(tmp_path: Path) -> None:
    report = await summary(tmp_path, Story(cases=[case("a"), case("b")], results=[result("a"), result("b")]))
    assert (report.ok, report.verdict) == (True, "All 2 cases passed.")
    assert (report.cases, report.expected, report.missing, report.not_passed) == (2, 2, 0, 0)
    assert (report.run.version, report.run.suites) == ("1.2.3", ("support",))
    assert report.run.seconds == pytest.approx(14.2)


async def test_a_case_that_its_author_skips_does_not_spoil_the_rest(tmp_path: Path) -> None:
    story = Story(cases=[case("a"), case("b", skip="later")], results=[result("a"), result("b", Status.SKIPPED)])
    report = await summary(tmp_path, story)
    assert (report.ok, report.verdict) == (True, "The only case passed (1 skipped).")


async def test_nothing_run_is_no_success(tmp_path: Path) -> None:
    story = Story(cases=[case("a", skip="later")], results=[result("a", Status.SKIPPED, why="later")])
    report = await summary(tmp_path, story)
    assert (report.ok, report.verdict) == (False, "No case was run.")


async def test_no_case_at_all_is_no_success(tmp_path: Path) -> None:
    report = await summary(tmp_path, Story(cases=[], results=[]))
    assert (report.ok, report.verdict, report.subjects) == (False, "No case was run.", ())


@pytest.mark.parametrize("state", [state for state in RunState if state is not RunState.COMPLETED])
async def test_a_run_that_is_not_completed_is_no_success(tmp_path: Path, state: RunState) -> None:
    story = Story(cases=[case("a")], results=[result("a")], state=state, error={"message": "the budget is used up"})
    report = await summary(tmp_path, story)
    assert not report.ok
    assert report.verdict.endswith(": the budget is used up.")


async def test_missing_results_are_no_success_even_of_a_completed_run(tmp_path: Path) -> None:
    report = await summary(tmp_path, Story(cases=[case("a"), case("b")], results=[result("a")]))
    assert (report.ok, report.missing, report.expected) == (False, 1, 2)
    assert report.verdict == "1 of 2 results are missing."


@example([[Status.WAITING, Status.WAITING]])
@example([[Status.PASSED, Status.PASSED], [Status.SKIPPED, Status.WAITING]])
@example([[Status.PASSED, Status.WAITING], [Status.PASSED, Status.PASSED]])
@given(st.lists(st.lists(st.sampled_from(ENDINGS), min_size=1, max_size=2), min_size=1, max_size=4))
async def test_only_passing_and_skipped_cases_make_a_success(endings: list[list[Status]]) -> None:
    cases = [case(f"case-{number}") for number in range(len(endings))]
    results = [
        result(f"case-{number}", status, epoch=epoch)
        for number, statuses in enumerate(endings)
        for epoch, status in enumerate(statuses, 1)
    ]
    with TemporaryDirectory() as folder:
        report = await summary(Path(folder), Story(cases=cases, results=results, epochs=2))
    whole = all(len(statuses) == 2 for statuses in endings)
    good = all(set(statuses) <= {Status.PASSED} or set(statuses) == {Status.SKIPPED} for statuses in endings)
    some = any(Status.PASSED in statuses for statuses in endings)
    assert report.ok == (whole and good and some)


async def test_subjects_stand_in_their_rank_with_their_figures(tmp_path: Path) -> None:
    report = await summary(tmp_path, shop())
    assert [(line.label, line.rank) for line in report.subjects] == [("sim/good", 1), ("sim/terse", 2)]
    good, terse = report.subjects
    assert good.stats.pass_rate == pytest.approx(6 / 7)
    assert good.stats.pass_interval is not None
    assert good.stats.pass_interval.holds(6 / 7)
    assert terse.counts == {Status.PASSED: 2, Status.FAILED: 2, Status.FLAKY: 1, Status.ERROR: 1, Status.SKIPPED: 1,
                            Status.UNJUDGED: 1}  # fmt: skip
    assert sum(good.score_bins) == 7
    assert sum(good.second_bins) == 14
    assert (good.model, report.run.judge) == ("good-large-2", "sim/judge")


async def test_one_subject_alone_has_no_rank(tmp_path: Path) -> None:
    report = await summary(tmp_path, Story(cases=[case("a")], results=[result("a")]))
    assert [line.rank for line in report.subjects] == [None]


async def test_a_subject_that_the_run_never_came_to_is_shown_all_the_same(tmp_path: Path) -> None:
    story = Story(cases=[case("a")], results=[result("a")], agents=("sim/good", "sim/late"), state=RunState.CANCELED)
    report = await summary(tmp_path, story)
    assert [(line.label, line.rank, line.stats.pass_rate) for line in report.subjects] == [
        ("sim/good", 1, 1.0), ("sim/late", 2, None),
    ]  # fmt: skip


async def test_what_makes_figures_less_sure_is_told(tmp_path: Path) -> None:
    doubtful = result(
        "a",
        Status.UNJUDGED,
        items=(ItemScore(id="x"), ItemScore(id="y", score=1.0, evidence="made up", quoted=False)),
        checks=(CheckResult(name="regex", passed=False, broken=True),),
        judgements=(Judgement(by="sim/judge", failures=("no JSON", "no JSON again")),),
    )
    spent = Spent(billed=Microdollars(10), uncertain=Microdollars(20_000))
    report = await summary(tmp_path, Story(cases=[case("a")], results=[doubtful], spent=spent))
    assert report.warnings == (
        "1 check could not be run.",
        "2 judge samples failed.",
        "1 judge quotation not found in the answer.",
        "1 rubric item without a judgement.",
        "$0.02 more may have been charged: the outcome of some calls is unknown.",
    )


async def test_of_very_many_failures_some_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    names = [f"case-{number}" for number in range(KEPT + 50)]
    story = Story(cases=[case(name) for name in names], results=[result(name, Status.FAILED) for name in names])
    report = await summary(tmp_path, story)
    assert (len(report.troubles), report.not_passed) == (KEPT, KEPT + 50)


async def test_a_run_judged_otherwise_has_no_results_yet(tmp_path: Path) -> None:
    story = Story(cases=[case("a")], results=[result("a")])
    other = replace(story, more={"judge": "sim/other"})
    assert other.spec.tag != story.spec.tag
    report = await summary(tmp_path, replace(other, steps={}, results=[]))
    assert (report.ok, report.missing) == (False, 1)

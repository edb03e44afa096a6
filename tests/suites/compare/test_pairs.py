"""The pairs of a comparison, page by page: what got worse first, and nothing but what the comparison counts."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.domain.case import Status
from muster.domain.errors import BadArgument
from muster.store.base import Store
from muster.store.sqlite.store import open_sqlite
from muster.suites.compare.json_report import comparison_view, pair_page_view
from muster.suites.compare.pairs import EVERY_PAIR, ComparedPair, PairFilter, PairPage, page_of_pairs
from muster.suites.compare.runs import ComparisonTerms, Side, compare_runs
from muster.suites.compare.values import PairChange
from muster.suites.reports.run import open_suite_run
from muster.suites.values.verdict import CaseResult
from tests.suites.reports.suite_store import Story, a_case, a_result, an_answer, fill

NAMES = [f"s/{number:02}" for number in range(12)]
CASES = [a_case(name) for name in NAMES]
FAILED, SKIPPED, ERROR = Status.FAILED, Status.SKIPPED, Status.ERROR


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = open_sqlite(tmp_path / "muster.db")
    yield opened
    await opened.maintenance.close()


def results(subject: str = "sim/echo", **ended: Status) -> list[CaseResult]:
    """Make a result for each case: all pass but those whose numbers are given."""
    told = {f"s/{name.removeprefix('n')}": status for name, status in ended.items()}
    return [a_result(name, told.get(name, Status.PASSED), subject=subject, keys=keys(name, subject)) for name in NAMES]


def keys(name: str, subject: str) -> tuple[str, ...]:
    return (an_answer(a_case(name), "", subject=subject).key,)


async def side(store: Store, run: str, story: Story, subject: str | None = None) -> Side:
    found = await fill(store, replace(story, run=run))
    return Side(name=run, suite=await open_suite_run(store, found), subject=subject)


def story(found: Sequence[CaseResult], answers: dict[str, str] | None = None, **rest: Any) -> Story:
    said = dict.fromkeys(NAMES, "hello") | (answers or {})
    calls = [an_answer(case, said[case.id]) for case in CASES]
    return Story(cases=CASES, results=found, calls=calls, **rest)


def told(page: PairPage) -> list[tuple[str, str]]:
    return [(pair.case, str(pair.change)) for pair in page.pairs]


async def every(a: Side, b: Side, wanted: PairFilter = EVERY_PAIR, limit: int = 100) -> list[ComparedPair]:
    """Read page after page."""
    found: list[ComparedPair] = []
    after = None
    while True:
        page = await page_of_pairs(a, b, wanted, after=after, limit=limit)
        found += page.pairs
        after = page.next
        if after is None:
            return found


async def test_what_got_worse_comes_first_and_is_what_the_comparison_counts(store: Store) -> None:
    a = await side(store, "a", story(results(n01=FAILED, n02=FAILED, n09=SKIPPED)))
    b = await side(store, "b", story(results(n02=FAILED, n03=ERROR, n04=FAILED)))
    page = await page_of_pairs(a, b, EVERY_PAIR, after=None, limit=100)
    assert told(page)[:4] == [("s/03", "worse"), ("s/04", "worse"), ("s/01", "better"), ("s/09", "new")]
    assert {change for _, change in told(page)[4:]} == {"same"}
    assert page.counts == {"worse": 2, "better": 1, "new": 1, "same": 8}
    (judged,) = (await compare_runs(a, b, ComparisonTerms())).subjects
    for change, listed in ((PairChange.WORSE, "regressions"), (PairChange.BETTER, "improvements")):
        named = [pair.case for pair in page.pairs if pair.change is change]
        assert named == [one.case for one in getattr(judged.comparison, listed)]
    assert page.pairs[0].reason == "no result in B: error"


async def test_pages_follow_each_other_without_a_gap(store: Store) -> None:
    a = await side(store, "a", story(results(n01=FAILED)))
    b = await side(store, "b", story(results(n04=FAILED)))
    whole = await every(a, b)
    assert len(whole) == len(NAMES)
    for limit in (1, 5, 12):
        assert await every(a, b, limit=limit) == whole
    wanted = PairFilter(changes=frozenset({PairChange.SAME}), search="S/0")
    some = await every(a, b, wanted, limit=3)
    assert [pair.case for pair in some] == [pair.case for pair in whole if pair.case < "s/1"][2:]


async def test_two_agents_of_one_run_are_paired(store: Store) -> None:
    both = [*results("x", n01=FAILED), *results("y", n02=FAILED)]
    run = await fill(store, Story(cases=CASES, results=both, spec={"path": ["s.yaml"], "agents": ["x", "y"]}))
    suite = await open_suite_run(store, run)
    x, y = (Side(name="run1", suite=suite, subject=one) for one in ("x", "y"))
    page = await page_of_pairs(x, y, EVERY_PAIR, after=None, limit=2)
    assert told(page) == [("s/02", "worse"), ("s/01", "better")]
    assert (page.pairs[0].subject_a, page.pairs[0].subject_b) == ("x", "y")
    assert [one.label for one in await suite.all_subjects()] == ["x", "y"]


async def test_whether_the_answers_are_the_same_is_told_for_a_page(store: Store) -> None:
    a = await side(store, "a", story(results()))
    b = await side(store, "b", story(results(), {"s/03": "something else"}))
    differ = [pair.case for pair in await every(a, b) if pair.same_answer is False]
    assert differ == ["s/03"]


@pytest.mark.parametrize("after", ["", "1", "a.b.c.d", "1.2.3."])
async def test_another_place_than_the_end_of_a_page_is_refused(store: Store, after: str) -> None:
    a = await side(store, "a", story(results()))
    with pytest.raises(BadArgument, match="after"):
        await page_of_pairs(a, a, EVERY_PAIR, after=after, limit=1)


async def test_json_names_the_changes_and_can_leave_out_their_list(store: Store) -> None:
    a = await side(store, "a", story(results()))
    b = await side(store, "b", story(results(n03=FAILED, n04=FAILED)))
    page = pair_page_view(await page_of_pairs(a, b, EVERY_PAIR, after=None, limit=1)).builtins()
    assert page["counts"] == {"worse": 2, "better": 0, "new": 0, "same": 10}
    assert page["pairs"][0] == {
        "case": "s/03",
        "epoch": 1,
        "subject_a": "sim/echo",
        "subject_b": "sim/echo",
        "change": "worse",
        "reason": "passed in A, failed in B",
        "before": "passed",
        "after": "failed",
        "before_score": 1.0,
        "after_score": 0.0,
        "same_answer": True,
    }
    found = await compare_runs(a, b, ComparisonTerms())
    (whole,) = comparison_view(found).builtins()["subjects"]
    (short,) = comparison_view(found, most_changes=1).builtins()["subjects"]
    assert short["counts"] == whole["counts"] == {"regressions": 2, "improvements": 0, "new": 0}
    assert (len(whole["regressions"]), short["regressions"]) == (2, whole["regressions"][:1])

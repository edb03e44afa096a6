"""Two runs compared from their stores: which subject with which, what else changed, and what comes out."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.domain.case import Status
from muster.domain.errors import BadArgument, NotFound
from muster.domain.run import RunState
from muster.store.base import Store
from muster.store.sqlite.store import open_sqlite
from muster.suites.compare.json_report import comparison_view
from muster.suites.compare.report import comparison_markdown
from muster.suites.compare.runs import ComparisonTerms, RunComparison, Side, compare_runs
from muster.suites.journal import Prompt, SuiteInfo
from muster.suites.reports.run import open_suite_run
from muster.suites.values.verdict import CaseResult
from muster.text.views import plain
from tests.suites.reports.suite_store import Story, a_case, a_result, fill

NAMES = [f"s/{number:02}" for number in range(30)]
CASES = [a_case(name) for name in NAMES]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = open_sqlite(tmp_path / "muster.db")
    yield opened
    await opened.maintenance.close()


def results(failing: Sequence[str] = (), subject: str = "sim/echo", **rest: Any) -> list[CaseResult]:
    return [
        a_result(name, Status.FAILED if name in failing else Status.PASSED, subject=subject, **rest) for name in NAMES
    ]


def spec(*agents: str, **rest: Any) -> dict[str, Any]:
    return {"path": ["s.yaml"], "agents": list(agents or ("sim/echo",)), **rest}


async def side(store: Store, story: Story, subject: str | None = None) -> Side:
    run = await fill(store, story)
    return Side(name=story.run, suite=await open_suite_run(store, run), subject=subject)


async def compared(store: Store, a: Story, b: Story, of_b: str | None = None) -> RunComparison:
    one = await side(store, replace(a, run="a"))
    other = await side(store, replace(b, run="b"), of_b)
    return await compare_runs(one, other, ComparisonTerms())


GOOD = Story(cases=CASES, results=results())
BAD = Story(cases=CASES, results=results(NAMES[:12]))


async def test_a_run_like_another_is_the_same(store: Store) -> None:
    found = await compared(store, GOOD, GOOD)
    assert (str(found.verdict), found.ok, found.notes) == ("same", True, ())


async def test_a_run_that_fails_more_is_worse_and_the_other_way_round_better(store: Store) -> None:
    found = await compared(store, GOOD, BAD)
    assert (str(found.verdict), found.ok) == ("worse", False)
    assert [change.case for change in found.subjects[0].comparison.regressions] == NAMES[:12]
    back = await compare_runs(found.b, found.a, ComparisonTerms())
    assert (str(back.verdict), back.ok) == ("better", True)
    assert len(back.subjects[0].comparison.improvements) == 12


async def test_a_run_that_stopped_is_not_good_enough_and_that_is_said(store: Store) -> None:
    found = await compared(store, GOOD, replace(GOOD, results=results()[:4], state=RunState.FAILED))
    assert not found.ok
    assert "B failed: it has only 4 results" in found.notes
    assert found.subjects[0].comparison.no_result == 26


SOME = CASES[:11]
OF_SOME = results()[:11]


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (Story(cases=SOME, results=OF_SOME, spec=spec(filter="s/0*")), "since A was run with another filter"),
        (Story(cases=SOME, results=OF_SOME, spec=spec(tags=["smoke"])), "since A was run with another filter"),
        (Story(cases=SOME, results=OF_SOME, spec=spec(only=NAMES[:11])), "since A was run with another filter"),
        (Story(cases=CASES, results=OF_SOME, state=RunState.INTERRUPTED), "since A was interrupted"),
    ],
)
async def test_nothing_good_is_said_of_b_when_a_left_out_cases_of_it(store: Store, before: Story, words: str) -> None:
    found = await compared(store, before, GOOD)
    assert (str(found.verdict), str(found.gate), found.ok) == ("inconclusive", "failed", False)
    assert found.why.startswith("19 cases of B have no result in A, since ")
    assert words in found.why


async def test_what_is_worse_stays_worse_when_a_left_out_cases(store: Store) -> None:
    before = Story(cases=SOME, results=OF_SOME, spec=spec(filter="s/0*"))
    assert str((await compared(store, before, BAD)).verdict) == "worse"


@pytest.mark.parametrize("more", [{}, {"filter": "s/*"}])
async def test_cases_that_are_new_in_b_do_not_count_against_it(store: Store, more: dict[str, str]) -> None:
    before = Story(cases=SOME, results=OF_SOME, spec=spec(**more))
    found = await compared(store, before, replace(GOOD, spec=spec(**more)))
    assert (str(found.verdict), found.ok) == ("same", True)


async def test_one_case_without_a_result_is_spoken_of_as_one(store: Store) -> None:
    found = await compared(store, BAD, Story(cases=CASES, results=results()[:-1]))
    assert "1 case that passed in A has no result in B" in found.why


async def test_a_run_in_which_everything_errored_is_worse(store: Store) -> None:
    broken = [a_result(name, Status.ERROR) for name in NAMES]
    assert str((await compared(store, GOOD, replace(GOOD, results=broken))).verdict) == "worse"


async def test_two_runs_of_one_subject_each_are_compared_whatever_they_are_called(store: Store) -> None:
    other = replace(BAD, results=results(NAMES[:12], "sim/other"), spec=spec("sim/other"))
    found = await compared(store, GOOD, other)
    assert [(one.before, one.after) for one in found.subjects] == [("sim/echo", "sim/other")]
    assert "sim/echo in A is compared with sim/other in B" in found.notes


async def test_each_subject_is_compared_with_the_one_of_the_same_label_and_the_worst_counts(store: Store) -> None:
    a = Story(cases=CASES, results=[*results(subject="x"), *results(subject="y")], spec=spec("x", "y"))
    b = replace(a, results=[*results(NAMES[:12], "y"), *results(subject="x")], spec=spec("y", "x", "z"))
    found = await compared(store, a, b)
    assert {one.before: str(one.comparison.verdict) for one in found.subjects} == {"x": "same", "y": "worse"}
    assert (str(found.verdict), found.why.startswith("y: ")) == ("worse", True)
    assert "z exists only in B and is not compared" in found.notes
    assert {one.comparison.alpha for one in found.subjects} == {0.025}  # shared, so that alarms do not add up


async def test_a_subject_that_is_gone_is_worse(store: Store) -> None:
    a = Story(cases=CASES, results=[*results(subject="x"), *results(subject="y")], spec=spec("x", "y"))
    b = Story(cases=CASES, results=results(subject="x"), spec=spec("x"))
    found = await compared(store, a, b)
    assert [(one.before, one.after) for one in found.subjects] == [("x", "x"), ("y", None)]
    assert not found.ok
    assert any("y is not in B" in note and "--subject" in note for note in found.notes)
    chosen = await compare_runs(replace(found.a, subject="x"), replace(found.b, subject="x"), ComparisonTerms())
    assert chosen.ok


async def test_subjects_of_one_run_are_compared_with_each_other(store: Store) -> None:
    told = Story(cases=CASES, results=[*results(subject="x"), *results(NAMES[:12], "y")], spec=spec("x", "y"))
    one = await side(store, told, "x")
    found = await compare_runs(one, replace(one, subject="y"), ComparisonTerms())
    assert (str(found.verdict), len(found.subjects)) == ("worse", 1)


async def test_a_subject_that_there_is_not_is_named_with_those_there_are(store: Store) -> None:
    with pytest.raises(NotFound, match="'nobody'") as caught:
        await compared(store, GOOD, GOOD, "nobody")
    assert "sim/echo" in caught.value.suggestions[0]


async def test_several_subjects_without_one_in_common_are_not_guessed_at(store: Store) -> None:
    a = Story(cases=CASES, results=[*results(subject="x"), *results(subject="y")], spec=spec("x", "y"))
    with pytest.raises(BadArgument, match="no subject in common"):
        await compared(store, a, GOOD)


async def test_what_changed_besides_the_answers_is_told(store: Store) -> None:
    changed = [a_case(CASES[0].id, "another question"), *CASES[2:], a_case("s/new"), a_case("s/newer")]
    before = SuiteInfo(name="s", file="s.yaml", digest="1", prompt="Be kind.", cases=30)
    a = replace(GOOD, suites=[before], prompts=[], spec=spec(threshold=0.7))
    b = replace(
        GOOD,
        cases=changed,
        suites=[replace(before, digest="2", prompt="Be rough.", file="moved.yaml")],
        spec=spec(judge="sim/judge", judge_samples=3, threshold=0.5, tags=["x"], epochs=2),
        environment={"packages": {"muster-ai": "9.9"}},
    )
    assert set((await compared(store, a, b)).notes) == {
        "the suite changed: 2 cases new, 1 case gone, 1 case changed",
        "the prompt beside s changed",
        "the judge: none in A, sim/judge in B",
        "the judge samples: 1 in A, 3 in B",
        "the threshold: 0.7 in A, 0.5 in B",
        "the number of epochs: 1 in A, 2 in B",
        "the tags: none in A, x in B",
        "run by Muster 0.1.0 in A, 9.9 in B",
    }


async def test_a_prompt_under_test_that_changed_is_told_by_name(store: Store) -> None:
    a = replace(GOOD, prompts=[Prompt(name="p", text="one")], results=results(subject="sim/echo+p"))
    found = await compared(store, a, replace(a, prompts=[Prompt(name="p", text="two")]))
    assert found.notes == ("the prompt p changed",)


@pytest.mark.parametrize(
    ("threshold", "alpha"), [(-0.1, 0.05), (1.0, 0.05), (0.05, 0.0), (0.05, 1.0), (float("nan"), 0.05)]
)
def test_terms_that_are_no_shares_are_refused(threshold: float, alpha: float) -> None:
    with pytest.raises(BadArgument):
        ComparisonTerms(threshold=threshold, alpha=alpha)


async def test_the_comparison_as_data_is_json_and_whole(store: Store) -> None:
    found = await compared(store, GOOD, BAD)
    data = plain(comparison_view(found))
    assert (data["verdict"], data["ok"], data["a"]["run"], data["b"]["run"]) == ("worse", False, "a", "b")
    (one,) = data["subjects"]
    assert (one["subject_a"], one["subject_b"], one["cases_worse"], one["cases_better"]) == (
        "sim/echo",
        "sim/echo",
        12,
        0,
    )
    assert one["regressions"][0].items() >= {"case": "s/00", "before": "passed", "after": "failed"}.items()


async def test_markdown_says_the_verdict_first_and_cannot_be_broken_by_names(store: Store) -> None:
    evil = "s/|<b>[x](http://e) `@you`\n# big"
    cases = [*CASES, a_case(evil)]
    a = replace(GOOD, cases=cases, results=[*results(), a_result(evil)])
    b = replace(BAD, cases=cases, results=[*results(NAMES[:12]), a_result(evil, Status.FAILED)])
    text = comparison_markdown(await compared(store, a, b))
    assert text.startswith("### 🔴 Worse\n")
    assert "Regressed: 13" in text
    for danger in ("<b>", "](http", "@you", "\n# big"):
        assert danger not in text
    rows = [line for line in text.splitlines() if "passed | failed" in line]
    assert len(rows) == 13
    assert all(row.count("|") == 6 for row in rows)

"""Judges in a suite run: asked once for each epoch and sample; whatever they cannot say is no success."""

from pathlib import Path

import pytest

from muster.domain.case import Status
from muster.domain.run import RunState
from muster.suites.reports.summary import summarize
from tests.suites.stage import (
    JUDGE,
    KIND_JUDGE,
    NOWHERE,
    a_case,
    a_judged_case,
    a_suite,
    a_verdict,
    playing,
    program,
    stage,
    statuses,
    troubled,
)

# Answers well to one seed and badly to the next.
MOODY = """
import json, sys
print(json.dumps({"text": "hello" if json.load(sys.stdin)["seed"] % 2 else "go away"}))
"""


async def test_the_judge_is_asked_once_for_each_epoch_and_sample(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_judged_case("one"), a_judged_case("two", "hello you"), a_case("ruled"))
        run = await s.run(judge=JUDGE, epochs=3, judge_samples=2)
        found = await s.results(run)
        assert (s.agent.audit.calls, s.judge.audit.calls) == (3 * 3, 2 * 3 * 2)
        assert {result.status for result in found} == {Status.PASSED}
        assert [len(result.judgements) for result in found] == [1, 1, 1, 1, 1, 1, 0, 0, 0]
        assert found[0].judgements[0].samples == 2
        assert sum(result.cost + result.judge_cost for result in found) == run.spent.billed


async def test_some_epochs_good_and_some_bad_is_flaky_and_not_ok(tmp_path: Path) -> None:
    async with stage(tmp_path, toml=program(tmp_path, "moody", MOODY)) as s:
        a_suite(tmp_path, a_case("shaky"), a_case("firm", expected={"output": [{"kind": "regex", "value": "o"}]}))
        run = await s.run(agents=["moody"], epochs=3, seed=1)
        shaky = [result.status for result in await s.results(run) if result.case == "s/shaky"]
        assert shaky == [Status.PASSED, Status.FAILED, Status.PASSED]
        assert run.result == {"ok": False, "units": 6, "cases": 2, "counts": {"passed": 1, "flaky": 1}}


async def test_a_score_below_the_threshold_fails_and_a_case_may_have_a_threshold_of_its_own(tmp_path: Path) -> None:
    async with stage(tmp_path, judge=playing({"answer": a_verdict(0.6)})) as s:
        a_suite(tmp_path, a_judged_case("usual"), a_judged_case("mild", threshold=0.5))
        run = await s.run(judge=JUDGE)
        assert statuses(await s.results(run)) == {"usual": Status.FAILED, "mild": Status.PASSED}


@pytest.mark.parametrize("trouble", ["nobody there", "always 500", "nonsense"])
async def test_a_judge_that_gives_nothing_leaves_the_case_unjudged_and_the_run_complete(
    tmp_path: Path, trouble: str
) -> None:
    judge = playing({"answer": "I like it."}) if trouble == "nonsense" else KIND_JUDGE
    nobody = {"OPENAI_BASE_URL": NOWHERE} if trouble == "nobody there" else {}
    async with stage(tmp_path, judge=judge, variables=nobody) as s:
        if trouble == "always 500":
            s.judge.play(troubled({"fault": "500", "times": "always"}))
        a_suite(tmp_path, a_judged_case("judged"), a_case("ruled"))
        run = await s.run(judge=JUDGE)
        first, second = await s.results(run)
        assert run.state is RunState.COMPLETED
        assert (run.result["ok"], run.result["counts"]) == (False, {"passed": 1, "unjudged": 1})
        assert (first.status, first.score, second.status) == (Status.UNJUDGED, None, Status.PASSED)
        assert first.judgements[0].failures
        assert JUDGE in first.why or "judge" in first.why


async def test_a_case_that_wants_a_judge_when_none_is_named_is_unjudged_and_never_passed(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_judged_case("judged"))
        run = await s.run()
        result = await s.result(run)
        assert (result.status, run.result["ok"], s.judge.audit.requests) == (Status.UNJUDGED, False, 0)
        assert "none was named" in result.why


async def test_a_failed_check_fails_the_case_whatever_the_judge_says(tmp_path: Path) -> None:
    expected = {
        "output": [{"kind": "contains", "value": "never said"}],
        "rubric": [{"id": "kind", "description": "Is kind"}],
    }
    async with stage(tmp_path) as s:
        result = await s.one(a_case("both", expected=expected), judge=JUDGE, evaluator="judge")
        assert (result.status, result.score) == (Status.FAILED, 0.0)


async def test_an_agent_that_fails_is_not_judged(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        s.agent.play(troubled({"fault": "400", "times": "always"}))
        result = await s.one(a_judged_case("judged"), judge=JUDGE)
        assert (result.status, s.judge.audit.requests) == (Status.ERROR, 0)


async def test_a_budget_that_runs_out_fails_the_run_and_what_was_found_out_is_there(tmp_path: Path) -> None:
    """Each call reserves a little more than it costs; the budget holds three of ten, and never a fourth."""
    cases = [a_case(f"{number}", max_tokens=10) for number in range(10)]
    async with stage(tmp_path) as s:
        a_suite(tmp_path, *cases)
        one = await s.drive({"only": ["s/0"]}, concurrency=1)
        [attempt] = await s.muster._backend.store.archive.attempts(one.id)
        most = attempt.reserved
        budget = f"{(2 * one.spent.billed + most) / 1e6:.6f}"
        run = await s.drive({}, budget_usd=budget, concurrency=1)
        assert (run.state, run.ended_reason, run.result) == (RunState.FAILED, "budget", None)
        found = await s.results(run)
        # The fourth is refused as soon as the third is settled, and may be so before that one is scored.
        assert [result.status for result in found] in ([Status.PASSED] * 2, [Status.PASSED] * 3)
        assert (await summarize(await s.opened(run))).counts == {Status.PASSED: 3, Status.SKIPPED: 7}
        assert s.agent.audit.calls == 1 + 3
        again = await s.go_on(run, budget_usd="1")
        assert (again.result["counts"], s.agent.audit.calls) == ({"passed": 10}, 1 + 10)
        assert [case.id async for case in (await s.opened(again)).cases()] == [case["id"] for case in cases]
        taken_over = await s.results(again)
        assert (len(taken_over), taken_over[: len(found)]) == (10, found)
        assert await s.requests(again, found[0].keys) == await s.requests(run, found[0].keys) != []

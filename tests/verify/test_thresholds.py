"""What must hold: of each agent, over all of them, and who is asked at all."""

from pathlib import Path
from typing import Any

import pytest

from muster.domain.dispatch import LIVE, Dispatch, Mode
from muster.verify.declaration.verification import Limits, Shape
from muster.verify.findings.journal import Ending
from tests.suites.stage import playing
from tests.verify.stage import (
    CLEAN,
    CODE,
    GOOD_REVIEW,
    OPENAI,
    a_checker,
    a_model,
    a_report,
    a_reviewer,
    replying,
    said,
    stage,
)

LOW = a_report(said(line=1, severity="low"))


def a_tester(**more: Any) -> Any:
    return a_model("tester", 2, shape=Shape.TESTS, **{"thresholds": ("coverage >= 80",), **more})


@pytest.mark.parametrize(
    ("answer", "thresholds", "ending"),
    [
        (LOW, ("total == 0",), Ending.FAILED),
        (LOW, ("critical + high == 0", "total <= 1"), Ending.PASSED),
        (LOW, (), Ending.PASSED),
        (a_report(said(line=9)), ("rejected == 0",), Ending.FAILED),
        (a_report(said(line=9)), ("total == 0",), Ending.PASSED),
        (CLEAN, ("score >= 1",), Ending.FAILED),  # nobody asked it for a score
    ],
)
async def test_an_agent_passes_when_all_its_thresholds_hold(
    tmp_path: Path, answer: str, thresholds: tuple[str, ...], ending: Ending
) -> None:
    async with stage(tmp_path, playing({"answer": answer})) as s:
        run = await s.verify(a_model("auditor", thresholds=thresholds))
        auditor = (await s.agents(run))["auditor"]
        assert (auditor.ending, run.result["passed"]) == (ending, ending is Ending.PASSED)
        assert [held.expression for held in auditor.thresholds] == list(thresholds)


async def test_the_lowest_score_and_the_mean_coverage_of_all_chunks_count(tmp_path: Path) -> None:
    """The first file is three times as long as the second one."""
    script = playing(
        {"text": "(?s)a[.]py lines.*I am reviewer", "answer": GOOD_REVIEW},
        {"text": "(?s)b[.]py lines.*I am reviewer", "answer": a_report(score=7, parts={"security": 9.5})},
        {"text": "(?s)a[.]py lines.*I am tester", "answer": a_report(coverage=100)},
        {"text": "(?s)b[.]py lines.*I am tester", "answer": a_report(coverage=40)},
    )
    async with stage(tmp_path, script, files={"a.py": CODE * 60, "b.py": CODE * 20}) as s:
        reviewer = a_reviewer(thresholds=("score >= 7", "parts.security >= 9"))
        run = await s.verify(reviewer, a_tester(), limits=Limits(chunk_bytes=4_000))
        agents = await s.agents(run)
        assert (agents["reviewer"].score, agents["reviewer"].parts) == (7.0, {"security": 9.0})
        assert agents["tester"].coverage == 85.0
        assert run.result["passed"]


async def test_thresholds_over_everybody_count_over_two_waves(tmp_path: Path) -> None:
    """Each wave has one low finding of its own: the sum is known at the end, and too high."""
    review = a_report(said(line=2, severity="low"), score=9.5)
    async with stage(tmp_path, replying(auditor=LOW, reviewer=review)) as s:
        run = await s.verify(a_model("auditor"), a_reviewer(), thresholds=("low <= 1", "score >= 9"))
        first, second = await s.waves(run)
        assert (first.passed, [held.expression for held in first.thresholds]) == (True, ["low <= 1"])
        assert (second.passed, [held.holds for held in second.thresholds]) == (False, [False, True])
        assert {agent.ending for wave in (first, second) for agent in wave.agents} == {Ending.PASSED}
        assert (run.result["passed"], (await s.report(run)).ok) == (False, False)


async def test_a_threshold_that_can_never_be_known_does_not_hold_at_the_end(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        run = await s.verify(a_model("auditor"), thresholds=("coverage >= 80",))
        (wave,) = await s.waves(run)
        assert (run.result["passed"], wave.thresholds[0].holds) == (False, False)


async def test_who_keeps_going_runs_the_next_wave_and_does_not_pass(tmp_path: Path) -> None:
    async with stage(tmp_path, replying(auditor=a_report(said()), reviewer=GOOD_REVIEW)) as s:
        s.mark("one", "a.py")
        run = await s.verify(a_model("auditor"), a_reviewer(), keep_going=True)
        assert run.result["waves"] == {"1": False, "2": True}
        assert (run.result["passed"], run.result["not_started"], run.result["cleared"]) == (False, [], [])
        assert (await s.report(run)).ok is False
        assert len(s.markers) == 1


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        ({"waves": (2,)}, ["reviewer"]),
        ({"waves": (1,)}, ["auditor", "other"]),
        ({"agents": ("other", "reviewer")}, ["other", "reviewer"]),
        ({"agents": ("other",), "waves": (1,)}, ["other"]),
    ],
)
async def test_only_who_is_named_is_asked(tmp_path: Path, part: dict[str, Any], asked: list[str]) -> None:
    async with stage(tmp_path) as s:
        run = await s.verify(a_model("auditor"), a_model("other"), a_reviewer(), **part)
        assert (run.result["passed"], list(await s.agents(run))) == (True, asked)
        assert s.anthropic.audit.calls == len(asked)


async def test_a_part_in_which_nobody_is_left_is_no_success(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        run = await s.verify(a_model("auditor"), a_reviewer(), waves=(2,), agents=("auditor",))
        report = await s.report(run)
        assert (run.result["passed"], report.ok, s.anthropic.audit.requests) == (False, False, 0)


async def test_tools_and_models_of_both_providers_make_one_wave(tmp_path: Path) -> None:
    checker = a_checker("lint", "print('a.py:2: no type'); raise SystemExit(1)", thresholds=("total <= 1",))
    async with stage(tmp_path, openai=playing({"answer": a_report(said(line=2, severity="medium"))})) as s:
        run = await s.verify(a_model("auditor"), checker, a_model("other", model=OPENAI), a_reviewer())
        first, _ = await s.waves(run)
        assert [(one.agent, one.kind, one.ending) for one in first.agents] == [
            ("auditor", "model", Ending.PASSED),
            ("lint", "command", Ending.PASSED),
            ("other", "model", Ending.PASSED),
        ]
        assert run.result["passed"]
        assert sorted((one.finding.line, one.by) for one in first.merged) == [(2, ("lint",)), (2, ("other",))]


BATCH = Dispatch(mode=Mode.BATCH)


@pytest.mark.parametrize(
    ("how", "live", "dispatch", "batches"),
    [
        (LIVE, False, {"two": "batch"}, [1]),
        (BATCH, False, {"two": "live"}, [2]),
        (BATCH, False, {}, [3]),
        (BATCH, True, {"two": "batch"}, []),
        (LIVE, True, {"two": "batch"}, []),
    ],
)
async def test_an_agent_is_sent_as_itself_says_unless_everything_is_live(
    tmp_path: Path, how: Dispatch, live: bool, dispatch: dict[str, str], batches: list[int]
) -> None:
    async with stage(tmp_path) as s:
        agents = [a_model(name, dispatch=dispatch.get(name)) for name in ("one", "two", "three")]
        run = await s.verify(*agents, how=how, live=live)
        assert run.result["passed"]
        audit = s.anthropic.audit
        assert ([batch["requests"] for batch in audit.batches], audit.calls) == (batches, 3)


async def test_agents_that_go_into_a_batch_from_a_live_run_share_one(tmp_path: Path) -> None:
    """They look at enough to share a cache: still nobody waits for the batch of another."""
    async with stage(tmp_path, files={"a.py": CODE * 200}) as s:
        agents = [a_model(name, dispatch="batch") for name in ("one", "two", "three")]
        run = await s.verify(*agents, a_model("four"))
        assert run.result["passed"]
        assert [batch["requests"] for batch in s.anthropic.audit.batches] == [3]

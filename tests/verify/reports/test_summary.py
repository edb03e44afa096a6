"""The summary: a success only when everything that was to be checked was checked, and passed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.domain.errors import state_verb
from muster.domain.run import RunState
from muster.text.thresholds import ThresholdResult
from muster.verify.findings.finding import Severity
from muster.verify.findings.journal import Ending
from tests.verify.reports.house import (
    HOSTILE,
    Story,
    agent,
    bad,
    checker,
    finding,
    good,
    hostile,
    model,
    summary,
    wave,
)

TWO = {"src/a.py": "x = 1\n", "docs/b.md": "words\n"}


async def test_everybody_content_with_every_file_is_a_success(tmp_path: Path) -> None:
    report = await summary(tmp_path, good())
    assert (report.ok, list(report.flaws()), report.partial) == (True, [], False)
    assert report.verdict == "All 3 agents in 2 waves over 1 file passed."
    assert (report.run.id, report.run.title, report.run.seconds) == ("0123456789abcdef", "nightly", 14.25)


async def test_findings_within_the_thresholds_are_told_with_the_success(tmp_path: Path) -> None:
    found = [finding(severity=Severity.LOW)]
    story = Story(verifiers=[model("a")], waves=[wave(1, agent("a", 1, Ending.PASSED, found))], name=None)
    report = await summary(tmp_path, story)
    assert report.verdict == "The only agent in 1 wave over 1 file passed with 1 finding."
    assert report.run.title == "verification of repo"


async def test_a_wave_that_did_not_pass_and_one_that_was_not_started_are_told(tmp_path: Path) -> None:
    report = await summary(tmp_path, bad())
    assert not report.ok
    assert report.verdict == "Agent auditor failed: auditor is failed; wave 2 was not started."
    assert report.not_started == (2,)
    assert [(one.agent, one.wave) for one in report.absent] == [("reviewer", 2)]
    assert [one.path for one in report.left_out] == ["logo.png"]


async def test_the_same_finding_of_two_agents_is_one_with_both_names(tmp_path: Path) -> None:
    report = await summary(tmp_path, bad())
    first, second = report.merged
    assert (first.finding.severity, first.finding.line, first.by) == (Severity.CRITICAL, 5, ("auditor", "enforcer"))
    assert (second.finding.severity, second.by) == (Severity.LOW, ("enforcer",))
    assert (report.counts.critical, report.counts.medium, report.counts.low, report.counts.rejected) == (1, 0, 1, 1)
    assert [(one.agent, one.wave, one.rejected.finding.line) for one in report.rejected] == [("auditor", 1, 99)]


async def test_the_same_finding_in_two_waves_is_one(tmp_path: Path) -> None:
    waves = [wave(n, agent(name, n, Ending.PASSED, [finding(cwe="CWE-78")])) for n, name in ((1, "a"), (2, "b"))]
    report = await summary(tmp_path, Story(verifiers=[model("a"), model("b", 2)], waves=waves))
    assert [one.by for one in report.merged] == [("a", "b")]


STATES = [state for state in RunState if state not in (RunState.COMPLETED, RunState.QUEUED, RunState.WAITING)]


@pytest.mark.parametrize("state", STATES)
async def test_a_run_that_did_not_come_to_its_end_is_never_a_success(tmp_path: Path, state: RunState) -> None:
    report = await summary(tmp_path, good(state=state, error={"code": "x", "message": "the budget is used up"}))
    assert not report.ok
    word = state_verb(state)
    assert report.verdict.startswith(f"The run {word}")


def one(**rest: Any) -> Story:
    given: dict[str, Any] = {"verifiers": [model("a")], "waves": [wave(1, agent("a"))]} | rest
    return Story(**given)


LIES = "Agent a is reported as passed, but its numbers do not agree"
LIE = (ThresholdResult(expression="high == 0", holds=False, why="high is 3"),)


@pytest.mark.parametrize(
    ("story", "why"),
    [
        (one(waves=[wave(1, agent("a", 1, Ending.BROKEN))]), "Agent a gave no valid report: a is broken"),
        (one(waves=[wave(1, agent("a", 1, Ending.BROKEN), passed=True)]), "Agent a gave no valid report"),
        (one(waves=[wave(1, agent("a"), passed=False, why="total == 0")]), "Wave 1 did not pass: total == 0."),
        (one(waves=[wave(1)]), "No report of a"),
        (one(waves=[]), "Wave 1 was not started."),
        (one(waves=[wave(1, agent("a", 1, Ending.IDLE))]), "No file was verified."),
        (one(files=TWO, verifiers=[model("a", include=("*.py",))]), "1 of 2 files not verified."),
        (one(files={}), "There was no file to verify."),
        (one(waves=[wave(1, agent("a", chunks=0, answered=0))]), LIES),
        (one(waves=[wave(1, agent("a", chunks=3, answered=2))]), LIES),
        (one(waves=[wave(1, agent("a", thresholds=LIE))]), LIES),
        (one(waves=[wave(1, agent("a", 1, Ending.IDLE, chunks=2))]), "Agent a is reported as idle"),
    ],
)
async def test_whatever_was_not_checked_is_no_success(tmp_path: Path, story: Story, why: str) -> None:
    report = await summary(tmp_path, story)
    assert not report.ok
    assert report.verdict.startswith(why)


async def test_a_file_that_is_for_a_checker_only_was_looked_at(tmp_path: Path) -> None:
    story = one(
        files=TWO,
        verifiers=[model("a", include=("*.py",)), checker("b", include=("docs/*",))],
        waves=[wave(1, agent("a"), agent("b"))],
    )
    report = await summary(tmp_path, story)
    assert (report.ok, report.unseen) == (True, ())


async def test_an_agent_without_a_file_of_its_own_is_in_nobodys_way(tmp_path: Path) -> None:
    story = one(
        verifiers=[model("a"), model("b", include=("*.go",))],
        waves=[wave(1, agent("a"), agent("b", 1, Ending.IDLE))],
    )
    report = await summary(tmp_path, story)
    assert report.verdict == "The only agent in 1 wave over 1 file passed, 1 had no file to verify."


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"waves": (1,)}, "wave 1"),
        ({"agents": ("auditor", "enforcer")}, "agents auditor, enforcer"),
        ({"waves": (1, 2), "agents": ("auditor",)}, "waves 1, 2 and agent auditor"),
    ],
)
async def test_a_part_of_a_verification_says_so(tmp_path: Path, part: dict[str, Any], words: str) -> None:
    names = part.get("agents", ("auditor", "enforcer"))
    report = await summary(tmp_path, replace(good(spec=part), waves=[wave(1, *(agent(name) for name in names))]))
    assert (report.ok, report.partial, report.not_started) == (True, True, ())
    assert report.verdict.endswith(f"passed; this is only a part of the verification: {words}.")


async def test_many_agents_that_failed_are_counted_after_the_first_few(tmp_path: Path) -> None:
    names = [f"a{number}" for number in range(9)]
    failed = [agent(name, 1, Ending.FAILED, why="no") for name in names]
    report = await summary(tmp_path, one(verifiers=[model(name) for name in names], waves=[wave(1, *failed)]))
    assert report.verdict.endswith("agent a4 failed: no; 4 more agents did not pass.")


async def test_money_is_told_with_what_it_would_have_cost_live(tmp_path: Path) -> None:
    report = await summary(tmp_path, good(paid=[700, 300], batch=[(500, 1_000), (250, 500), None]))
    cost = report.run.cost
    assert (cost.billed, cost.known, cost.batches, cost.batch, cost.batch_live) == (1_750, 1_750, 1, 750, 1_500)
    assert cost.live == 2_500


async def test_what_a_reader_must_know_is_noted(tmp_path: Path) -> None:
    cut = agent("a", counts=replace(agent("a").counts, low=7_000))
    infos = {"src/a.py": {"redacted": 2, "note": "its lines end in two ways"}}
    report = await summary(tmp_path, one(waves=[wave(1, cut)], infos=infos))
    assert list(report.notes()) == [
        "Secrets removed before anything was sent: 2 in 1 file.",
        "src/a.py: its lines end in two ways.",
        "Only 0 of 7,000 findings are kept; all of them are counted.",
    ]
    assert report.redactions == 2


async def test_texts_are_without_secrets_and_halves_of_characters(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    leak = [finding(f"the token {secret} is in the code", fix=secret)]
    report = await summary(tmp_path, one(waves=[wave(1, agent("a", 1, Ending.FAILED, leak, why=secret))]))
    assert secret not in str(report)
    assert "[redacted:github_token:1]" in report.verdict
    (tmp_path / "other").mkdir()
    assert "\ud800" in HOSTILE[3]
    assert "\ud800" not in str((await summary(tmp_path / "other", hostile())).merged)

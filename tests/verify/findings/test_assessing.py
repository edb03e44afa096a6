"""What agents and waves come to: nobody passes without a report of everything, and no threshold holds by silence."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.verify.declaration.verification import Kind, Verifier
from muster.verify.findings.assessment import assess, conclude
from muster.verify.findings.finding import Counts, Examined, Finding, Severity
from muster.verify.findings.journal import MAX_FINDINGS, AgentReport, Ending, WaveReport
from tests.verify.findings.values import examined, finding, rejected

STRICT = Verifier(name="ann", thresholds=("critical == 0", "high == 0"))
LAX = Verifier(name="bob")
REVIEW = Verifier(name="cyd", wave=2, thresholds=("score >= 9", "parts.security >= 8"))


def wave(*reports: AgentReport, number: int = 1, **changes: Any) -> WaveReport:
    usual: dict[str, Any] = {"thresholds": (), "earlier": (), "last": False, "started_at": 1.0, "ended_at": 2.0}
    given_ = usual | changes
    return conclude(number, reports, given_.pop("thresholds"), given_.pop("earlier"), **given_)


def passed(name: str = "bob", *findings: Finding, **changes: Any) -> AgentReport:
    return assess(replace(LAX, name=name), [examined(*findings, **changes)], chunks=1)


def test_an_agent_with_every_report_and_every_threshold_has_passed() -> None:
    low = finding(severity=Severity.LOW)
    report = assess(STRICT, [examined(low, seconds=2.0), examined(low, seconds=3.0, repaired=True)], chunks=2)
    assert (report.ending, report.why, report.counts) == (Ending.PASSED, "", Counts(low=1))
    assert [held.holds for held in report.thresholds] == [True, True]
    assert (report.chunks, report.answered, report.repaired, report.seconds, report.cost) == (2, 2, 1, 3.0, 10)
    assert (report.model, report.keys, report.codes, report.failures) == ("m-1", ("k", "k"), {}, ())


def test_an_agent_whose_threshold_does_not_hold_has_failed_and_says_why() -> None:
    report = assess(STRICT, [examined(finding())], chunks=1)
    assert report.ending is Ending.FAILED
    assert report.why == "high is 1, required is high == 0"
    assert [held.holds for held in report.thresholds] == [True, False]


@pytest.mark.parametrize(
    ("reports", "chunks", "why"),
    [
        ([], 1, "no report: no answer"),
        ([examined()], 2, "no report for 1 of 2 chunks: no answer"),
        ([examined(), Examined(failure="expired", code="expired")], 2, "no report for 1 of 2 chunks: expired"),
        (
            [Examined(failure="a"), Examined(failure="b")],
            3,
            "no report for 3 of 3 chunks: a (and 2 other reasons)",
        ),
        ([examined(), examined()], 1, "there are 2 reports instead of 1"),
        ([examined()], 0, "there are 1 reports instead of 0"),
    ],
)
@pytest.mark.parametrize("verifier", [STRICT, LAX])
def test_an_agent_without_a_report_of_everything_is_broken(
    verifier: Verifier, reports: list[Examined], chunks: int, why: str
) -> None:
    report = assess(verifier, reports, chunks=chunks)
    assert (report.ending, report.why) == (Ending.BROKEN, why)
    assert not any(held.holds for held in report.thresholds)
    assert len(report.thresholds) == len(verifier.thresholds)
    assert not wave(report).passed


def test_what_failed_is_counted_by_its_code_and_said_once() -> None:
    expired = Examined(failure="expired", code="expired")
    report = assess(STRICT, [expired, expired, Examined(failure="x"), examined(finding())], chunks=6)
    assert report.codes == {"expired": 2, "failed": 1, "missing": 2}
    assert report.failures == ("expired", "x", "no answer")
    assert (report.answered, report.counts.high) == (1, 1)


def test_an_agent_without_a_file_is_idle_and_a_wave_of_idlers_stands_in_nobodys_way() -> None:
    idle = assess(STRICT, [], chunks=0)
    assert (idle.ending, idle.thresholds) == (Ending.IDLE, ())
    assert wave(idle, passed()).passed
    assert wave(idle).passed


def test_the_score_and_its_parts_are_the_lowest_and_coverage_is_weighed() -> None:
    many = [
        examined(score=9.5, parts={"security": 9.0, "style": 3.0}, coverage=100.0, lines=30),
        examined(score=9.0, parts={"security": 8.0}, coverage=60.0, lines=10),
    ]
    report = assess(REVIEW, many, chunks=2)
    assert (report.score, dict(report.parts), report.coverage) == (9.0, {"security": 8.0}, 90.0)
    assert report.ending is Ending.PASSED
    empty = [replace(one, lines=0) for one in many]
    assert assess(REVIEW, empty, chunks=2).coverage == 80.0


def test_a_measure_that_one_chunk_lacks_is_not_known() -> None:
    report = assess(REVIEW, [examined(score=10.0, parts={"security": 9.0}, coverage=90.0), examined()], chunks=2)
    assert (report.score, report.parts, report.coverage, report.ending) == (None, {}, None, Ending.FAILED)
    assert "score is unknown" in report.why
    broken = assess(REVIEW, [examined(score=10.0), Examined(failure="x")], chunks=2)
    assert (broken.score, broken.coverage) == (None, None)


def test_rejected_findings_are_counted_and_can_gate() -> None:
    gated = replace(LAX, thresholds=("rejected == 0", "files <= 1"))
    report = assess(gated, [examined(finding(), finding(9, file="b.py"), rejected=(rejected(), rejected()))], chunks=1)
    assert (report.counts.rejected, len(report.rejected), report.counts.total) == (2, 2, 2)
    assert "required is rejected == 0" in report.why
    assert "files is 2" in report.why


def test_a_checker_is_counted_by_what_it_reports_wherever_it_is() -> None:
    checker = Verifier(name="tool", kind=Kind.COMMAND, thresholds=("high <= 1",))
    report = assess(checker, [examined(finding(), rejected=(rejected(), rejected()))], chunks=1)
    assert (report.counts, report.ending) == (Counts(high=3, rejected=2), Ending.FAILED)


def test_the_same_words_about_lines_that_two_calls_were_shown_count_once() -> None:
    twice = finding(3, finding="It is wrong")
    report = assess(LAX, [examined(twice, twice, finding(4)), examined(twice, finding(5))], chunks=2)
    assert [one.line for one in report.findings] == [3, 3, 4, 5]


def test_a_worse_word_of_somebody_else_hides_no_severity_from_thresholds() -> None:
    worse = passed("ann", finding(severity=Severity.CRITICAL))
    found = wave(worse, passed("bob", finding()), thresholds=("high == 0", "total <= 1"), last=True)
    assert [one.holds for one in found.thresholds] == [False, True]
    assert found.counts == Counts(critical=1)


def test_all_findings_are_counted_though_not_all_are_kept() -> None:
    crowd = [finding(line, severity=Severity.LOW, rule=f"r{line}") for line in range(1, MAX_FINDINGS + 8)]
    report = assess(LAX, [examined(*crowd, finding(1, finding="Bad"))], chunks=1)
    assert (len(report.findings), report.counts.total) == (MAX_FINDINGS, MAX_FINDINGS + 8)
    assert report.findings[0].severity is Severity.HIGH
    total = wave(report, passed("ann"), thresholds=("total < 5001",))
    assert total.counts == report.counts
    assert not total.passed


def test_a_wave_merges_what_its_agents_found() -> None:
    one, other = assess(LAX, [examined(finding())], chunks=1), assess(STRICT, [examined(finding())], chunks=1)
    found = wave(one, other)
    assert [merged.by for merged in found.merged] == [("ann", "bob")]
    assert (found.counts, found.passed, found.started_at, found.ended_at) == (Counts(high=1), False, 1.0, 2.0)
    assert found.why == "ann: high is 1, required is high == 0"
    assert (found.wave, found.agents) == (1, (one, other))


def test_thresholds_over_everybody_see_earlier_waves_too() -> None:
    first = wave(assess(LAX, [examined(finding())], chunks=1), thresholds=("total <= 1", "score >= 9"))
    assert [held.expression for held in first.thresholds] == ["total <= 1"]
    assert first.passed
    second = wave(
        passed("cyd", finding(7, rule="E1"), score=9.5),
        passed("dan", score=8.0, coverage=70.0, parts={"style": 4.0}),
        number=2,
        earlier=[first],
        thresholds=("total <= 1", "score >= 9", "coverage >= 80", "parts.style >= 5"),
    )
    assert [held.holds for held in second.thresholds] == [False, False, False, False]
    assert second.counts.total == 1
    assert second.why.startswith("over all agents, total is 2, required is total <= 1; score is 8, required is")


def test_what_is_unknown_at_the_last_wave_does_not_hold() -> None:
    early, late = wave(passed(), thresholds=("score >= 9",)), wave(passed(), thresholds=("score >= 9",), last=True)
    assert (early.passed, early.thresholds) == (True, ())
    assert not late.passed
    assert "score is unknown" in late.why


def test_many_reasons_are_not_all_told() -> None:
    reports = [assess(replace(LAX, name=f"a{n}"), [], chunks=1) for n in range(9)]
    assert wave(*reports).why.endswith("and 6 more")


OUTCOMES = st.sampled_from(["good", "bad", "failed", "missing"])


@given(st.lists(st.lists(OUTCOMES, max_size=4), max_size=4))
def test_a_wave_passes_only_when_everything_that_is_for_somebody_was_really_checked(agents: list[list[str]]) -> None:
    said = {"good": examined(), "bad": examined(finding()), "failed": Examined(failure="x", code="timed_out")}
    reports = [
        assess(replace(STRICT, name=f"a{n}"), [said[one] for one in chunks if one in said], chunks=len(chunks))
        for n, chunks in enumerate(agents)
    ]
    everything = [one for chunks in agents for one in chunks]
    assert wave(*reports).passed == (set(everything) <= {"good"})

"""The report as JSON: one object; its cases are written one by one, each on a line of its own.

schema, ok, verdict     what this is, whether the run is a success, and why or why not in words
run, environment        facts of the run, and the versions it was made with
counts, cases_total, results_expected, results_missing, answers_not_judged, conversations_not_finished     how many
                        ended how, what has no result, and how much of that is answered, or in part, if any
warnings, subjects      what makes figures less sure; the figures of each subject, the best first
cases                   one for each case and subject, with `epochs`, each with checks, items, judgements and the answer

Names stay as long as the schema keeps its number; new ones may come.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TextIO

from muster.domain.batch import Saving
from muster.domain.call import Quality
from muster.domain.canonical import Json
from muster.domain.case import Status
from muster.domain.money import Microdollars, to_usd
from muster.domain.run import RunState
from muster.statistics.repeats import VarianceComponents
from muster.suites.reports.facts import RunFacts
from muster.suites.reports.rows import CaseRow, CaseRows
from muster.suites.reports.run import Spoken, SuiteRun
from muster.suites.reports.summary import CaseLine, SubjectLine, SuiteReport
from muster.suites.statistics import Interval, Latency
from muster.suites.values.case import Evaluator
from muster.suites.values.verdict import (
    CaseResult,
    CheckResult,
    ItemScore,
    Judgement,
    MemberVerdict,
)
from muster.text.views import UNSET, UnsetType, View, asdict
from muster.text.words import moment

SCHEMA = "muster.suite-report/1"
MAX_LINES = 100  # cases that did not pass are named in the summary


class BatchSavingView(View):
    """What batches saved."""

    count: int
    saved_usd: float


class FlexSavingView(View):
    """What the tier flex saved."""

    calls: int
    saved_usd: float


class SuiteFactsView(View):
    """The facts of a suite run."""

    id: str
    name: str | None
    state: RunState
    ended_reason: str | None
    error: str | None
    started_at: str | None
    ended_at: str | None
    seconds: float | None
    budget_usd: float | None
    spent_usd: float
    imputed_usd: float
    uncertain_usd: float
    dispatch: str
    batches: BatchSavingView | None
    suites: Sequence[str]
    judge: str | None
    epochs: int
    muster_version: str | None
    flex: FlexSavingView | UnsetType = UNSET


class RepeatsView(View):
    """How likely one of k epochs passes, and all of them."""

    k: int
    pass_at_k: float | None
    pass_hat_k: float | None


class SuiteSubjectView(View, kw_only=True):
    """The figures of one subject."""

    subject: str
    model: str | None
    rank: int | None
    told_apart: bool | None
    cases_run: int
    counts: Mapping[Status, int]
    pass_rate: float | None
    pass_interval: Sequence[float] | None
    mean_score: float | None
    score_interval: Sequence[float] | None
    repeats: Sequence[RepeatsView]
    variance: VarianceComponents
    seconds: Latency | None
    cost_usd: float
    judge_cost_usd: float
    cost_per_case_usd: float | None
    input_tokens: int
    output_tokens: int
    thinking_tokens: int | UnsetType = UNSET  # of these, where any are
    judge_agreement: float | None
    judge_spread: float | UnsetType = UNSET
    unjudged_items: int


class CaseLineView(View):
    """A case that did not pass."""

    status: Status
    case: str
    subject: str
    why: str
    score: float | None
    threshold: float | None
    file: str
    line: int


class SuiteReportView(View, kw_only=True):
    """What a suite run came to, without its cases."""

    schema: str
    ok: bool
    verdict: str
    run: SuiteFactsView
    counts: Mapping[Status, int]
    cases_total: int
    results_expected: int
    results_missing: int
    answers_not_judged: int | UnsetType = UNSET
    conversations_not_finished: int | UnsetType = UNSET
    warnings: Sequence[str]
    subjects: Sequence[SuiteSubjectView]
    not_passed: Sequence[CaseLineView]


class CaseView(View):
    """A case under one subject, without its epochs."""

    case: str
    suite: str
    subject: str
    status: Status
    score: float | None
    threshold: float | None
    why: str
    description: str
    file: str
    line: int
    tags: Sequence[str]
    evaluators: Sequence[Evaluator]
    seconds: float | None
    cost_usd: float
    judge_cost_usd: float
    missing_epochs: int


class JudgementView(View):
    """What a judge said, apart from the items, which stand with the result; of a council, how its members differ."""

    by: str
    version: str
    model: str | None
    passed: bool | None
    samples: int
    agreement: float | None
    failures: Sequence[str]
    cost_usd: float
    keys: Sequence[str]
    spread: float | UnsetType | None = UNSET
    votes: str | UnsetType | None = UNSET
    tie: str | UnsetType | None = UNSET
    members: Sequence[MemberVerdict] | UnsetType = UNSET


class EpochView(View, kw_only=True):
    """One epoch of a case with its last answer, and everything that was found and said."""

    epoch: int
    status: Status
    score: float | None
    why: str
    quality: Quality
    seconds: float
    cost_usd: float
    judge_cost_usd: float
    input_tokens: int
    output_tokens: int
    thinking_tokens: int | UnsetType = UNSET
    model: str | None
    golden: float | None
    tools: Sequence[str]
    checks: Sequence[CheckResult]
    items: Sequence[ItemScore]
    judgements: Sequence[JudgementView]
    keys: Sequence[str]
    error: Mapping[str, Json] | None
    answer: str


class ReportedCaseView(CaseView):
    """A case under one subject with all its epochs."""

    epochs: Sequence[EpochView]


async def write_json(suite: SuiteRun, report: SuiteReport, out: TextIO) -> None:
    """Write the whole report."""
    head = suite_report_view(report).builtins() | {"environment": suite.environment}
    out.write(json.dumps(head, ensure_ascii=False, indent=2).removesuffix("\n}") + ',\n  "cases": [')
    spoken, between = Spoken(suite), "\n    "
    async for row in CaseRows(suite):
        out.write(between + await _case(spoken, row))
        between = ",\n    "
    out.write("\n  ]\n}\n")


async def _case(spoken: Spoken, row: CaseRow) -> str:
    epochs = [epoch_view(result, await spoken.answer(result)) for result in row.results]
    return json.dumps(ReportedCaseView(**asdict(case_view(row)), epochs=epochs).builtins(), ensure_ascii=False)


def suite_report_view(report: SuiteReport) -> SuiteReportView:
    """Return the summary."""
    return SuiteReportView(
        schema=SCHEMA,
        ok=report.ok,
        verdict=report.verdict,
        run=_facts_view(report.run),
        counts=report.counts,
        cases_total=report.cases,
        results_expected=report.expected,
        results_missing=report.missing,
        answers_not_judged=(report.answered - report.unfinished) or UNSET,
        conversations_not_finished=report.unfinished or UNSET,
        warnings=report.warnings,
        subjects=[suite_subject_view(line) for line in report.subjects],
        not_passed=[_line_view(line) for line in report.troubles[:MAX_LINES]],
    )


def _line_view(line: CaseLine) -> CaseLineView:
    return CaseLineView(
        status=line.status,
        case=line.case,
        subject=line.subject,
        why=line.why,
        score=line.score,
        threshold=line.threshold,
        file=line.file,
        line=line.line,
    )


def _facts_view(run: RunFacts) -> SuiteFactsView:
    saving = run.saving
    return SuiteFactsView(
        id=run.id,
        name=run.name,
        state=run.state,
        ended_reason=run.ended_reason,
        error=run.error or None,
        started_at=moment(run.started_at),
        ended_at=moment(run.ended_at),
        seconds=run.seconds,
        budget_usd=None if run.cap is None else to_usd(run.cap),
        spent_usd=to_usd(run.spent.billed),
        imputed_usd=to_usd(run.spent.imputed),
        uncertain_usd=to_usd(run.spent.uncertain),
        dispatch=run.dispatch,
        batches=BatchSavingView(count=saving.batches, saved_usd=to_usd(saving.saved)) if saving.batches else None,
        suites=run.suites,
        judge=run.judge,
        epochs=run.epochs,
        muster_version=run.version or None,
        flex=_flex_view(saving),
    )


def _flex_view(saving: Saving) -> FlexSavingView | UnsetType:
    return FlexSavingView(calls=saving.flex_calls, saved_usd=to_usd(saving.flex_saved)) if saving.flex_calls else UNSET


def suite_subject_view(line: SubjectLine) -> SuiteSubjectView:
    """Return the figures of one subject."""
    stats = line.stats
    return SuiteSubjectView(
        subject=line.label,
        model=line.model or None,
        rank=line.rank,
        told_apart=None if line.rank is None else line.told_apart,
        cases_run=stats.run,
        counts=line.counts,
        pass_rate=stats.pass_rate,
        pass_interval=_bounds(stats.pass_interval),
        mean_score=stats.mean_score,
        score_interval=_bounds(stats.score_interval),
        repeats=[
            RepeatsView(k=repeats.k, pass_at_k=repeats.one, pass_hat_k=repeats.every) for repeats in stats.repeats
        ],
        variance=stats.variance,
        seconds=stats.latency,
        cost_usd=to_usd(stats.cost),
        judge_cost_usd=to_usd(stats.judge_cost),
        cost_per_case_usd=None if stats.cost_per_case is None else stats.cost_per_case / 1_000_000,
        input_tokens=stats.input_tokens,
        output_tokens=stats.output_tokens,
        thinking_tokens=stats.thinking_tokens or UNSET,
        judge_agreement=stats.agreement,
        judge_spread=UNSET if stats.spread is None else stats.spread,
        unjudged_items=stats.unjudged_items,
    )


def _bounds(interval: Interval | None) -> Sequence[float] | None:
    return None if interval is None else [interval.low, interval.high]


def case_view(row: CaseRow) -> CaseView:
    """Return a case under one subject, without its epochs."""
    case = row.case
    return CaseView(
        case=case.id,
        suite=case.suite,
        subject=row.subject,
        status=row.status,
        score=row.score,
        threshold=row.threshold,
        why=row.why,
        description=case.description,
        file=case.file,
        line=case.line,
        tags=case.tags,
        evaluators=row.evaluators,
        seconds=row.seconds,
        cost_usd=to_usd(row.cost),
        judge_cost_usd=to_usd(row.judge_cost),
        missing_epochs=row.missing,
    )


def epoch_view(result: CaseResult, answer: str) -> EpochView:
    """Return one epoch of a case with its last answer, and everything that was found and said."""
    return EpochView(
        epoch=result.epoch,
        status=result.status,
        score=result.score,
        why=result.why,
        quality=result.quality,
        seconds=result.seconds,
        cost_usd=to_usd(result.cost),
        judge_cost_usd=to_usd(result.judge_cost),
        input_tokens=result.input_tokens,
        output_tokens=result.output_tokens,
        thinking_tokens=result.thinking_tokens or UNSET,
        model=result.model or None,
        golden=result.golden,
        tools=result.tools,
        checks=result.checks,
        items=result.items,
        judgements=[_judgement_view(judgement) for judgement in result.judgements],
        keys=result.keys,
        error=result.error,
        answer=answer,
    )


def _judgement_view(judgement: Judgement) -> JudgementView:
    members = judgement.members
    return JudgementView(
        by=judgement.by,
        version=judgement.version,
        model=judgement.model or None,
        passed=judgement.passed,
        samples=judgement.samples,
        agreement=judgement.agreement,
        failures=judgement.failures,
        cost_usd=to_usd(Microdollars(judgement.cost)),
        keys=judgement.keys,
        spread=judgement.spread if members else UNSET,
        votes=(judgement.votes or None) if members else UNSET,
        tie=(judgement.tie or None) if members else UNSET,
        members=members or UNSET,
    )

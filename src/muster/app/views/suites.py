"""Reports, reviews, baselines, trends and generated cases of suites."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from muster.app.runs.reports import AnyReport
from muster.app.suites.generation import Generated
from muster.app.suites.results import SuiteSummary, WholeCase
from muster.app.suites.reviews import NamedRun
from muster.app.views.money import MoneyView, money_view
from muster.domain.canonical import Json
from muster.domain.case import Status
from muster.domain.money import to_usd
from muster.domain.review import Opinion, Review
from muster.domain.run import Run, RunState
from muster.suites.compare.json_report import PairPageView, pair_page_view
from muster.suites.compare.pairs import PairPage
from muster.suites.journal import Subject
from muster.suites.reports.json_report import (
    CaseView,
    EpochView,
    SuiteReportView,
    SuiteSubjectView,
    case_view,
    epoch_view,
    suite_report_view,
    suite_subject_view,
)
from muster.suites.reports.paging import CasePage
from muster.suites.reports.summary import MAX_SECONDS, MIN_SECONDS
from muster.suites.reports.trend import SuiteTrend, TrendPoint
from muster.suites.reviews import Agreement, ReviewedRun
from muster.suites.statistics import SubjectStats
from muster.text import typed
from muster.text.plain import plain_words
from muster.text.secrets.redaction import Redactor
from muster.text.views import UNSET, UnsetType, View, asdict, instant, moment, replace

V = TypeVar("V", bound=View)


class BaselineView(View):
    """A baseline."""

    name: str
    run: str
    run_name: str | None
    set_at: str
    state: RunState


class BaselinesView(View):
    """The baselines."""

    baselines: Sequence[BaselineView]


class SetBaselineView(View):
    """A baseline that was set."""

    name: str
    run: str


class RemovedBaselineView(View):
    """The name of a baseline that was removed."""

    removed: str


class ReviewView(View):
    """What a person thinks of the verdict on a case; in a list with that verdict."""

    run: str
    case: str
    subject: str | None
    epoch: int
    opinion: Opinion
    note: str
    by: str | None
    at: str
    status: Status | UnsetType | None = UNSET
    score: float | UnsetType | None = UNSET


class AgreementView(View):
    """How far reviews agree with verdicts."""

    reviews: int
    raw: float | None
    kappa: float | None


class ReviewsView(View):
    """The reviews of a run and how far they agree with the verdicts."""

    run: str
    judge_agreement: AgreementView
    agreement: AgreementView
    borderline: int
    without_verdict: int
    reviews: Sequence[ReviewView]


class TestedSubjectView(View):
    """Who was tested: an agent, under a prompt where there are several."""

    subject: str
    agent: str | None
    prompt: str | None


class TestedSubjectsView(View):
    """Who was tested in a suite run."""

    subjects: Sequence[TestedSubjectView]


class GeneratedView(MoneyView):
    """Generated cases."""

    run: str
    file: str | None
    generated: int
    skill: Json
    asked: Json
    cases: Json
    rounds: Json
    rejected: Json
    reasons: Json


class ReportView(View):
    """A report: as data where it is data, else as text."""

    run: str
    format: str
    ok: bool
    report: Json


class WrittenReportView(View):
    """A report that was written to a file."""

    run: str
    format: str
    ok: bool
    file: str


class ChartedSubjectView(SuiteSubjectView, kw_only=True):
    """The figures of one subject, with counts of its scores and times for charts."""

    agent: str | None
    prompt: str | None
    score_bins: Sequence[int]
    second_bins: Sequence[int]


class SuiteSummaryView(SuiteReportView, kw_only=True):
    """The figures of a suite run without its cases.

    Scores are counted in equal steps from 0 to 1, times in equal steps of their logarithm over `seconds_axis`.
    """

    subjects: Sequence[ChartedSubjectView]
    seconds_axis: Sequence[float]


class ListedCaseView(CaseView):
    """A case under one subject, as a list shows it."""

    about: str


class CasePageView(View):
    """A page of the cases of a suite run."""

    cases: Sequence[ListedCaseView]
    next: str | None


class WholeCaseView(CaseView):
    """A case under one subject with all its epochs."""

    run: str
    epochs: Sequence[EpochView]


class TrendSubjectView(View):
    """What one subject came to in a run."""

    subject: str
    cases_run: int
    pass_rate: float | None
    pass_interval: Sequence[float] | None
    mean_score: float | None
    cost_usd: float
    judge_cost_usd: float


class TrendPointView(MoneyView):
    """What one run came to."""

    id: str
    state: RunState
    created_at: str
    baselines: Sequence[str]
    subjects: Sequence[TrendSubjectView]


class TrendView(View):
    """What the runs of one name came to, the oldest first."""

    name: str
    runs: Sequence[TrendPointView]


def baseline_view(named: NamedRun) -> BaselineView:
    """Return a baseline."""
    return BaselineView(
        name=named.name,
        run=named.run.id,
        run_name=named.run.name,
        set_at=moment(named.at) or "",
        state=named.run.state,
    )


def set_baseline_view(name: str, run: Run) -> SetBaselineView:
    """Return a baseline that was set."""
    return SetBaselineView(name=name, run=run.id)


def removed_baseline_view(name: str) -> RemovedBaselineView:
    """Return the name of a baseline that was removed."""
    return RemovedBaselineView(removed=name)


def shown_pairs(page: PairPage) -> PairPageView:
    """Return a page of the pairs of two runs, without secrets that can be told by their look."""
    return _redacted(pair_page_view(page))


def review_view(made: Review) -> ReviewView:
    """Return a review."""
    return ReviewView(
        run=made.run,
        case=made.case,
        subject=made.subject,
        epoch=made.epoch,
        opinion=made.opinion,
        note=made.note,
        by=made.by or None,
        at=instant(made.at),
    )


def reviews_view(run: str, reviewed: ReviewedRun) -> ReviewsView:
    """Return the reviews of a run and how far they agree with the verdicts."""
    return ReviewsView(
        run=run,
        judge_agreement=_agreement_view(reviewed.judge),
        agreement=_agreement_view(reviewed.all),
        borderline=reviewed.borderline,
        without_verdict=reviewed.without_verdict,
        reviews=[
            replace(
                review_view(one.review),
                status=None if one.result is None else one.result.status,
                score=None if one.result is None else one.result.score,
            )
            for one in reviewed.reviews
        ],
    )


def _agreement_view(agreement: Agreement) -> AgreementView:
    return AgreementView(reviews=agreement.n, raw=agreement.raw, kappa=agreement.kappa)


def suite_summary_view(summary: SuiteSummary) -> SuiteSummaryView:
    """Return the figures of a suite run: its report without cases, with counts of scores and times for charts."""
    subjects = [
        ChartedSubjectView(
            **asdict(suite_subject_view(line)),
            agent=subject.agent or None,
            prompt=subject.prompt or None,
            score_bins=line.score_bins,
            second_bins=line.second_bins,
        )
        for line, subject in zip(summary.report.subjects, summary.subjects, strict=True)
    ]
    report = asdict(suite_report_view(summary.report)) | {"subjects": subjects}
    return _redacted(SuiteSummaryView(**report, seconds_axis=[MIN_SECONDS, MAX_SECONDS]))


def subjects_view(subjects: Iterable[Subject]) -> TestedSubjectsView:
    """Return who was tested in a suite run."""
    return TestedSubjectsView(
        subjects=[
            TestedSubjectView(subject=one.label, agent=one.agent or None, prompt=one.prompt or None) for one in subjects
        ]
    )


def case_page_view(page: CasePage) -> CasePageView:
    """Return a page of the cases of a suite run."""
    cases = [ListedCaseView(**asdict(case_view(row)), about=plain_words(row.case.description)) for row in page.rows]
    return _redacted(CasePageView(cases=cases, next=page.next))


def whole_case_view(whole: WholeCase) -> WholeCaseView:
    """Return one case of a suite run with all its epochs."""
    epochs = [epoch_view(result, whole.answers[result.epoch]) for result in whole.row.results]
    return _redacted(WholeCaseView(**asdict(case_view(whole.row)), run=whole.run.id, epochs=epochs))


def _redacted(view: V) -> V:
    """Return a view without secrets that can be told by their look, as reports are."""
    return typed.convert(Redactor().json(view.builtins()), type(view))


def generated_view(generated: Generated) -> GeneratedView:
    """Return generated cases."""
    run, result = generated.run, generated.run.result
    return GeneratedView(
        **asdict(money_view(run.spent)),
        **{name: result[name] for name in ("skill", "asked", "cases", "rounds", "rejected", "reasons")},
        run=run.id,
        file=None if generated.file is None else str(generated.file),
        generated=len(generated.cases),
    )


async def report_view(report: AnyReport, format_: str) -> ReportView:
    """Return a report: as data where it is data, else as text."""
    text = await report.text(format_)
    told = json.loads(text) if format_ == "json" else text
    return ReportView(run=report.run.id, format=format_, ok=report.ok, report=told)


def written_report_view(report: AnyReport, format_: str, path: Path) -> WrittenReportView:
    """Return a report that was written to a file."""
    return WrittenReportView(run=report.run.id, format=format_, ok=report.ok, file=str(path))


def trend_view(trend: SuiteTrend) -> TrendView:
    """Return what the runs of one name came to, the oldest first."""
    return TrendView(name=trend.name, runs=[_trend_point_view(point) for point in trend.points])


def _trend_point_view(point: TrendPoint) -> TrendPointView:
    run = point.run
    return TrendPointView(
        **asdict(money_view(run.spent)),
        id=run.id,
        state=run.state,
        created_at=instant(run.created_at),
        baselines=point.baselines,
        subjects=[_trend_subject_view(stats) for stats in point.subjects],
    )


def _trend_subject_view(stats: SubjectStats) -> TrendSubjectView:
    interval = stats.pass_interval
    return TrendSubjectView(
        subject=stats.subject,
        cases_run=stats.run,
        pass_rate=stats.pass_rate,
        pass_interval=None if interval is None else [interval.low, interval.high],
        mean_score=stats.mean_score,
        cost_usd=to_usd(stats.cost),
        judge_cost_usd=to_usd(stats.judge_cost),
    )

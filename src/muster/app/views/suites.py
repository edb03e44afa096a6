"""Plans, reports, reviews, baselines, generated cases and findings of suites as JSON."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from muster.app.costs import Load
from muster.app.reports import AnyReport
from muster.app.suites.generation import Generated
from muster.app.suites.plan import SuitePlan
from muster.app.suites.results import SuiteSummary, WholeCase
from muster.app.suites.reviews import NamedRun
from muster.app.views.money import money_view
from muster.app.views.runs import moment
from muster.domain.money import to_usd
from muster.domain.review import Review
from muster.domain.run import Run
from muster.suites.compare.pairs import PairPage
from muster.suites.compare.report import comparison_json, comparison_markdown, pairs_json
from muster.suites.compare.runs import RunComparison
from muster.suites.format.suite import Examination
from muster.suites.journal import Subject
from muster.suites.reports.json_report import report_json, result_json, row_json, subject_json
from muster.suites.reports.paging import CasePage
from muster.suites.reports.summary import LEAST_SECONDS, MOST_SECONDS
from muster.suites.reviews import Agreement, ReviewedRun
from muster.suites.statistics import SubjectStats
from muster.suites.trend import SuiteTrend, TrendPoint
from muster.text.documents.tree import Flaw
from muster.text.plain import plain_words
from muster.text.secrets.redaction import Redactor


def load_view(load: Load) -> dict[str, Any]:
    """Return calls that would be made as JSON."""
    return {
        "calls": load.calls,
        "most_calls": load.most_calls,
        "tokens": load.tokens,
        "least_usd": to_usd(load.least),
        "most_usd": None if load.unbounded else to_usd(load.most),
    }


def plan_view(found: SuitePlan, cap: int | None) -> dict[str, Any]:
    """Return what a suite run would do and cost as JSON; with a budget, whether that is enough."""
    return {
        "suites": found.suites,
        "cases": found.cases,
        "skipped": found.skipped,
        "damaged": found.damaged,
        "agents": {agent: load_view(load) for agent, load in found.agents.items()},
        "judge": load_view(found.judge),
        "commands": found.commands,
        "may_call_tools": found.may_call_tools,
        "total": load_view(found.all),
        "budget_usd": None if cap is None else to_usd(cap),
        "fits": None if cap is None else found.all.fits(cap),
    }


def baseline_view(one: NamedRun) -> dict[str, Any]:
    """Return a baseline as JSON."""
    return {
        "name": one.name,
        "run": one.run.id,
        "run_name": one.run.name,
        "set_at": moment(one.at) or "",
        "state": str(one.run.state),
    }


def set_baseline_view(name: str, run: Run) -> dict[str, Any]:
    """Return a baseline that was set as JSON."""
    return {"name": name, "run": run.id}


def removed_baseline_view(name: str) -> dict[str, Any]:
    """Return a baseline that was removed as JSON."""
    return {"removed": name}


def pair_page_view(found: PairPage) -> dict[str, Any]:
    """Return a page of the pairs of two runs as JSON."""
    return _redacted(pairs_json(found))


def comparison_view(found: RunComparison, *, markdown: bool = False, most_changes: int | None = None) -> dict[str, Any]:
    """Return a comparison of two runs as JSON; if asked for, with its Markdown, or with few of the changed cases."""
    return comparison_json(found, most_changes) | ({"markdown": comparison_markdown(found)} if markdown else {})


def review_view(made: Review) -> dict[str, Any]:
    """Return a review as JSON."""
    return {
        "run": made.run,
        "case": made.case,
        "subject": made.subject,
        "epoch": made.epoch,
        "opinion": str(made.opinion),
        "note": made.note,
        "by": made.by or None,
        "at": moment(made.at),
    }


def reviews_view(run: str, found: ReviewedRun) -> dict[str, Any]:
    """Return the reviews of a run and how far they agree with the verdicts as JSON."""
    return {
        "run": run,
        "judge_agreement": _agreement_view(found.judge),
        "agreement": _agreement_view(found.all),
        "borderline": found.borderline,
        "without_verdict": found.without_verdict,
        "reviews": [
            review_view(one.review)
            | {
                "status": None if one.result is None else str(one.result.status),
                "score": None if one.result is None else one.result.score,
            }
            for one in found.reviews
        ],
    }


def _agreement_view(one: Agreement) -> dict[str, Any]:
    return {"reviews": one.n, "raw": one.raw, "kappa": one.kappa}


def suite_summary_view(found: SuiteSummary) -> dict[str, Any]:
    """Return the figures of a suite run as JSON: its report without cases, with counts of scores and times for charts.

    Scores are counted in equal steps from 0 to 1, times in equal steps of their logarithm over `seconds_axis`.
    """
    subjects = [
        subject_json(line)
        | {"agent": one.agent or None, "prompt": one.prompt or None}
        | {"score_bins": list(line.score_bins), "second_bins": list(line.second_bins)}
        for line, one in zip(found.report.subjects, found.subjects, strict=True)
    ]
    told = report_json(found.report) | {"subjects": subjects, "seconds_axis": [LEAST_SECONDS, MOST_SECONDS]}
    return _redacted(told)


def subjects_view(found: Iterable[Subject]) -> dict[str, Any]:
    """Return who was tested in a suite run as JSON."""
    subjects = [{"subject": one.label, "agent": one.agent or None, "prompt": one.prompt or None} for one in found]
    return {"subjects": subjects}


def case_page_view(found: CasePage) -> dict[str, Any]:
    """Return a page of the cases of a suite run as JSON."""
    cases = [row_json(row) | {"about": plain_words(row.case.description)} for row in found.rows]
    return _redacted({"cases": cases, "next": found.next})


def whole_case_view(found: WholeCase) -> dict[str, Any]:
    """Return one case of a suite run with all its epochs as JSON."""
    epochs = [result_json(result) | {"answer": found.answers[result.epoch]} for result in found.row.results]
    return _redacted(row_json(found.row) | {"run": found.run.id, "epochs": epochs})


def _redacted(told: dict[str, Any]) -> dict[str, Any]:
    """Return what is told without secrets that can be told by their look, as reports are."""
    found: dict[str, Any] = Redactor().json(told)
    return found


def generated_view(found: Generated) -> dict[str, Any]:
    """Return generated cases as JSON."""
    run, result = found.run, found.run.result
    return {
        "run": run.id,
        "file": None if found.file is None else str(found.file),
        "generated": len(found.cases),
        **{name: result[name] for name in ("skill", "asked", "cases", "rounds", "rejected", "reasons")},
        **money_view(run.spent),
    }


async def report_view(found: AnyReport, format_: str) -> dict[str, Any]:
    """Return a report as JSON: as data where it is data, else as text."""
    text = await found.text(format_)
    report = json.loads(text) if format_ == "json" else text
    return {"run": found.run.id, "format": format_, "ok": found.ok, "report": report}


def written_report_view(found: AnyReport, format_: str, path: Path) -> dict[str, Any]:
    """Return a report that was written to a file as JSON."""
    return {"run": found.run.id, "format": format_, "ok": found.ok, "file": str(path)}


def flaw_view(flaw: Flaw) -> dict[str, Any]:
    """Return a flaw of a file as JSON."""
    told = {"file": flaw.file, "line": flaw.line, "case": flaw.case or None, "message": flaw.message}
    more = {"column": flaw.column, "code": flaw.code or None}
    return told | {name: value for name, value in more.items() if value is not None}


def examination_view(file: str, found: Examination) -> dict[str, Any]:
    """Return what is wrong in a suite as JSON."""
    return {
        "file": file,
        "name": found.name,
        "cases": found.cases,
        "flaws": [flaw_view(flaw) for flaw in found.flaws],
        "warnings": [flaw_view(flaw) for flaw in found.doubts],
    }


def trend_view(found: SuiteTrend) -> dict[str, Any]:
    """Return what the runs of one name came to as JSON, the oldest first."""
    return {"name": found.name, "runs": [_trend_point_view(one) for one in found.points]}


def _trend_point_view(one: TrendPoint) -> dict[str, Any]:
    run = one.run
    return {
        "id": run.id,
        "state": str(run.state),
        "created_at": moment(run.created_at),
        **money_view(run.spent),
        "baselines": list(one.baselines),
        "subjects": [_trend_subject_view(stats) for stats in one.subjects],
    }


def _trend_subject_view(stats: SubjectStats) -> dict[str, Any]:
    interval = stats.pass_interval
    return {
        "subject": stats.subject,
        "cases_run": stats.run,
        "pass_rate": stats.pass_rate,
        "pass_interval": None if interval is None else [interval.low, interval.high],
        "mean_score": stats.mean_score,
        "cost_usd": to_usd(stats.cost),
        "judge_cost_usd": to_usd(stats.judge_cost),
    }

"""Plans, reports, reviews, baselines, generated cases and findings of suites as JSON."""

import json
from pathlib import Path
from typing import Any

from muster.app.costs import Load
from muster.app.reports import AnyReport
from muster.app.suites.generation import Generated
from muster.app.suites.plan import SuitePlan
from muster.app.suites.reviews import NamedRun
from muster.app.views.runs import moment
from muster.domain.money import to_usd
from muster.domain.review import Review
from muster.domain.run import Run
from muster.suites.compare.report import comparison_json, comparison_markdown
from muster.suites.compare.runs import RunComparison
from muster.suites.format.suite import Examination
from muster.suites.reviews import Agreement, ReviewedRun
from muster.text.documents.tree import Flaw


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


def comparison_view(found: RunComparison, *, markdown: bool = False) -> dict[str, Any]:
    """Return a comparison of two runs as JSON; if asked for, with its Markdown."""
    return comparison_json(found) | ({"markdown": comparison_markdown(found)} if markdown else {})


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


def generated_view(found: Generated) -> dict[str, Any]:
    """Return generated cases as JSON."""
    run, result = found.run, found.run.result
    return {
        "run": run.id,
        "file": None if found.file is None else str(found.file),
        "generated": len(found.cases),
        **{name: result[name] for name in ("skill", "asked", "cases", "rounds", "rejected", "reasons")},
        "cost_usd": to_usd(run.spent.billed + run.spent.imputed),
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

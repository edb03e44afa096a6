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
from typing import Any, TextIO

from muster.domain.money import Microdollars, to_usd
from muster.suites.reports.rows import CaseRow, CaseRows
from muster.suites.reports.run import Spoken, SuiteRun
from muster.suites.reports.summary import CaseLine, RunFacts, SubjectLine, SuiteReport
from muster.suites.statistics import Interval
from muster.suites.verdict import CaseResult, Judgement
from muster.text import typed
from muster.text.words import moment


async def write_json(suite: SuiteRun, report: SuiteReport, out: TextIO) -> None:
    """Write the whole report."""
    head = report_json(report) | {"environment": suite.environment}
    out.write(json.dumps(head, ensure_ascii=False, indent=2).removesuffix("\n}") + ',\n  "cases": [')
    spoken, between = Spoken(suite), "\n    "
    async for row in CaseRows(suite):
        out.write(between + await _case(spoken, row))
        between = ",\n    "
    out.write("\n  ]\n}\n")


async def _case(spoken: Spoken, row: CaseRow) -> str:
    epochs = [result_json(result) | {"answer": await spoken.answer(result)} for result in row.results]
    return json.dumps(row_json(row) | {"epochs": epochs}, ensure_ascii=False)


SCHEMA = "muster.suite-report/1"
MOST_LINES = 100  # cases that did not pass are named in the summary


def report_json(report: SuiteReport) -> dict[str, Any]:
    """Return the summary."""
    return {
        "schema": SCHEMA,
        "ok": report.ok,
        "verdict": report.verdict,
        "run": run_json(report.run),
        "counts": {str(status): number for status, number in report.counts.items()},
        "cases_total": report.cases,
        "results_expected": report.expected,
        "results_missing": report.missing,
        **({"answers_not_judged": whole} if (whole := report.answered - report.unfinished) else {}),
        **({"conversations_not_finished": report.unfinished} if report.unfinished else {}),
        "warnings": list(report.warnings),
        "subjects": [subject_json(line) for line in report.subjects],
        "not_passed": [_line_json(line) for line in report.troubles[:MOST_LINES]],
    }


def _line_json(line: CaseLine) -> dict[str, Any]:
    names = ("case", "subject", "why", "score", "threshold", "file", "line")
    return {"status": str(line.status)} | {name: getattr(line, name) for name in names}


def run_json(run: RunFacts) -> dict[str, Any]:
    """Return the facts of the run."""
    saving = run.saving
    return {
        "id": run.id,
        "name": run.name,
        "state": str(run.state),
        "ended_reason": run.ended_reason,
        "error": run.error or None,
        "started_at": moment(run.started_at),
        "ended_at": moment(run.ended_at),
        "seconds": run.seconds,
        "budget_usd": None if run.cap is None else to_usd(run.cap),
        "spent_usd": to_usd(run.spent.billed),
        "imputed_usd": to_usd(run.spent.imputed),
        "uncertain_usd": to_usd(run.spent.uncertain),
        "dispatch": run.dispatch,
        "batches": None if saving is None else {"count": saving.batches, "saved_usd": to_usd(run.saved)},
        "suites": list(run.suites),
        "judge": run.judge,
        "epochs": run.epochs,
        "muster_version": run.version or None,
    }


def subject_json(line: SubjectLine) -> dict[str, Any]:
    """Return the figures of one subject."""
    counts = {str(status): number for status, number in line.counts.items()}
    stats = line.stats
    return {
        "subject": line.label,
        "model": line.model or None,
        "rank": line.rank,
        "told_apart": None if line.rank is None else line.told_apart,
        "cases_run": stats.run,
        "counts": counts,
        "pass_rate": stats.pass_rate,
        "pass_interval": _pair(stats.pass_interval),
        "mean_score": stats.mean_score,
        "score_interval": _pair(stats.score_interval),
        "repeats": [{"k": one.k, "pass_at_k": one.one, "pass_hat_k": one.every} for one in stats.repeats],
        "variance": typed.to_builtins(stats.variance),
        "seconds": None if stats.latency is None else typed.to_builtins(stats.latency),
        "cost_usd": to_usd(stats.cost),
        "judge_cost_usd": to_usd(stats.judge_cost),
        "cost_per_case_usd": None if stats.cost_per_case is None else stats.cost_per_case / 1_000_000,
        "input_tokens": stats.input_tokens,
        "output_tokens": stats.output_tokens,
        "judge_agreement": stats.agreement,
        **({} if stats.spread is None else {"judge_spread": stats.spread}),
        "unjudged_items": stats.unjudged_items,
    }


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def row_json(row: CaseRow) -> dict[str, Any]:
    """Return a case under one subject, without its epochs."""
    case = row.case
    return {
        "case": case.id,
        "suite": case.suite,
        "subject": row.subject,
        "status": str(row.status),
        "score": row.score,
        "threshold": row.threshold,
        "why": row.why,
        "description": case.description,
        "file": case.file,
        "line": case.line,
        "tags": list(case.tags),
        "evaluators": [str(evaluator) for evaluator in row.evaluators],
        "seconds": row.seconds,
        "cost_usd": to_usd(row.cost),
        "judge_cost_usd": to_usd(row.judge_cost),
        "missing_epochs": row.missing,
    }


def result_json(result: CaseResult) -> dict[str, Any]:
    """Return one epoch of a case, with everything that was found and said."""
    return {
        "epoch": result.epoch,
        "status": str(result.status),
        "score": result.score,
        "why": result.why,
        "quality": str(result.quality),
        "seconds": result.seconds,
        "cost_usd": to_usd(result.cost),
        "judge_cost_usd": to_usd(result.judge_cost),
        "input_tokens": result.input_tokens,
        "output_tokens": result.output_tokens,
        "model": result.model or None,
        "golden": result.golden,
        "tools": list(result.tools),
        "checks": typed.to_builtins(result.checks),
        "items": typed.to_builtins(result.items),
        "judgements": [judgement_json(judgement) for judgement in result.judgements],
        "keys": list(result.keys),
        "error": result.error,
    }


def judgement_json(judgement: Judgement) -> dict[str, Any]:
    """Return what a judge said, apart from the items, which stand with the result."""
    return {
        "by": judgement.by,
        "version": judgement.version,
        "model": judgement.model or None,
        "passed": judgement.passed,
        "samples": judgement.samples,
        "agreement": judgement.agreement,
        "failures": list(judgement.failures),
        "cost_usd": to_usd(Microdollars(judgement.cost)),
        "keys": list(judgement.keys),
        **council_json(judgement),
    }


def council_json(judgement: Judgement) -> dict[str, Any]:
    """Return how the members of a council differ; nothing of any other judge."""
    if not judgement.members:
        return {}
    return {
        "spread": judgement.spread,
        "votes": judgement.votes or None,
        "tie": judgement.tie or None,
        "members": typed.to_builtins(judgement.members),
    }

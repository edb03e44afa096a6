"""The values that the page draws, cut to what a person can read."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from muster import __version__
from muster.domain.case import Case
from muster.domain.money import show_usd, to_usd
from muster.domain.verdict import CaseResult, CheckResult, ItemScore, Judgement
from muster.reports.suite.figures import figures
from muster.reports.suite.histogram import LEAST_SECONDS, MOST_SECONDS, TICKS
from muster.reports.suite.json_values import row_json
from muster.reports.suite.rows import CaseRow
from muster.reports.suite.steadiness import steadiness
from muster.reports.suite.summary import SubjectLine, SuiteReport
from muster.reports.suite.talk import Turn
from muster.reports.words import count, moment, seconds_of, shorten

LONGEST_TEXT = 50_000  # characters of one message
LONGEST_NOTE = 4000
MOST_TURNS = 400


def head_json(report: SuiteReport) -> dict[str, Any]:
    """Give everything but the rows."""
    return {
        "ok": report.ok,
        "pending": report.pending,
        "verdict": report.verdict,
        "run": {"id": report.run.id, "name": report.run.title, "facts": list(_facts(report))},
        "warnings": list(report.warnings),
        "counts": {str(status): number for status, number in report.counts.items()},
        "subjects": [_subject(line) for line in report.subjects],
        "latency_axis": {"least": LEAST_SECONDS, "most": MOST_SECONDS, "ticks": TICKS[::2]},
        "footer": f"Made by muster {__version__} from the stored run {report.run.id}.",
    }


def _facts(report: SuiteReport) -> Iterator[tuple[str, str]]:
    run = report.run
    yield "Run", run.id
    yield "State", str(run.state)
    yield "Cases", f"{report.cases:,}" + (f" × {count(run.epochs, 'epoch')}" if run.epochs > 1 else "")
    yield "Started", (moment(run.started_at) or "not yet").replace("T", " ")[:19] + (" UTC" if run.started_at else "")
    if run.seconds is not None:
        yield "Took", seconds_of(run.seconds)
    yield "Spent", show_usd(run.spent.billed)
    if run.spent.imputed:
        yield "Covered by a subscription", show_usd(run.spent.imputed)
    if run.spent.uncertain:
        yield "Uncertain", show_usd(run.spent.uncertain)
    if run.saved > 0:
        yield "Saved by batches", show_usd(run.saved)
    if run.cap is not None:
        yield "Budget", show_usd(run.cap)
    if run.judge:
        yield "Judge", run.judge


def _subject(line: SubjectLine) -> dict[str, Any]:
    found = figures(line)
    per_case = found.cost_per_case
    return asdict(found) | {
        "label": line.label,
        "rank": line.rank,
        "told_apart": line.told_apart,
        "model": line.model,
        "steadiness": steadiness(line.stats),
        "statuses": {str(status): number for status, number in line.counts.items()},
        "scores": line.score_bins,
        "latency": line.second_bins,
        "cost": to_usd(found.cost),
        "cost_per_case": None if per_case is None else per_case / 1_000_000,
    }


def row_values(row: CaseRow) -> dict[str, Any]:
    """Give a row, without its epochs."""
    return row_json(row) | {
        "threshold": row.threshold or 0.0,
        "why": shorten(row.why, LONGEST_NOTE),
        "description": shorten(row.case.description, LONGEST_NOTE),
        "cost": to_usd(row.cost),
    }


def epoch_values(case: Case, result: CaseResult) -> dict[str, Any]:
    """Give one epoch, without its conversation."""
    described = {item.id: item.description for item in case.rubric}
    return {
        "epoch": result.epoch,
        "status": str(result.status),
        "score": result.score,
        "why": shorten(result.why, LONGEST_NOTE),
        "quality": str(result.quality),
        "seconds": result.seconds,
        "cost": to_usd(result.cost),
        "judge_cost": to_usd(result.judge_cost),
        "tokens": [result.input_tokens, result.output_tokens],
        "model": result.model,
        "golden": result.golden,
        "checks": [_check(check) for check in result.checks],
        "items": [_item(item, described.get(item.id, "")) for item in result.items],
        "judges": [_judge(judgement) for judgement in result.judgements],
    }


def _check(check: CheckResult) -> dict[str, Any]:
    return {
        "name": check.name,
        "passed": check.passed,
        "broken": check.broken,
        "expected": shorten(check.expected, LONGEST_NOTE),
        "why": shorten(check.why, LONGEST_NOTE),
    }


def _item(item: ItemScore, description: str) -> dict[str, Any]:
    return {
        "id": item.id,
        "description": shorten(description, LONGEST_NOTE),
        "weight": item.weight,
        "critical": item.critical,
        "score": item.score,
        "by": item.by,
        "rationale": shorten(item.rationale, LONGEST_NOTE),
        "evidence": item.evidence[:LONGEST_NOTE],
        "quoted": item.quoted,
        "samples": list(item.samples),
    }


def _judge(judgement: Judgement) -> dict[str, Any]:
    return {
        "by": judgement.by,
        "model": judgement.model,
        "version": judgement.version,
        "agreement": judgement.agreement,
        "failures": [shorten(failure, LONGEST_NOTE) for failure in judgement.failures],
    }


def talk_values(said: Sequence[Turn]) -> list[dict[str, Any]]:
    """Give a conversation; of one that is very long its beginning and its end."""
    half = MOST_TURNS // 2
    if len(said) > MOST_TURNS:
        gap = Turn(role="system", text=f"… {len(said) - 2 * half:,} messages are left out here …")
        said = [*said[:half], gap, *said[-half:]]
    return [_turn(turn) for turn in said]


def _turn(turn: Turn) -> dict[str, Any]:
    calls = [
        {
            "name": use.name,
            "arguments": shorten(use.arguments, LONGEST_NOTE),
            "result": None if use.result is None else shorten(use.result, LONGEST_NOTE),
            "failed": use.failed,
        }
        for use in turn.uses
    ]
    return {"role": turn.role, "text": shorten(turn.text, LONGEST_TEXT), **({"calls": calls} if calls else {})}

"""How runs end, by their kind, and their exit codes."""

from dataclasses import is_dataclass
from functools import partial

from rich.console import Console

from muster.app import Muster
from muster.app.kinds import app_kind, kind_of, loaded
from muster.app.runs.reports import RunSummary
from muster.app.runs.runs import require_completed
from muster.cli.drive import CallProgress
from muster.cli.outcome import ReportedEnding, RunEnding
from muster.cli.reports import Teller
from muster.domain.canonical import JsonObject
from muster.domain.errors import MusterError, exit_code_of
from muster.domain.kind import WorkKind
from muster.domain.run import Run
from muster.text import typed

COMMANDS = "muster.cli"  # where kinds name the endings of their own


def ending_of(run: Run) -> RunEnding | None:
    """Return how a run ends: as its kind does, or with its report; None when it has none."""
    return ending_of_kind(kind_of(run))


def ending_of_kind(kind: WorkKind) -> RunEnding | None:
    """Return the same of all runs of a kind."""
    return _own_ending(kind) or (None if kind.report is None else _reported(kind))


def teller_of_report(run: Run) -> Teller | None:
    """Return what writes the report of a run for a terminal; None where Markdown does."""
    own = _own_ending(kind_of(run))
    return None if own is None else own.tell_report


def _own_ending(kind: WorkKind) -> RunEnding | None:
    place = app_kind(kind.workload).doors.ending
    own: RunEnding | None = loaded(f"{COMMANDS}.{place}") if place else None
    return own


def _reported(kind: WorkKind) -> RunEnding:
    return ReportedEnding(
        kind=kind,
        progress=lambda muster: CallProgress(),
        report=lambda muster, run: muster.report_of(run),
        view=_summary_view,
        tell=partial(_tell, kind),
        closer="muster report",
        shows_content=False,
    )


def _summary_view(summary: RunSummary) -> JsonObject:
    """Return all that a summary has, if it is a value with fields."""
    told: JsonObject = {"ok": summary.ok, "verdict": summary.verdict}
    if _has_fields(summary):
        told |= typed.to_builtins(summary, str_keys=True)
    return told


def _has_fields(value: object) -> bool:
    return is_dataclass(value)


def _tell(kind: WorkKind, console: Console, summary: RunSummary) -> None:
    console.print(f"{kind.word}: {summary.verdict}", soft_wrap=True, markup=False)


async def exit_code_of_run(muster: Muster, run: Run) -> int:
    """Return the exit code of a run that is over or stands still."""
    try:
        require_completed(run)
    except MusterError as error:
        return exit_code_of(error)
    if run.is_detached:
        return 0
    return 0 if await muster.succeeded(run) else 1

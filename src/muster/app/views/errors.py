"""Why an outcome is not a success, as the error of an envelope: code, message and suggestions."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.domain.batch import Batch, BatchState
from muster.domain.errors import NotFound, needs_higher_budget, state_verb
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run, RunState
from muster.text.words import count

if TYPE_CHECKING:
    from muster.app.pool.task_queries import Task
    from muster.app.project.diagnosis import DoctorReport
    from muster.app.project.validation import Linted, Validated
    from muster.app.runs.batches import Reconciled
    from muster.app.suites.evidence import ArchiveVerification, Rescoring
    from muster.app.suites.values import RunComparison
    from muster.app.verify.request import Prepared
    from muster.app.verify.values import FileSelection, LeftOut

MAX_NAMED = 10
REDACTED = "cannot be scored again, because secrets were removed"

Error = dict[str, Any]


def error(code: str, message: str, suggestions: Sequence[str] = ()) -> Error:
    """Return an error as JSON."""
    return {"code": code, "message": message, "suggestions": list(suggestions)}


def not_passed(verdict: str, suggestions: Sequence[str]) -> Error:
    """Return that a suite run or a verification did not pass."""
    return error("not_passed", verdict, suggestions)


def overdrawn_runs(ended: Sequence[Run]) -> Error | None:
    """Return which of some runs exceeded a budget; None when none did."""
    exceeded = [run.id for run in ended if run.overdraft is not None]
    if not exceeded:
        return None
    message = f"{len(exceeded)} of {len(ended)} runs exceeded a budget: {', '.join(exceeded)}"
    return error("overdraft", message, [f"muster runs show {exceeded[0]}"])


def comparison_error(found: "RunComparison") -> Error | None:
    """Return the verdict of a comparison that is not a success."""
    if found.ok:
        return None
    message = f"{found.verdict}: {found.why}"
    if found.gate == "blind":
        return error("blind", message, ["to accept it all the same: --inconclusive ok"])
    return error(str(found.verdict), message)


def evidence_error(file: Path, found: "ArchiveVerification") -> Error | None:
    """Return what is wrong with an archive."""
    if found.valid:
        return None
    return error("invalid_evidence", f"{file} is not valid: {found.where}: {found.what}")


def rescoring_error(found: "Rescoring") -> Error | None:
    """Return how the results of an archive differ from those that it records."""
    if found.ok:
        return None
    return error("scored_otherwise", rescoring_words(found), rescoring_suggestions(found))


def rescoring_words(found: "Rescoring") -> str:
    """Return what came out the same and what did not, in a sentence."""
    parts = [f"{count(found.same, 'result')} came out the same"]
    if found.different:
        parts.append(f"{found.different:,} did not")
    if found.blurred:
        parts.append(f"{found.blurred:,} {REDACTED}")
    if found.figures:
        parts.append(f"{count(len(found.figures), 'figure')} did not follow from the results")
    if found.missing:
        parts.append(f"{found.missing:,} without a verdict")
    return ", ".join(parts)


def rescoring_suggestions(found: "Rescoring") -> list[str]:
    """Return what to do when only removed secrets make a difference."""
    only_blurred = found.blurred and not found.different and not found.figures
    return ["to accept those differences: --allow-redacted"] if only_blurred and not found.allow_redacted else []


def validation_error(found: "Validated | Linted", missing: Sequence[NotFound] = ()) -> Error | None:
    """Return the first thing that is wrong in some files, and the paths at which there is nothing."""
    if not found.flaws:
        return None
    return error("bad_file", "; ".join([str(found.flaws[0]), *(one.message for one in missing)]))


def lint_error(found: "Linted") -> Error | None:
    """Return the first weak spot of some suites."""
    if not found.findings:
        return None
    return error("lint", f"{len(found.findings)} findings; first: {found.findings[0]}")


def doctor_error(found: "DoctorReport") -> Error | None:
    """Return the first check of a machine that failed."""
    if not found.broken:
        return None
    return error("configuration", found.broken[0].words, found.broken[0].suggestions)


def nothing_to_verify(selection: "FileSelection", prepared: "Prepared") -> Error:
    """Return that there is nothing to verify, and which files are left out."""
    names = [f"left out: {one}" for one in some_left_out(prepared.left_out)]
    message = f"nothing to verify: {why_nothing(selection, prepared)}"
    return error("nothing_to_verify", message, [*names, "add --allow-empty to exit 0 when there is nothing to verify"])


def some_left_out(files: "Sequence[LeftOut]", most: int = MAX_NAMED) -> list[str]:
    """Name some files that are left out, each with why, and count the others."""
    more = [f"and {len(files) - most:,} more"] if len(files) > most else []
    return [*(f"{one.path} ({one.why})" for one in files[:most]), *more]


def why_nothing(selection: "FileSelection", prepared: "Prepared") -> str:
    """Return why there is nothing to verify."""
    if prepared.left_out:
        number = len(prepared.left_out)
        return "the only file is left out" if number == 1 else f"all {number:,} files are left out"
    if selection.changed:
        return f"no file differs from {selection.ref or 'HEAD'}"
    if selection.staged:
        return "no file is staged"
    if selection.pending is not None:
        return f"no marker in {selection.pending}"
    return f"no files in {', '.join(selection.paths)}"


def reconciliation_error(found: "Sequence[Reconciled]") -> Error | None:
    """Return how many batches are still open, and what to do about them."""
    still_open = [one.error for one in found if one.error is not None]
    if not still_open:
        return None
    are = "batch is" if len(still_open) == 1 else "batches are"
    ways = dict.fromkeys(way for one in still_open for way in one.suggestions)
    return error("batch_open", f"{len(still_open)} {are} still open", [*ways])


def batch_error(batch: Batch, summary: str, runs: Sequence[RunId]) -> Error | None:
    """Return that the results of a batch were not collected, and which runs can go on without them."""
    if batch.state is BatchState.COLLECTED:
        return None
    return error(f"batch_{batch.state}", summary, [f"muster runs resume {run}" for run in runs])


def task_error(task: "Task") -> Error | None:
    """Return why a task is not done, of one that failed, was canceled, or cannot be paid for."""
    run = task.run
    if run.overdraft is not None:
        return dict(run.overdraft)
    if run.state not in TERMINAL:
        return error("budget_exhausted", task.refusal, [task.remedy]) if task.refusal else None
    if run.state is RunState.COMPLETED:
        return None
    record = run.error or {}
    message = f"task {task.title} {state_verb(run.state)}: {record.get('message', run.ended_reason)}"
    more = " --budget USD" if needs_higher_budget(run.ended_reason, record) else ""
    ways = [f"muster task retry {task.id}{more}", *record.get("suggestions", ())]
    return error(str(run.ended_reason), message, ways) | {
        name: record[name] for name in ("tool", "log") if record.get(name)
    }


def undone_tasks(tasks: "Sequence[Task]") -> Error | None:
    """Return which of some tasks failed, or were not begun; None when all were done."""
    pending = [task for task in tasks if task.state in ("pending", "running")]
    if not pending or failed_tasks(tasks) is not None:
        return failed_tasks(tasks)
    message = f"{_share(pending, tasks)} {'is' if len(tasks) == 1 else 'are'} not done: {_titles(pending)}"
    return error("tasks_pending", message, ["muster pool start", f"muster task result {pending[0].id}"])


def failed_tasks(tasks: "Sequence[Task]") -> Error | None:
    """Return which of some tasks failed; None when none did."""
    failed = [task for task in tasks if task_error(task) is not None]
    if not failed:
        return None
    message = f"{_share(failed, tasks)} failed: {_titles(failed)}"
    return error("tasks_failed", message, [f"muster task result {failed[0].id}"])


def _share(some: "Sequence[Task]", tasks: "Sequence[Task]") -> str:
    return "the only task" if len(tasks) == 1 else f"{len(some):,} of {len(tasks):,} tasks"


def _titles(tasks: "Sequence[Task]") -> str:
    """Return the ids and names of some tasks, and how many more there are."""
    more = [f"and {len(tasks) - MAX_NAMED:,} more"] if len(tasks) > MAX_NAMED else []
    return ", ".join([*(task.title for task in tasks[:MAX_NAMED]), *more])


def pool_error(tasks: "Sequence[Task]", unpaid: "Sequence[Task]" = ()) -> Error | None:
    """Return which of the tasks that ended in a pool failed, canceled ones left out; else which no budget pays for."""
    failed = failed_tasks([task for task in tasks if task.state != "canceled"])
    if failed is not None or not unpaid:
        return failed
    message = f"not done, since no budget pays for it: {_titles(unpaid)}; {unpaid[0].refusal}"
    return error("budget_exhausted", message, [unpaid[0].remedy])

"""Chains as JSON: progress, plans, and what is wrong with their files."""

from collections.abc import Sequence
from typing import Any

from muster.app.chains.plan import ChainPlan
from muster.app.views.errors import error
from muster.app.views.runs import moment
from muster.app.views.suites import flaw_view, load_view
from muster.domain.errors import MusterError
from muster.domain.money import to_usd
from muster.pool.chains.chain import StepRecord, StepStatus
from muster.pool.chains.progress import ChainProgress, RowProgress
from muster.pool.chains.reading import ChainInspection


def progress_view(found: ChainProgress) -> dict[str, Any]:
    """Return how far a chain is as JSON."""
    number, name = found.current or (None, None)
    run = found.run
    return {
        "id": run.id,
        "name": run.name,
        "chain": found.chain,
        "status": str(run.state),
        "total_steps": found.total,
        "completed_steps": found.completed,
        "current_step": number,
        "current_name": name,
        "partial_output": found.partial_output or None,
        "started_at": moment(run.started_at),
        "ended_at": moment(run.ended_at),
        "spent_usd": to_usd(run.spent.settled),
        "error": None if run.error is None else run.error.get("message"),
        "worktree": found.worktree or None,
        "setup": found.setup or None,
        "branch": found.branch or None,
        "summary": found.summary or None,
        "repository_changes": found.repository.get("repository_changes", []),
        "repository_unknown": found.repository.get("repository_unknown"),
        "steps": [step_view(step) for step in found.steps],
        "rows": [row_view(row) for row in found.rows],
    }


def step_view(step: StepRecord) -> dict[str, Any]:
    """Return one step of a run as JSON."""
    return {
        "name": step.name,
        "status": str(step.status),
        "output": step.output if step.status in (StepStatus.COMPLETED, StepStatus.FAILED) else None,
        "values": dict(step.values),
        "cost_usd": to_usd(step.cost),
        "retries_used": step.retries_used,
        "skipped": step.skipped or None,
        "items": step.items,
        "error": step.error or None,
    }


def row_view(row: RowProgress) -> dict[str, Any]:
    """Return one row of a run as JSON."""
    return {
        "row": row.index + 1,
        "status": str(row.status),
        "output": row.output,
        "branch": row.branch,
        "error": row.error or None,
    }


def chain_plan_view(found: ChainPlan, cap: int | None) -> dict[str, Any]:
    """Return what a chain would do and cost as JSON; with a budget, whether that is enough."""
    return {
        "chain": found.chain.name,
        "rows": found.rows,
        "steps": [
            {
                "name": one.step.name,
                "kind": "command" if one.step.is_command else "prompt",
                "agent": one.step.agent or None,
                "dispatch": None if one.step.is_command else "batch" if one.batch else "live",
                **load_view(one.load),
            }
            for one in found.steps
        ],
        "total": load_view(found.all),
        "budget_usd": None if cap is None else to_usd(cap),
        "fits": None if cap is None else found.all.fits(cap),
    }


def chains_error(errors: Sequence[MusterError]) -> dict[str, Any]:
    """Return which of several chains did not complete, as the error of an envelope."""
    first = errors[0].record()
    suggestions = list(dict.fromkeys(way for one in errors for way in one.suggestions))
    return error(str(first["code"]), "; ".join(one.message for one in errors), suggestions)


def chain_inspection_view(inspection: ChainInspection) -> dict[str, Any]:
    """Return what is wrong in a file with a chain as JSON."""
    found = inspection.chain
    return {
        "file": inspection.file,
        "chain": None if found is None else found.name,
        "steps": [] if found is None else [step.name for step in found.steps],
        "flaws": [flaw_view(flaw) for flaw in inspection.flaws],
    }

"""Plans and files of verifications as JSON."""

from typing import Any

from muster.app.verify.plan import PlannedAgent, VerifyPlan
from muster.app.verify.verifications import Fixed, LeftBehind, Prepared
from muster.app.views.suites import flaw_view, load_view
from muster.domain.money import to_usd
from muster.domain.run import Run
from muster.verify.declaration.declaration import Inspection
from muster.verify.verification import LeftOut


def verify_plan_view(found: VerifyPlan, prepared: Prepared, cap: int | None) -> dict[str, Any]:
    """Return what a verification would do and cost as JSON; with a budget, whether that is enough."""
    return {
        "files": found.files,
        "bytes": found.bytes,
        "limit_bytes": prepared.spec.limits.total_bytes,
        "redacted": found.redacted,
        "left_out": [left_out_view(one) for one in found.left_out],
        "agents_file": prepared.agents_file,
        "waves": list(found.waves),
        "agents": [_part_view(part) for part in found.parts],
        "total": load_view(found.all),
        "budget_usd": None if cap is None else to_usd(cap),
        "fits": None if cap is None else found.all.fits(cap),
    }


def _part_view(part: PlannedAgent) -> dict[str, Any]:
    one = part.verifier
    return {
        "agent": one.name,
        "wave": one.wave,
        "kind": str(one.kind),
        "model": one.model or None,
        "command": list(one.command) or None,
        "dispatch": None if one.command else "batch" if part.batch else "live",
        "files": part.files,
        **load_view(part.load),
    }


def left_out_view(one: LeftOut) -> dict[str, Any]:
    """Return a file that is not verified as JSON."""
    return {"path": one.path, "why": one.why}


def left_behind_view(found: LeftBehind) -> dict[str, Any]:
    """Return the files that a verification wrote as JSON."""
    return {"reports": [str(path) for path in found.reports], "log": str(found.log)}


def fixed_view(before: Run, fixed: Fixed) -> dict[str, Any]:
    """Return what was changed after a verification as JSON."""
    return {
        "changed": list(fixed.changed),
        "left": list(fixed.left),
        "run_before": before.id,
        "cost_before_usd": to_usd(before.spent.settled),
    }


def inspection_view(inspection: Inspection) -> dict[str, Any]:
    """Return what is wrong in a verify.yaml as JSON."""
    found = inspection.declaration
    return {
        "file": inspection.file,
        "agents": [] if found is None else [{"name": agent.name, "wave": agent.wave} for agent in found.agents],
        "flaws": [flaw_view(flaw) for flaw in inspection.flaws],
    }

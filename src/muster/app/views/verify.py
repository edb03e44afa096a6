"""Plans, files and findings of verifications as JSON."""

import json
from typing import Any

from muster.app.verify.plan import PlannedAgent, VerifyPlan
from muster.app.verify.request import AgentWork, ConcludedVerification, Prepared, Repair
from muster.app.verify.values import FindingPage, VerifyReport
from muster.app.views.suites import load_view
from muster.domain.money import to_usd
from muster.text import typed
from muster.text.secrets.redaction import redact
from muster.verify.reports.json_report import agent_json, finding_json, report_json, share_json, wave_json
from muster.verify.reports.located import LocatedFinding
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


async def concluded_view(found: ConcludedVerification) -> dict[str, Any]:
    """Return a verification that was summed up as JSON: its report, and the files that it wrote."""
    summary, left = found.report.summary, found.left
    return {
        "verified": len(summary.files) - len(summary.unseen),
        **json.loads(await found.report.text("json")),
        "reports": [str(path) for path in left.reports],
        "log": str(left.log),
        **({} if found.repair is None else {"fix": _repair_view(found.repair)}),
    }


def _repair_view(repair: Repair) -> dict[str, Any]:
    return {
        "changed": [redact(path).text for path in repair.fixed.changed],
        "left": list(repair.fixed.left),
        "run_before": repair.before.id,
        "cost_before_usd": to_usd(repair.before.spent.settled),
        **({} if repair.work is None else _work_view(repair.work)),
        **({"obstacle": redact(repair.obstacle).text} if repair.obstacle else {}),
    }


def _work_view(work: AgentWork) -> dict[str, Any]:
    return {
        "agent": work.agent,
        "task": work.task,
        "cost_usd": to_usd(work.cost),
        "branch": work.branch,
        "summary": work.summary or None,
        "diff": work.diff or None,
        "elsewhere": work.elsewhere or None,
        "apart": work.apart or None,
        "repository_changes": work.repository.get("repository_changes") or [],
        "repository_unknown": work.repository.get("repository_unknown"),
    }


def nothing_view(why: str, prepared: Prepared) -> dict[str, Any]:
    """Return why there was nothing to verify as JSON."""
    return {"verified": 0, "why": why, "left_out": [left_out_view(one) for one in prepared.left_out]}


def verify_status_view(report: VerifyReport) -> dict[str, Any]:
    """Return how a verification stands as JSON: everything but its findings."""
    waves = [
        wave_json(wave)
        | {
            "batches": [share_json(one) for one in report.batches.get(wave.wave, ())],
            "agents": [agent_json(agent) for agent in wave.agents],
        }
        for wave in report.waves
    ]
    return report_json(report) | {"waves": waves}


def findings_view(page: FindingPage) -> dict[str, Any]:
    """Return a page of findings with their code as JSON."""
    return {"findings": [_located_view(one) for one in page.findings], "total": page.total, "next": page.next}


def _located_view(one: LocatedFinding) -> dict[str, Any]:
    return finding_json(one.finding) | {
        "by": list(one.by),
        "origins": typed.to_builtins(one.origins),
        "rejected": one.rejected or None,
        "code": None if one.code is None else {"first": one.code.first, "lines": list(one.code.lines)},
    }

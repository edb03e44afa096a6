"""The report as JSON: one object in plain ASCII; findings are written one by one, each on a line of its own.

schema, ok, verdict, flaws, notes       what this is, whether it is a success, what speaks against it, what to know
partial, only_waves, only_agents        whether only a part was to be verified, and which
run, cost                               facts of the run; its price, and beside it that of live calls
counts                                  of the findings over all waves, with `total` and `rejected`
not_started, absent                     waves and agents of which there is no report
files, unseen, left_out, redactions     what was verified, seen by nobody, left out, and how many secrets taken out
cleared                                 markers that were removed
waves                                   each with `agents`: endings, scores, thresholds, and the findings of each
findings                                merged over all waves, the worst first, with `by`: who found it
rejected                                findings that cannot be, with `agent` and `why`

Names stay as long as the schema keeps its number; new ones may come.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from muster.domain.batch import BatchShare
from muster.domain.money import to_usd
from muster.text import typed
from muster.text.thresholds import ThresholdResult
from muster.text.words import moment
from muster.verify.findings.finding import Counts, Finding, Merged
from muster.verify.journal import AgentReport, WaveReport
from muster.verify.reports.run import WavesRun
from muster.verify.reports.summary import Cost, Facts, RejectedBy, VerifyReport


async def write_json(waves: WavesRun, report: VerifyReport, out: TextIO) -> None:
    """Write the whole report."""
    out.write(json.dumps(report_json(report), indent=2).removesuffix("\n}"))
    _rows(out, "waves", (_wave(wave, report.batches.get(wave.wave, ())) for wave in report.waves))
    _rows(out, "findings", (merged_json(one) for one in report.merged))
    _rows(out, "rejected", (rejected_json(one) for one in report.rejected))
    out.write("\n}\n")


def _rows(out: TextIO, name: str, values: Iterable[dict[str, Any]]) -> None:
    out.write(f',\n  "{name}": [')
    between = "\n    "
    for value in values:
        out.write(between + json.dumps(value))
        between = ",\n    "
    out.write("\n  ]")


def _wave(wave: WaveReport, batches: Sequence[BatchShare]) -> dict[str, Any]:
    agents = [
        agent_json(agent) | {"findings": [finding_json(finding) for finding in agent.findings]} for agent in wave.agents
    ]
    return wave_json(wave) | {"batches": [share_json(one) for one in batches], "agents": agents}


SCHEMA = "muster.verify-report/1"


def report_json(report: VerifyReport) -> dict[str, Any]:
    """Return everything but the findings, the waves and the rejected ones."""
    return {
        "schema": SCHEMA,
        "ok": report.ok,
        "verdict": report.verdict,
        "flaws": list(report.flaws()),
        "notes": list(report.notes()),
        "partial": report.partial,
        "only_waves": list(report.only_waves),
        "only_agents": list(report.only_agents),
        "run": run_json(report.run),
        "cost": cost_json(report.run.cost),
        "counts": counts_json(report.counts),
        "not_started": list(report.not_started),
        "absent": [{"agent": one.agent, "wave": one.wave} for one in report.absent],
        "files": typed.to_builtins(report.files),
        "unseen": list(report.unseen),
        "left_out": typed.to_builtins(report.left_out),
        "redactions": report.redactions,
        "cleared": list(report.cleared),
    }


def run_json(run: Facts) -> dict[str, Any]:
    """Return the facts of the run."""
    return {
        "id": run.id,
        "name": run.name,
        "title": run.title,
        "state": str(run.state),
        "ended_reason": run.ended_reason,
        "error": run.error or None,
        "root": run.root,
        "dispatch": run.dispatch,
        "created_at": moment(run.created_at),
        "started_at": moment(run.started_at),
        "ended_at": moment(run.ended_at),
        "seconds": run.seconds,
    }


def cost_json(cost: Cost) -> dict[str, Any]:
    """Return the money: what it cost, and beside it what it would have cost live."""
    return {
        "cost_usd": to_usd(cost.known),
        "billed_usd": to_usd(cost.billed),
        "imputed_usd": to_usd(cost.imputed),
        "uncertain_usd": to_usd(cost.uncertain),
        "live_usd": to_usd(cost.live),
        "batches": cost.batches,
        "batch_usd": to_usd(cost.batch),
        "batch_live_usd": to_usd(cost.batch_live),
        "parked_calls": cost.parked,
    }


def counts_json(counts: Counts) -> dict[str, int]:
    """Return how many findings there are."""
    return {"total": counts.total, **typed.to_builtins(counts)}


def wave_json(wave: WaveReport) -> dict[str, Any]:
    """Return what a wave came to, without its agents."""
    return {
        "wave": wave.wave,
        "passed": wave.passed,
        "why": wave.why,
        "started_at": moment(wave.started_at),
        "ended_at": moment(wave.ended_at),
        "seconds": max(0.0, wave.ended_at - wave.started_at),
        "counts": counts_json(wave.counts),
        "thresholds": _thresholds(wave.thresholds),
    }


def share_json(share: BatchShare) -> dict[str, Any]:
    """Return what the calls of a wave had in one batch."""
    return {
        "id": str(share.batch),
        "provider_id": share.provider_id,
        "calls": share.calls,
        "parked_calls": share.parked,
        "cost_usd": to_usd(share.cost),
        "live_usd": to_usd(share.live_cost),
    }


def agent_json(agent: AgentReport) -> dict[str, Any]:
    """Return what an agent came to, without its findings."""
    return {
        "agent": agent.agent,
        "wave": agent.wave,
        "kind": str(agent.kind),
        "ending": str(agent.ending),
        "why": agent.why,
        "counts": counts_json(agent.counts),
        "score": agent.score,
        "parts": dict(agent.parts),
        "coverage": agent.coverage,
        "thresholds": _thresholds(agent.thresholds),
        "chunks": agent.chunks,
        "answered": agent.answered,
        "repaired": agent.repaired,
        "failures": list(agent.failures),
        "codes": dict(agent.codes),
        "model": agent.model or None,
        "seconds": agent.seconds,
        "cost_usd": to_usd(agent.cost),
        "keys": list(agent.keys),
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """Return a finding."""
    found: dict[str, Any] = typed.to_builtins(finding)
    return found


def merged_json(merged: Merged) -> dict[str, Any]:
    """Return a finding with who found it."""
    origins: list[dict[str, Any]] = typed.to_builtins(merged.origins)
    return finding_json(merged.finding) | {"by": list(merged.by), "origins": origins}


def rejected_json(one: RejectedBy) -> dict[str, Any]:
    """Return a finding that cannot be, with why and who came up with it."""
    return finding_json(one.rejected.finding) | {"why": one.rejected.why, "agent": one.agent, "wave": one.wave}


def _thresholds(thresholds: Sequence[ThresholdResult]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = typed.to_builtins(thresholds)
    return found

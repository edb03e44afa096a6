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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TextIO, TypeVar

from muster.domain.batch import BatchShare
from muster.domain.money import to_usd
from muster.domain.run import RunState
from muster.text.thresholds import ThresholdResult
from muster.text.views import View, asdict
from muster.text.words import moment
from muster.verify.declaration.verification import Kind, LeftOut
from muster.verify.findings.finding import Counts, Finding, FindingOrigin, Merged, Severity
from muster.verify.findings.journal import AgentReport, Ending, WaveReport
from muster.verify.reports.run import WavesRun
from muster.verify.reports.summary import Cost, Facts, RejectedBy, VerifyReport
from muster.verify.sources.source import FileInfo

SCHEMA = "muster.verify-report/1"


class VerificationFactsView(View):
    """The facts of the run."""

    id: str
    name: str | None
    title: str
    state: RunState
    ended_reason: str | None
    error: str | None
    root: str
    dispatch: str
    created_at: str | None
    started_at: str | None
    ended_at: str | None
    seconds: float | None


class VerificationCostView(View):
    """What it cost, and beside it what it would have cost live."""

    cost_usd: float
    billed_usd: float
    imputed_usd: float
    uncertain_usd: float
    live_usd: float
    batches: int
    batch_usd: float
    batch_live_usd: float
    parked_calls: int


class FindingCountsView(View):
    """How many findings there are."""

    total: int
    critical: int
    high: int
    medium: int
    low: int
    rejected: int


class AbsentAgentView(View):
    """An agent of which there is no report."""

    agent: str
    wave: int


class VerifyReportView(View):
    """Everything but the findings, the waves and the rejected ones."""

    schema: str
    ok: bool
    verdict: str
    flaws: Sequence[str]
    notes: Sequence[str]
    partial: bool
    only_waves: Sequence[int]
    only_agents: Sequence[str]
    run: VerificationFactsView
    cost: VerificationCostView
    counts: FindingCountsView
    not_started: Sequence[int]
    absent: Sequence[AbsentAgentView]
    files: Sequence[FileInfo]
    unseen: Sequence[str]
    left_out: Sequence[LeftOut]
    redactions: int
    cleared: Sequence[str]


class WaveView(View):
    """What a wave came to, without its agents."""

    wave: int
    passed: bool
    why: str
    started_at: str | None
    ended_at: str | None
    seconds: float
    counts: FindingCountsView
    thresholds: Sequence[ThresholdResult]


class BatchShareView(View):
    """What the calls of a wave had in one batch."""

    id: str
    provider_id: str | None
    calls: int
    parked_calls: int
    cost_usd: float
    live_usd: float


class AgentReportView(View):
    """What an agent came to, without its findings."""

    agent: str
    wave: int
    kind: Kind
    ending: Ending
    why: str
    counts: FindingCountsView
    score: float | None
    parts: Mapping[str, float]
    coverage: float | None
    thresholds: Sequence[ThresholdResult]
    chunks: int
    answered: int
    repaired: int
    failures: Sequence[str]
    codes: Mapping[str, int]
    model: str | None
    seconds: float
    cost_usd: float
    keys: Sequence[str]


class SingleFindingView(View):
    """One thing that is wrong, at lines that exist."""

    file: str
    line: int
    end_line: int
    severity: Severity
    finding: str
    fix: str
    cwe: str
    confidence: float | None
    rule: str
    replacement: str | None


class MergedFindingView(SingleFindingView):
    """A finding with who found it, and what each of them said if there are several."""

    by: Sequence[str]
    origins: Sequence[FindingOrigin]


class RejectedFindingView(SingleFindingView):
    """A finding that cannot be, with why and who came up with it."""

    why: str
    agent: str
    wave: int


class AgentFindingsView(AgentReportView):
    """What an agent came to, with its findings."""

    findings: Sequence[SingleFindingView]


class ReportedWaveView(WaveView):
    """What a wave came to, with its batches and what its agents found."""

    batches: Sequence[BatchShareView]
    agents: Sequence[AgentFindingsView]


V = TypeVar("V", bound=SingleFindingView)


async def write_json(waves: WavesRun, report: VerifyReport, out: TextIO) -> None:
    """Write the whole report."""
    out.write(json.dumps(verify_report_view(report).builtins(), indent=2).removesuffix("\n}"))
    _rows(out, "waves", (_reported_wave(wave, report.batches.get(wave.wave, ())) for wave in report.waves))
    _rows(out, "findings", (_merged_view(merged) for merged in report.merged))
    _rows(out, "rejected", (_rejected_view(rejected) for rejected in report.rejected))
    out.write("\n}\n")


def _rows(out: TextIO, name: str, views: Iterable[View]) -> None:
    out.write(f',\n  "{name}": [')
    between = "\n    "
    for view in views:
        out.write(between + json.dumps(view.builtins()))
        between = ",\n    "
    out.write("\n  ]")


def _reported_wave(wave: WaveReport, batches: Sequence[BatchShare]) -> ReportedWaveView:
    return ReportedWaveView(
        **asdict(wave_view(wave)),
        batches=[share_view(share) for share in batches],
        agents=[
            AgentFindingsView(
                **asdict(agent_report_view(agent)),
                findings=[finding_as(SingleFindingView, finding) for finding in agent.findings],
            )
            for agent in wave.agents
        ],
    )


def verify_report_view(report: VerifyReport) -> VerifyReportView:
    """Return everything but the findings, the waves and the rejected ones."""
    return VerifyReportView(
        schema=SCHEMA,
        ok=report.ok,
        verdict=report.verdict,
        flaws=list(report.flaws()),
        notes=list(report.notes()),
        partial=report.partial,
        only_waves=report.only_waves,
        only_agents=report.only_agents,
        run=facts_view(report.run),
        cost=verification_cost_view(report.run.cost),
        counts=counts_view(report.counts),
        not_started=report.not_started,
        absent=[AbsentAgentView(agent=absent.agent, wave=absent.wave) for absent in report.absent],
        files=report.files,
        unseen=report.unseen,
        left_out=report.left_out,
        redactions=report.redactions,
        cleared=report.cleared,
    )


def facts_view(run: Facts) -> VerificationFactsView:
    """Return the facts of the run."""
    return VerificationFactsView(
        id=run.id,
        name=run.name,
        title=run.title,
        state=run.state,
        ended_reason=run.ended_reason,
        error=run.error or None,
        root=run.root,
        dispatch=run.dispatch,
        created_at=moment(run.created_at),
        started_at=moment(run.started_at),
        ended_at=moment(run.ended_at),
        seconds=run.seconds,
    )


def verification_cost_view(cost: Cost) -> VerificationCostView:
    """Return what it cost, and beside it what it would have cost live."""
    return VerificationCostView(
        cost_usd=to_usd(cost.known),
        billed_usd=to_usd(cost.billed),
        imputed_usd=to_usd(cost.imputed),
        uncertain_usd=to_usd(cost.uncertain),
        live_usd=to_usd(cost.live),
        batches=cost.batches,
        batch_usd=to_usd(cost.batch),
        batch_live_usd=to_usd(cost.batch_live),
        parked_calls=cost.parked,
    )


def counts_view(counts: Counts) -> FindingCountsView:
    """Return how many findings there are."""
    return FindingCountsView(
        total=counts.total,
        critical=counts.critical,
        high=counts.high,
        medium=counts.medium,
        low=counts.low,
        rejected=counts.rejected,
    )


def wave_view(wave: WaveReport) -> WaveView:
    """Return what a wave came to, without its agents."""
    return WaveView(
        wave=wave.wave,
        passed=wave.passed,
        why=wave.why,
        started_at=moment(wave.started_at),
        ended_at=moment(wave.ended_at),
        seconds=max(0.0, wave.ended_at - wave.started_at),
        counts=counts_view(wave.counts),
        thresholds=wave.thresholds,
    )


def share_view(share: BatchShare) -> BatchShareView:
    """Return what the calls of a wave had in one batch."""
    return BatchShareView(
        id=str(share.batch),
        provider_id=share.provider_id,
        calls=share.calls,
        parked_calls=share.parked,
        cost_usd=to_usd(share.cost),
        live_usd=to_usd(share.live_cost),
    )


def agent_report_view(agent: AgentReport) -> AgentReportView:
    """Return what an agent came to, without its findings."""
    return AgentReportView(
        agent=agent.agent,
        wave=agent.wave,
        kind=agent.kind,
        ending=agent.ending,
        why=agent.why,
        counts=counts_view(agent.counts),
        score=agent.score,
        parts=agent.parts,
        coverage=agent.coverage,
        thresholds=agent.thresholds,
        chunks=agent.chunks,
        answered=agent.answered,
        repaired=agent.repaired,
        failures=agent.failures,
        codes=agent.codes,
        model=agent.model or None,
        seconds=agent.seconds,
        cost_usd=to_usd(agent.cost),
        keys=agent.keys,
    )


def finding_as(kind: type[V], finding: Finding, **more: Any) -> V:
    """Return a finding as a view that tells more of it."""
    return kind(**{field.name: getattr(finding, field.name) for field in fields(finding)}, **more)


def _merged_view(merged: Merged) -> MergedFindingView:
    return finding_as(MergedFindingView, merged.finding, by=merged.by, origins=merged.origins)


def _rejected_view(one: RejectedBy) -> RejectedFindingView:
    rejected = one.rejected
    return finding_as(RejectedFindingView, rejected.finding, why=rejected.why, agent=one.agent, wave=one.wave)

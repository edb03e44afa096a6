"""Plans, files and findings of verifications."""

import json
from collections.abc import Sequence
from typing import Any

from muster.app.verify.plan import PlannedAgent, VerifyPlan
from muster.app.verify.request import AgentWork, ConcludedVerification, Prepared, Repair
from muster.app.verify.values import FindingPage, VerifyReport
from muster.app.views.plans import LoadView, load_view
from muster.domain.canonical import Json
from muster.domain.dispatch import Mode
from muster.domain.money import to_usd
from muster.text.secrets.redaction import redact
from muster.text.views import Document, View, asdict, plain
from muster.verify.declaration.verification import LeftOut
from muster.verify.findings.finding import FindingOrigin
from muster.verify.reports.json_report import (
    AgentReportView,
    BatchShareView,
    SingleFindingView,
    VerifyReportView,
    WaveView,
    agent_report_view,
    finding_as,
    share_view,
    verify_report_view,
    wave_view,
)
from muster.verify.reports.located import LocatedFinding


class LeftOutView(View):
    """A file that is not verified."""

    path: str
    why: str


class PlannedAgentView(LoadView):
    """What a verification agent would do and cost."""

    agent: str
    wave: int
    kind: str
    model: str | None
    command: Sequence[str] | None
    dispatch: Mode | None
    files: int


class VerifyPlanView(View):
    """What a verification would do and cost; with a budget, whether that is enough."""

    files: int
    bytes: int
    limit_bytes: int
    redacted: Json
    left_out: Sequence[LeftOutView]
    agents_file: Json
    waves: Sequence[int]
    agents: Sequence[PlannedAgentView]
    total: LoadView
    budget_usd: float | None
    fits: bool | None


class AgentWorkView(View):
    """What an agent did to mend findings."""

    agent: str
    task: str
    cost_usd: float
    branch: str | None
    summary: str | None
    diff: str | None
    elsewhere: str | None
    apart: str | None
    repository_changes: Sequence[Any]
    repository_unknown: str | None


class NothingView(View):
    """Why there was nothing to verify."""

    verified: int
    why: str
    left_out: Sequence[LeftOutView]


class CodeView(View):
    """Some lines of a file as it was verified."""

    first: int
    lines: Sequence[str]


class FindingView(SingleFindingView):
    """A finding with who found it, and the lines around it; with why it cannot be, if it does not count."""

    by: Sequence[str]
    origins: Sequence[FindingOrigin]
    rejected: str | None
    code: CodeView | None


class WaveStatusView(WaveView):
    """What a wave came to, with its batches and agents."""

    batches: Sequence[BatchShareView]
    agents: Sequence[AgentReportView]


class VerifyStatusView(VerifyReportView):
    """How a verification stands: its verdict, waves, agents and cost, without the findings."""

    waves: Sequence[WaveStatusView]


class FindingPageView(View):
    """A page of findings with their code."""

    findings: Sequence[FindingView]
    total: int
    next: str | None


def verify_plan_view(plan: VerifyPlan, prepared: Prepared, cap: int | None) -> VerifyPlanView:
    """Return what a verification would do and cost."""
    return VerifyPlanView(
        files=plan.files,
        bytes=plan.bytes,
        limit_bytes=prepared.spec.limits.total_bytes,
        redacted=plan.redacted,
        left_out=[left_out_view(file) for file in plan.left_out],
        agents_file=prepared.agents_file,
        waves=plan.waves,
        agents=[_part_view(part) for part in plan.parts],
        total=load_view(plan.all),
        budget_usd=None if cap is None else to_usd(cap),
        fits=None if cap is None else plan.all.fits(cap),
    )


def _part_view(part: PlannedAgent) -> PlannedAgentView:
    verifier = part.verifier
    return PlannedAgentView(
        **asdict(load_view(part.load)),
        agent=verifier.name,
        wave=verifier.wave,
        kind=verifier.kind,
        model=verifier.model or None,
        command=verifier.command or None,
        dispatch=part.mode,
        files=part.files,
    )


def left_out_view(file: LeftOut) -> LeftOutView:
    """Return a file that is not verified."""
    return LeftOutView(path=file.path, why=file.why)


async def concluded_view(concluded: ConcludedVerification) -> Document:
    """Return a verification that was summed up as JSON: its report, and the files that it wrote."""
    summary, left = concluded.report.summary, concluded.left
    return {
        "verified": len(summary.files) - len(summary.unseen),
        **json.loads(await concluded.report.text("json")),
        "reports": [str(path) for path in left.reports],
        "log": str(left.log),
        **({} if concluded.repair is None else {"fix": _repair_view(concluded.repair)}),
    }


def _repair_view(repair: Repair) -> Document:
    return {
        "changed": [redact(path).text for path in repair.fixed.changed],
        "left": list(repair.fixed.left),
        "run_before": repair.before.id,
        "cost_before_usd": to_usd(repair.before.spent.settled),
        **({} if repair.work is None else plain(_work_view(repair.work))),
        **({"obstacle": redact(repair.obstacle).text} if repair.obstacle else {}),
    }


def _work_view(work: AgentWork) -> AgentWorkView:
    return AgentWorkView(
        agent=work.agent,
        task=work.task,
        cost_usd=to_usd(work.cost),
        branch=work.branch,
        summary=work.summary or None,
        diff=work.diff or None,
        elsewhere=work.elsewhere or None,
        apart=work.apart or None,
        repository_changes=work.repository.get("repository_changes") or [],
        repository_unknown=work.repository.get("repository_unknown"),
    )


def nothing_view(why: str, prepared: Prepared) -> NothingView:
    """Return why there was nothing to verify."""
    return NothingView(verified=0, why=why, left_out=[left_out_view(file) for file in prepared.left_out])


def verify_status_view(report: VerifyReport) -> VerifyStatusView:
    """Return how a verification stands: everything but its findings."""
    waves = [
        WaveStatusView(
            **asdict(wave_view(wave)),
            batches=[share_view(share) for share in report.batches.get(wave.wave, ())],
            agents=[agent_report_view(agent) for agent in wave.agents],
        )
        for wave in report.waves
    ]
    return VerifyStatusView(**asdict(verify_report_view(report)), waves=waves)


def findings_view(page: FindingPage) -> FindingPageView:
    """Return a page of findings with their code."""
    return FindingPageView(
        findings=[_located_view(located) for located in page.findings], total=page.total, next=page.next
    )


def _located_view(located: LocatedFinding) -> FindingView:
    code = located.code
    return finding_as(
        FindingView,
        located.finding,
        by=located.by,
        origins=located.origins,
        rejected=located.rejected or None,
        code=None if code is None else CodeView(first=code.first, lines=code.lines),
    )

"""Verifications of the project's files, and figures over them."""

from typing import Annotated

from fastapi import APIRouter, Query

from muster.api.dependencies import Opened, PageLimit, needs
from muster.api.json_route import JsonRoute
from muster.app.kinds import VERIFICATION
from muster.app.verify.values import Severity, VerifyMetricsView, verify_metrics_view
from muster.app.views.runs import VerificationsView, run_view
from muster.app.views.verify import FindingPageView, VerifyStatusView, findings_view, verify_status_view

router = APIRouter(prefix="/api/verify", tags=["verify"], route_class=JsonRoute)


@router.get("", dependencies=[needs("read")])
async def list_verifications(muster: Opened, limit: PageLimit = 20) -> VerificationsView:
    """Return the newest verifications."""
    found = await muster.runs.page(workloads=(VERIFICATION.workload,), roots=True, limit=limit)
    return VerificationsView(verifications=[run_view(run) for run in found])


@router.get("/metrics", dependencies=[needs("admin")])
async def verify_metrics(muster: Opened, since: Annotated[float, Query(ge=0, le=1e11)] = 0.0) -> VerifyMetricsView:
    """Return figures over all verifications since a time in seconds since 1970."""
    return verify_metrics_view(await muster.verify.metrics(since))


@router.get("/{run_id}/status", dependencies=[needs("read")])
async def verify_status(muster: Opened, run_id: str) -> VerifyStatusView:
    """Return how a verification stands: its verdict, waves, agents and cost, without the findings."""
    return verify_status_view(await muster.verify.report(await muster.verify.find(run_id)))


@router.get("/{run_id}/findings", dependencies=[needs("read")])
async def list_findings(
    muster: Opened,
    run_id: str,
    severity: Severity | None = None,
    rejected: Annotated[bool, Query(description="Those that cannot be, instead of those that count.")] = False,
    after: Annotated[str | None, Query(max_length=5000, description="`next` of the page before.")] = None,
    limit: PageLimit = 50,
) -> FindingPageView:
    """Return a page of findings, the worst files first, each with the lines around it as they were verified."""
    found = await muster.verify.findings(run_id, severity=severity, rejected=rejected, after=after, limit=limit)
    return findings_view(found)

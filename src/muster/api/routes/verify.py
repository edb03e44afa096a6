"""Verifications of the project's files, and figures over them."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response

from muster.api.dependencies import Opened, PageLimit, Starter, needs
from muster.api.forms import started_by_form
from muster.api.json_route import JsonRoute
from muster.api.orders import ordered
from muster.app.kinds import VERIFICATION
from muster.app.serving.order_models import OrderBody
from muster.app.serving.verifications import submit_verification
from muster.app.verify.values import Severity, VerifyMetricsView, verify_metrics_view
from muster.app.views.runs import RunView, VerificationsView, run_view
from muster.app.views.verify import FindingPageView, VerifyStatusView, findings_view, verify_status_view
from muster.verify.order import VerificationOrder

router = APIRouter(prefix="/api/verify", tags=["verify"], route_class=JsonRoute)
VerifyBody = Annotated[OrderBody[VerificationOrder], ordered(VerificationOrder, name="VerifyBody")]


@router.get("", dependencies=[needs("read")])
async def list_verifications(muster: Opened, limit: PageLimit = 20) -> VerificationsView:
    """Return the newest verifications."""
    found = await muster.runs.page(workloads=(VERIFICATION.workload,), roots=True, limit=limit)
    return VerificationsView(verifications=[run_view(run) for run in found])


@router.post("", dependencies=[needs("start")], status_code=202, openapi_extra=started_by_form(VERIFICATION))
async def start_verification(starter: Starter, response: Response, body: VerifyBody) -> RunView:
    """Verify the files of the project that have changed since a commit, are staged, or are marked as pending."""

    begin = partial(submit_verification, order=body.order)
    return run_view(await starter.start(response, "start verification", begin, body))


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

"""Whether the server is up, its metrics, and what users did."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse

from muster.api.dependencies import Opened, PageLimit, Server, needs
from muster.api.json_route import JsonRoute
from muster.app.views.service import AuditPageView, HealthView, audit_page_view, health_view

router = APIRouter(tags=["server"], route_class=JsonRoute)
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/healthz")
async def healthz(muster: Server) -> HealthView:
    """Return that the server is up and its store can be written to; 503 when it cannot.

    `attention` while batches do not get on, with what to do. With REDIS_URL `driven_here` are the queues whose runs
    this server drives itself, since no worker takes them.
    """
    await muster.store.require_writable()
    return health_view(muster.driven_here, await muster.batches.stalled())


@router.get("/metrics", dependencies=[needs("read")], response_class=PlainTextResponse)
async def metrics(muster: Server) -> PlainTextResponse:
    """Return sums over all runs, of all users, in the text format of Prometheus."""
    return PlainTextResponse(await muster.metrics(sse_watchers=muster.runs.watchers), media_type=PROMETHEUS)


@router.get("/api/audit", dependencies=[needs("admin")])
async def list_audit(
    muster: Opened, before: Annotated[int | None, Query(ge=0, le=2**62)] = None, limit: PageLimit = 100
) -> AuditPageView:
    """Return what users started, reviewed and canceled, the newest first."""
    return audit_page_view(await muster.audit.list(before=before, limit=limit), limit)

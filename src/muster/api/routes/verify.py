"""Verifications of the project's files, and figures over them."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from muster.api.bodies import VerifyBody
from muster.api.dependencies import Opened, PageLimit, Starter, needs
from muster.api.json_route import JsonRoute
from muster.app import Muster
from muster.app.runs.handle import RunHandle
from muster.app.verify.request import VerifyChoice, VerifyRequest
from muster.app.verify.values import FileSelection, Severity, metrics_json
from muster.app.views.errors import why_nothing
from muster.app.views.runs import run_view
from muster.app.views.verify import findings_view, verify_status_view
from muster.domain.errors import BadArgument, Conflict

router = APIRouter(prefix="/api/verify", tags=["verify"], route_class=JsonRoute)
WORKLOAD = "waves"


@router.get("", dependencies=[needs("read")])
async def list_verifications(muster: Opened, limit: PageLimit = 20) -> dict[str, Any]:
    """Return the newest verifications."""
    found = await muster.runs.page(workloads=(WORKLOAD,), roots=True, limit=limit)
    return {"verifications": [run_view(run) for run in found]}


@router.post("", dependencies=[needs("start")], status_code=202)
async def start_verification(starter: Starter, response: Response, body: VerifyBody) -> dict[str, Any]:
    """Verify the files of the project that have changed since a commit, are staged, or are marked as pending."""

    async def begin(muster: Muster) -> RunHandle:
        muster.library.require_agents([body.model])
        selection = chosen_files(muster, body)
        started = await muster.verify.begin(
            VerifyRequest(
                folder=muster.settings.folder,
                selection=selection,
                choice=VerifyChoice(
                    model=body.model,
                    agents=tuple(body.agents),
                    waves=tuple(body.waves),
                    keep_going=body.keep_going,
                    live=body.dispatch == "live",
                    cache=body.cache,
                ),
                options=muster.runs.options(**body.options()),
                queued=True,
            )
        )
        if started.handle is None:
            raise Conflict(why_nothing(selection, started.prepared))
        return started.handle

    return run_view(await starter.start(response, "start verification", begin, body))


def chosen_files(muster: Muster, body: VerifyBody) -> FileSelection:
    """Return the selection of files; a request names no paths."""
    if body.ref is not None and body.files != "changed":
        raise BadArgument("is what changed files are compared with", argument="ref")
    return FileSelection(
        changed=body.files == "changed",
        ref=body.ref,
        staged=body.files == "staged",
        pending=muster.settings.verify.pending if body.files == "pending" else None,
    )


@router.get("/metrics", dependencies=[needs("admin")])
async def verify_metrics(muster: Opened, since: Annotated[float, Query(ge=0, le=1e11)] = 0.0) -> dict[str, Any]:
    """Return figures over all verifications since a time in seconds since 1970."""
    return metrics_json(await muster.verify.metrics(since))


@router.get("/{run_id}/status", dependencies=[needs("read")])
async def verify_status(muster: Opened, run_id: str) -> dict[str, Any]:
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
) -> dict[str, Any]:
    """Return a page of findings, the worst files first, each with the lines around it as they were verified."""
    found = await muster.verify.findings(run_id, severity=severity, rejected=rejected, after=after, limit=limit)
    return findings_view(found)

"""Councils: started, followed, told something and stopped."""

from fastapi import APIRouter

from muster.api.bodies import TextBody
from muster.api.dependencies import Audit, Opened, PageLimit, needs
from muster.api.json_route import JsonRoute
from muster.app.councils.councils import CouncilView
from muster.app.kinds import COUNCIL
from muster.app.views.councils import SentSignalView, shared_council_view, signal_view
from muster.app.views.runs import CouncilsView, run_view

router = APIRouter(prefix="/api/councils", tags=["councils"], route_class=JsonRoute)
READ, START = [needs("read")], [needs("start")]


@router.get("", dependencies=READ)
async def list_councils(muster: Opened, limit: PageLimit = 20) -> CouncilsView:
    """Return the newest councils."""
    found = await muster.runs.page(workloads=(COUNCIL.workload,), roots=True, limit=limit)
    return CouncilsView(councils=[run_view(run) for run in found])


@router.get("/{run_id}/trace", dependencies=READ)
async def trace(muster: Opened, run_id: str) -> CouncilView:
    """Return what happened in a council, round by round; with persons as members, only when it has ended."""
    found = await muster.councils.trace(run_id)
    return shared_council_view(found, muster.councils.people_to_ask(found.run))


@router.post("/{run_id}/inject", dependencies=[needs("review")])
async def inject(muster: Opened, audit: Audit, run_id: str, body: TextBody) -> SentSignalView:
    """Tell all members something, from their next phase on."""
    run = await muster.councils.find(run_id)
    async with audit.action("inject", run.id):
        sent = await muster.councils.inject(run.id, body.text)
    return signal_view(sent)


@router.post("/{run_id}/stop", dependencies=START)
async def stop(muster: Opened, audit: Audit, run_id: str) -> SentSignalView:
    """End a council with the best proposal so far."""
    run = await muster.councils.find(run_id)
    async with audit.action("stop", run.id):
        sent = await muster.councils.stop(run.id)
    return signal_view(sent)

"""Councils: started, followed, told something and stopped."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Response

from muster.api.bodies import TextBody
from muster.api.dependencies import Audit, Opened, PageLimit, Starter, needs
from muster.api.forms import started_by_form
from muster.api.json_route import JsonRoute
from muster.api.orders import ordered
from muster.app.councils.councils import CouncilView
from muster.app.kinds import COUNCIL
from muster.app.serving.councils import submit_council
from muster.app.serving.order_models import OrderBody
from muster.app.views.councils import SentSignalView, shared_council_view, signal_view
from muster.app.views.runs import CouncilsView, RunView, run_view
from muster.councils.order import CouncilOrder

router = APIRouter(prefix="/api/councils", tags=["councils"], route_class=JsonRoute)
READ, START = [needs("read")], [needs("start")]
EXAMPLE = {"question": "Which bridge first?", "agents": ["sim/echo", "sim/slow"], "rounds": 1}
CouncilBody = Annotated[OrderBody[CouncilOrder], ordered(CouncilOrder, name="CouncilBody", **EXAMPLE)]


@router.get("", dependencies=READ)
async def list_councils(muster: Opened, limit: PageLimit = 20) -> CouncilsView:
    """Return the newest councils."""
    found = await muster.runs.page(workloads=(COUNCIL.workload,), roots=True, limit=limit)
    return CouncilsView(councils=[run_view(run) for run in found])


@router.post("", dependencies=START, status_code=202, openapi_extra=started_by_form(COUNCIL))
async def start_council(starter: Starter, response: Response, body: CouncilBody) -> RunView:
    """Start a council."""
    begin = partial(submit_council, order=body.order)
    return run_view(await starter.start(response, "start council", begin, body))


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

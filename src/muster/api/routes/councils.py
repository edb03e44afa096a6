"""Councils: started, followed, told something and stopped."""

from typing import Any

from fastapi import APIRouter, Response

from muster.api.bodies import CouncilBody, MemberBody, TextBody
from muster.api.dependencies import Audit, Opened, PageLimit, Starter, needs
from muster.api.json_route import JsonRoute
from muster.app import Muster
from muster.app.councils import CouncilMember, CouncilSpec
from muster.app.runs.handle import RunHandle
from muster.app.serving.library import LibraryKind
from muster.app.views.councils import shared_council_view, signal_view
from muster.app.views.runs import run_view

router = APIRouter(prefix="/api/councils", tags=["councils"], route_class=JsonRoute)
READ, START = [needs("read")], [needs("start")]
WORKLOAD = "deliberation"


@router.get("", dependencies=READ)
async def list_councils(muster: Opened, limit: PageLimit = 20) -> dict[str, Any]:
    """Return the newest councils."""
    found = await muster.runs.page(workloads=(WORKLOAD,), roots=True, limit=limit)
    return {"councils": [run_view(run) for run in found]}


@router.post("", dependencies=START, status_code=202)
async def start_council(starter: Starter, response: Response, body: CouncilBody) -> dict[str, Any]:
    """Start a council."""

    async def begin(muster: Muster) -> RunHandle:
        return await muster.councils.submit(_spec(muster, body), muster.runs.options(**body.options()))

    return run_view(await starter.start(response, "start council", begin, body))


def _spec(muster: Muster, body: CouncilBody) -> CouncilSpec:
    members = [_member(one) for one in body.agents]
    muster.library.require_agents([*(one.name for one in members), body.synthesis, body.baseline])
    path = None if body.policy is None else muster.library.find(LibraryKind.COUNCIL, body.policy)
    return muster.councils.spec(
        body.question,
        members,
        policy=None if path is None else muster.councils.load(path),
        rounds=body.rounds,
        min_rounds=body.min_rounds,
        effort=body.effort,
        timeout_secs=body.timeout_secs,
        seed=body.seed,
        synthesis=body.synthesis,
        baseline=body.baseline,
    )


def _member(one: str | MemberBody) -> CouncilMember:
    if isinstance(one, str):
        return CouncilMember(name=one)
    return CouncilMember(name=one.agent, role=one.role, persona=one.persona, budget_usd=one.budget_usd)


@router.get("/{run_id}/trace", dependencies=READ)
async def trace(muster: Opened, run_id: str) -> dict[str, Any]:
    """Return what happened in a council, round by round; with persons as members, only when it has ended."""
    found = await muster.councils.trace(run_id)
    return shared_council_view(found, muster.councils.people_to_ask(found.run))


@router.post("/{run_id}/inject", dependencies=[needs("review")])
async def inject(muster: Opened, audit: Audit, run_id: str, body: TextBody) -> dict[str, Any]:
    """Tell all members something, from their next phase on."""
    run = await muster.councils.find(run_id)
    async with audit.action("inject", run.id):
        sent = await muster.councils.inject(run.id, body.text)
    return signal_view(sent)


@router.post("/{run_id}/stop", dependencies=START)
async def stop(muster: Opened, audit: Audit, run_id: str) -> dict[str, Any]:
    """End a council with the best proposal so far."""
    run = await muster.councils.find(run_id)
    async with audit.action("stop", run.id):
        sent = await muster.councils.stop(run.id)
    return signal_view(sent)

"""Battles and scale tests: started, followed by polling, and canceled; names in camelCase."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from muster.api.dependencies import Audit, Opened, needs
from muster.api.json_route import JsonRoute
from muster.api.routes.streams import Streaming
from muster.app.views.battles import (
    AcknowledgedView,
    BattleDecisionView,
    BattleStatusView,
    MessagePageView,
    ScaleStatusView,
    ScaleView,
    battle_status_view,
    decisions_view,
    messages_view,
    scale_status_view,
    scale_view,
)

router = APIRouter(prefix="/api", tags=["battles"], route_class=JsonRoute)
READ, START = [needs("read")], [needs("start")]


@router.get("/battles/{run_id}/status", dependencies=READ)
async def battle_status(muster: Opened, streaming: Streaming, run_id: str) -> BattleStatusView | Response:
    """Return how a battle stands; as a stream of its events for clients that accept `text/event-stream`."""
    status = await muster.battles.status(run_id)
    return await streaming.response(muster, run_id) if streaming.wanted else battle_status_view(status)


@router.get("/battles/{run_id}/messages", dependencies=READ)
async def battle_messages(
    muster: Opened,
    run_id: str,
    since_seq: Annotated[int, Query(alias="sinceSeq", ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    page: Annotated[int | None, Query(ge=1, le=2**40, description="Instead of sinceSeq: pages of `limit`.")] = None,
) -> MessagePageView:
    """Return the messages of a battle after a number, and `nextSeq` to go on with."""
    after = since_seq if page is None else (page - 1) * limit
    return messages_view(await muster.battles.messages(run_id, after, limit))


@router.get("/battles/{run_id}/decisions", dependencies=READ)
async def battle_decisions(muster: Opened, run_id: str) -> list[BattleDecisionView]:
    """Return what validators and judges decided, in order."""
    return decisions_view(await muster.battles.decisions(run_id))


@router.post("/battles/{run_id}/cancel", dependencies=START)
async def cancel_battle(muster: Opened, audit: Audit, run_id: str) -> AcknowledgedView:
    """Cancel a battle; what was said stays."""
    async with audit.action("cancel", run_id) as doing:
        run = await muster.battles.cancel(run_id)
        doing.subject = run.id
    return AcknowledgedView(acknowledged=True)


@router.get("/scale/{run_id}/status", dependencies=READ)
async def scale_status(muster: Opened, run_id: str) -> ScaleStatusView:
    """Return how a scale test stands."""
    return scale_status_view(await muster.battles.scales.status(run_id))


@router.get("/scale/{run_id}/report", dependencies=READ)
async def scale_report(muster: Opened, run_id: str) -> ScaleView:
    """Return what a scale test came to; 409 before its end."""
    return scale_view(await muster.battles.scales.result(run_id))


@router.post("/scale/{run_id}/cancel", dependencies=START)
async def cancel_scale(muster: Opened, audit: Audit, run_id: str) -> AcknowledgedView:
    """Cancel a scale test with all its battles; what was said stays."""
    async with audit.action("cancel", run_id) as doing:
        run = await muster.battles.scales.cancel(run_id)
        doing.subject = run.id
    return AcknowledgedView(acknowledged=True)

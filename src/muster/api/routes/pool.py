"""The pool: its state, its slots, shared texts and messages. What all users share is for `admin`."""

from typing import Annotated

from fastapi import APIRouter, Query

from muster.api.bodies import DrainBody, ScaleSlotsBody, TextBody
from muster.api.dependencies import Audit, Opened, needs
from muster.api.json_route import JsonRoute
from muster.app.views.pool import (
    ContextTextView,
    ContextView,
    DeletedContextView,
    PoolMetricsView,
    PoolView,
    ReachedSlotsView,
    SlotMessagesView,
    SlotMessageView,
    SlotsView,
    message_view,
    messages_view,
    metrics_view,
    pool_view,
    slots_view,
)

router = APIRouter(prefix="/api/pool", tags=["pool"], route_class=JsonRoute)
ADMIN = [needs("admin")]


@router.get("", dependencies=ADMIN)
async def pool_status(muster: Opened) -> PoolView:
    """Return slots, tasks, cost and who drives the pool."""
    return pool_view(await muster.pool.status())


@router.get("/slots", dependencies=ADMIN)
async def list_slots(
    muster: Opened,
    name: Annotated[str | None, Query(max_length=200)] = None,
    role: Annotated[str | None, Query(max_length=200)] = None,
    state: Annotated[str | None, Query(pattern="^(idle|busy|stopped|errored)$")] = None,
) -> SlotsView:
    """Return the slots."""
    return slots_view(await muster.pool.slots(name=name, role=role, state=state))


@router.get("/metrics", dependencies=ADMIN)
async def pool_metrics(
    muster: Opened,
    since: Annotated[float, Query(ge=0, le=1e11)] = 0.0,
    until: Annotated[float | None, Query(ge=0, le=1e11)] = None,
    tag: Annotated[list[str] | None, Query(max_length=20)] = None,
    model: Annotated[str | None, Query(max_length=200)] = None,
) -> PoolMetricsView:
    """Return how tasks ended, what they cost and how long they took; times in seconds since 1970."""
    return metrics_view(await muster.pool.metrics(since=since, until=until, tags=tag or (), model=model))


@router.post("/scale", dependencies=ADMIN)
async def scale_pool(muster: Opened, audit: Audit, body: ScaleSlotsBody) -> SlotsView:
    """Change the number of slots; a busy slot is removed when its task ends."""
    async with audit.action("scale", "pool"):
        slots = await muster.pool.scale(body.slots)
    return slots_view(slots)


@router.post("/drain", dependencies=ADMIN)
async def drain_pool(muster: Opened, audit: Audit, body: DrainBody | None = None) -> PoolView:
    """Refuse new tasks, wait for those that run, and stop all slots."""
    async with audit.action("drain", "pool"):
        found = await muster.pool.drain((body or DrainBody()).timeout_secs)
    return pool_view(found)


@router.get("/context", dependencies=ADMIN)
async def list_context(muster: Opened) -> ContextView:
    """Return the texts that are added to the prompts of every slot."""
    return ContextView(context=await muster.pool.context())


@router.get("/context/{name}", dependencies=ADMIN)
async def get_context(muster: Opened, name: str) -> ContextTextView:
    """Return one of the texts that are added to the prompts of every slot."""
    return ContextTextView(name=name, text=await muster.pool.context_text(name))


@router.put("/context/{name}", dependencies=ADMIN)
async def set_context(muster: Opened, audit: Audit, name: str, body: TextBody) -> ContextTextView:
    """Set a text that is added to the prompts of every slot."""
    async with audit.action("set context", name):
        await muster.pool.set_context(name, body.text)
    return ContextTextView(name=name, text=body.text)


@router.delete("/context/{name}", dependencies=ADMIN)
async def delete_context(muster: Opened, audit: Audit, name: str) -> DeletedContextView:
    """Delete a text that is added to the prompts of every slot."""
    async with audit.action("delete context", name):
        await muster.pool.delete_context(name)
    return DeletedContextView(deleted=name)


@router.get("/slots/{slot}/messages", dependencies=ADMIN)
async def list_messages(muster: Opened, slot: str) -> SlotMessagesView:
    """Return the messages that a slot has not read; they stay unread."""
    return messages_view(await muster.pool.unread(slot))


@router.post("/slots/{slot}/messages", dependencies=ADMIN, status_code=201)
async def send_message(muster: Opened, audit: Audit, slot: str, body: TextBody) -> SlotMessageView:
    """Send a message to a slot; its agent gets it once."""
    async with audit.action("message", slot):
        sent = await muster.pool.send(slot, body.text, sender=audit.user)
    return message_view(sent)


@router.post("/slots/{slot}/messages/read", dependencies=ADMIN)
async def read_messages(muster: Opened, audit: Audit, slot: str) -> SlotMessagesView:
    """Return the messages that a slot has not read and count them as read."""
    async with audit.action("read messages", slot):
        found = await muster.pool.read(slot)
    return messages_view(found)


@router.post("/messages", dependencies=ADMIN, status_code=201)
async def broadcast(muster: Opened, audit: Audit, body: TextBody) -> ReachedSlotsView:
    """Send a message to every slot that is not stopped."""
    async with audit.action("message", "all slots"):
        names = await muster.pool.broadcast(body.text, sender=audit.user)
    return ReachedSlotsView(slots=names)

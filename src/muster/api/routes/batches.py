"""Batches: listed, shown and canceled. One batch can hold calls of many users, so this is for `admin`."""

from typing import Annotated

from fastapi import APIRouter, Query

from muster.api.dependencies import Audit, Opened, PageLimit, needs
from muster.api.json_route import JsonRoute
from muster.app.views.batches import (
    BatchPageView,
    BatchStatsView,
    BatchView,
    batch_page_view,
    batch_stats_view,
    batch_view,
)
from muster.domain.batch import BatchState

router = APIRouter(prefix="/api/batches", tags=["batches"], route_class=JsonRoute)
ADMIN = [needs("admin")]


@router.get("", dependencies=ADMIN)
async def list_batches(
    muster: Opened,
    state: Annotated[list[BatchState] | None, Query()] = None,
    after: Annotated[str | None, Query(max_length=100, description="`next` of the page before.")] = None,
    limit: PageLimit = 50,
) -> BatchPageView:
    """Return a page of batches, the newest first."""
    return batch_page_view(await muster.batches.list(state or (), limit, after=after), limit)


@router.get("/stats", dependencies=ADMIN)
async def batch_stats(muster: Opened, since: Annotated[float, Query(ge=0, le=1e11)] = 0.0) -> BatchStatsView:
    """Return how long batches took, how they ended, and what they saved; since a time in seconds since 1970."""
    return batch_stats_view(await muster.batches.stats(since), since)


@router.get("/{batch_id}", dependencies=ADMIN)
async def show_batch(muster: Opened, batch_id: str) -> BatchView:
    """Return a batch, with how many calls of which runs it holds."""
    batch = await muster.batches.find(batch_id)
    return batch_view(batch, await muster.batches.runs(batch.id))


@router.post("/{batch_id}/cancel", dependencies=ADMIN)
async def cancel_batch(muster: Opened, audit: Audit, batch_id: str) -> BatchView:
    """Cancel a batch at the provider; the results that it has are kept."""
    async with audit.action("cancel batch", batch_id) as doing:
        batch = await muster.batches.cancel(await muster.batches.find(batch_id))
        doing.subject = batch.id
    return batch_view(batch)

"""Money that was spent. It is that of all users, so this is for `admin`."""

from typing import Annotated

from fastapi import APIRouter, Query

from muster.api.dependencies import Opened, needs
from muster.api.json_route import JsonRoute
from muster.app.views.costs import CostsView, costs_view

router = APIRouter(prefix="/api/costs", tags=["costs"], route_class=JsonRoute)


@router.get("", dependencies=[needs("admin")])
async def costs(muster: Opened, days: Annotated[int, Query(ge=1, le=366)] = 30) -> CostsView:
    """Return what was spent in so many days (UTC), by day, agent and run, and how the budgets above runs stand."""
    return costs_view(await muster.costs(days))

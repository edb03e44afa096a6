"""Routes of kinds of work that are made from what they declare: one starts it, one lists it."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from muster.api.dependencies import Opened, PageLimit, Starter, needs
from muster.api.forms import form_of
from muster.api.json_route import JsonRoute
from muster.api.orders import ordered
from muster.app.kinds import AppKind
from muster.app.orders import submit_order
from muster.app.views.runs import RunPageView, RunView, run_page_view, run_view

After = Annotated[str | None, Query(max_length=100, description="`next` of the page before.")]


def route_of(known: AppKind) -> APIRouter:
    """Return the routes of a kind, below its name for several."""
    kind = known.kind
    path = kind.plural.replace(" ", "-")
    router = APIRouter(prefix=f"/api/{path}", tags=[path], route_class=JsonRoute)
    given: Any = ordered(kind.order, name=f"{kind.class_name}Body")

    async def list_runs(muster: Opened, after: After = None, limit: PageLimit = 20) -> RunPageView:
        runs = await muster.runs.page(workloads=(kind.workload,), roots=True, after=after, limit=limit)
        return run_page_view([(run, await muster.runs.batches_of(run.id)) for run in runs], limit)

    async def start(starter: Starter, response: Response, body: Any = given) -> RunView:
        begin = partial(submit_order, kind=kind, order=body.order)
        return run_view(await starter.start(response, f"start {kind.word}", begin, body))

    add = partial(router.add_api_route, "")
    add(list_runs, methods=["GET"], name=f"list {kind.plural}", dependencies=[needs("read")])
    add(
        start,
        methods=["POST"],
        name=f"start {kind.word}",
        description=kind.about,
        status_code=202,
        dependencies=[needs("start")],
        openapi_extra=form_of(known),
    )
    return router

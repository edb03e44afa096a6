"""Routes of kinds of work that are made from what they declare: one starts it, one lists it."""

from typing import Annotated, Any, get_type_hints

from fastapi import APIRouter, Query, Response

from muster.api.dependencies import Opened, PageLimit, Starter, needs
from muster.api.forms import form_of
from muster.api.json_route import JsonRoute
from muster.api.orders import ordered
from muster.app import Muster
from muster.app.kinds import AppKind, loaded
from muster.app.serving.orders import submission
from muster.app.views.runs import RunPageView, RunView, run_page_view, run_view
from muster.domain.run import Run

After = Annotated[str | None, Query(max_length=100, description="`next` of the page before.")]


async def _any_run(muster: Muster, run: Run) -> RunView:
    return run_view(run)


def route_of(known: AppKind) -> APIRouter:
    """Return the routes of a kind, below its name for several."""
    kind, doors = known.kind, known.doors
    router = APIRouter(tags=[known.place], route_class=JsonRoute)
    given: Any = ordered(known.order, name=f"{known.schema}Body", camel=doors.camel)
    submit, answer = submission(known), loaded(doors.answer) if doors.answer else _any_run

    async def list_runs(muster: Opened, after: After = None, limit: PageLimit = 20) -> RunPageView:
        runs = await muster.runs.page(workloads=(kind.workload,), roots=True, after=after, limit=limit)
        return run_page_view([(run, await muster.runs.batches_of(run.id)) for run in runs], limit)

    async def start(starter: Starter, muster: Opened, response: Response, body: Any = given) -> Any:
        run = await starter.start(response, known.action, lambda acting: submit(acting, body.order), body)
        return await answer(muster, run)

    start.__annotations__["return"] = get_type_hints(answer)["return"]  # what the answer is described by
    if not doors.has_list:
        router.add_api_route(
            f"/api/{known.place}", list_runs, methods=["GET"], name=f"list {kind.plural}", dependencies=[needs("read")]
        )
    router.add_api_route(
        known.path,
        start,
        methods=["POST"],
        name=known.action,
        description=kind.about,
        status_code=202,
        dependencies=[needs("start")],
        openapi_extra=form_of(known),
    )
    return router

"""What can be read without a tool, by address: status, and the progress and result of every run."""

import re

from muster.app import Muster
from muster.app.views.events import event_view
from muster.domain.errors import NotFound
from muster.domain.run import Run
from muster.mcp.answers import pointer_to, whole
from muster.mcp.inputs import ListInput, OverviewInput
from muster.mcp.request import ToolRequest
from muster.mcp.sizes import ENVELOPE, MAX_ANSWER, MAX_ROW, Answer, fit, size
from muster.mcp.tools.following import find, list_work, overview
from muster.text.views import plain

MAX_EVENTS = 100
RESOURCES = (
    ("muster://status", "status", "What can be used, the money that is left, the pool, and what waits for a decision."),
    ("muster://runs", "runs", "The newest tasks and runs with their states and costs."),
)
TEMPLATES = (
    ("muster://runs/{id}", "run", "How a task or a run stands, and what to do next."),
    (
        "muster://runs/{id}/result",
        "result",
        "The output of a task or a run; of a long one the beginning.",
    ),
    ("muster://runs/{id}/progress", "progress", "The last events of a task or a run."),
)
ADDRESS = re.compile(r"muster://runs/(?P<id>[^/?#]{1,200})(?:/(?P<part>result|progress))?")


async def read_resource(request: ToolRequest, uri: str) -> Answer:
    """Return what stands at an address; raises NotFound for any other."""
    if uri == "muster://status":
        return await overview(request, OverviewInput())
    if uri == "muster://runs":
        return await list_work(request, ListInput())
    found = ADDRESS.fullmatch(uri)
    if found is None:
        raise NotFound(f"there is no resource {uri[:200]!r}", suggestions=("muster://status", "muster://runs/{id}"))
    run = await find(request.muster, found["id"])
    if found["part"] == "result":
        return await _result(request.muster, run)
    if found["part"] == "progress":
        return await _progress(request.muster, run)
    return await whole(request.muster, run)


async def _result(muster: Muster, run: Run) -> Answer:
    def pointer(field: str, offset: int) -> str:
        return f"result(id={run.id!r}, part='output', offset={offset})"

    output = fit(await muster.output_of(run), MAX_ANSWER - ENVELOPE, pointer)
    return {"id": run.id, "state": str(run.state), "output": output}


async def _progress(muster: Muster, run: Run) -> Answer:
    """Return the last events, as many as fit; the tool reads those before them."""
    events = await muster.runs.events(run.id, max(0, run.last_seq - MAX_EVENTS), MAX_EVENTS)
    room = MAX_ANSWER - ENVELOPE
    shown: list[Answer] = []
    for event in reversed(events):
        row = fit(plain(event_view(event)), MAX_ROW, pointer_to(run.id, part="events", key=str(event.seq)))
        room -= size(row) + 2
        if room < 0:
            break
        shown.insert(0, row)
    told = {"id": run.id, "state": str(run.state), "events": shown, "total": run.last_seq}
    return told if len(shown) == run.last_seq else told | {"before": f"result(id={run.id!r}, part='events')"}

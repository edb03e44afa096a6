"""What can be read without a tool, by address: status, and the progress and result of every run."""

import re

from muster.app.views.runs import event_view
from muster.domain.errors import NotFound
from muster.mcp.answers import Answer, text_of, whole
from muster.mcp.inputs import ListInput, NoInput
from muster.mcp.request import ToolRequest
from muster.mcp.tools.following import find, list_work, overview

MOST_EVENTS = 100
RESOURCES = (
    ("muster://status", "status", "What can be used, the money that is left, the pool, and what waits for a decision."),
    ("muster://runs", "runs", "The newest tasks and runs with their states and costs."),
)
TEMPLATES = (
    ("muster://runs/{id}", "run", "How a task or a run stands, and what to do next."),
    ("muster://runs/{id}/result", "result", "The whole output of a task or a run."),
    ("muster://runs/{id}/progress", "progress", "The last events of a task or a run."),
)
ADDRESS = re.compile(r"muster://runs/(?P<id>[^/?#]{1,200})(?:/(?P<part>result|progress))?")


async def read_resource(request: ToolRequest, uri: str) -> Answer:
    """Return what stands at an address; raises NotFound for any other."""
    if uri == "muster://status":
        return await overview(request, NoInput())
    if uri == "muster://runs":
        return await list_work(request, ListInput())
    found = ADDRESS.fullmatch(uri)
    if found is None:
        raise NotFound(f"there is no resource {uri[:200]!r}", suggestions=("muster://status", "muster://runs/{id}"))
    run = await find(request.muster, found["id"])
    if found["part"] == "result":
        return {"id": run.id, "state": str(run.state), "output": await text_of(request.muster, run)}
    if found["part"] == "progress":
        events = await request.muster.runs.events(run.id, max(0, run.last_seq - MOST_EVENTS), MOST_EVENTS)
        return {"id": run.id, "state": str(run.state), "events": [event_view(event) for event in events]}
    return await whole(request.muster, run)

"""Tools that start work and return its id at once, made from what kinds of work declare."""

from muster.app.kinds import AppKind
from muster.app.serving.orders import submission
from muster.domain.run import Run
from muster.mcp.answers import short_run, whole
from muster.mcp.inputs import OrderInput, tool_input
from muster.mcp.request import CoordinatorTool, ToolRequest
from muster.mcp.sizes import Answer


def tool_of(known: AppKind) -> CoordinatorTool:
    """Return the tool that starts work of a kind."""
    kind, doors, submit = known.kind, known.doors, submission(known)

    async def start(request: ToolRequest, given: OrderInput) -> Answer:
        order = given.order()
        run = await request.start(known.action, given, lambda acting: submit(acting, order))
        return await _started(request, run, in_slot=kind.in_slot)

    return CoordinatorTool(
        name=doors.tool or f"start_{kind.word.replace(' ', '_').replace('-', '_')}",
        description=doors.told or f"{kind.about} Returns an id; wait for it to get the result.",
        takes=tool_input(known.tool_order, f"{known.schema}Input", newer=doors.newer),
        scope="start",
        handle=start,
    )


async def _started(request: ToolRequest, run: Run, *, in_slot: bool) -> Answer:
    """Return the answer of a tool that has started a run; what a slot does may have been continued since."""
    if in_slot:
        return await whole(request.muster, await request.muster.runs.end_of_lineage(run))
    return short_run(run) | {"next": f"wait(ids=[{run.id!r}])"}

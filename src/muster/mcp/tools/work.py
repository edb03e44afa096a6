"""Tools of kinds of work that are made from what they declare."""

from functools import partial

from muster.app.orders import submit_order
from muster.domain.kind import WorkKind
from muster.mcp.inputs import OrderInput, tool_input
from muster.mcp.request import CoordinatorTool, ToolRequest
from muster.mcp.sizes import Answer
from muster.mcp.tools.starting import started


def tool_of(kind: WorkKind) -> CoordinatorTool:
    """Return the tool that starts work of a kind."""

    async def start(request: ToolRequest, given: OrderInput) -> Answer:
        begin = partial(submit_order, kind=kind, order=given.order())
        return started(await request.start(f"start {kind.word}", given, begin))

    return CoordinatorTool(
        name=f"start_{kind.word.replace(' ', '_').replace('-', '_')}",
        description=f"{kind.about} Returns an id; wait for it to get the result.",
        takes=tool_input(kind.order, f"{kind.class_name}Input"),
        scope="start",
        handle=start,
    )

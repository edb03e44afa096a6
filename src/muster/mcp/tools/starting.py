"""The tool that starts several runs at once, and is therefore not made from what one kind of work declares."""

from muster.app import Muster
from muster.app.pool.orders import TaskRunTerms, fan_out_specs, fan_out_terms, ordered_fan_out, run_terms
from muster.app.pool.values import TaskSpec
from muster.domain.errors import MusterError
from muster.domain.run import Run
from muster.mcp.inputs import OrderInput, tool_input
from muster.mcp.request import CoordinatorTool, ToolRequest
from muster.mcp.sizes import Answer
from muster.pool.order import FanOutOrder


async def fan_out(request: ToolRequest, given: OrderInput) -> Answer:
    """Queue a task for each prompt; when one is refused, those before it go on and are told."""
    order: FanOutOrder = given.order()
    specs = fan_out_specs(ordered_fan_out(order))  # before any is submitted: one of them may be wrong
    await request.muster.pool.require_driver()
    await request.muster.pool.tasks.require_room(len(specs))
    ids: list[str] = []
    for number, task in enumerate(zip(specs, fan_out_terms(run_terms(order), len(specs)), strict=True)):

        async def begin(muster: Muster, task: tuple[TaskSpec, TaskRunTerms] = task) -> Run:
            muster.library.require_agents([("agent", order.agent)])
            return (await muster.pool.tasks.submit(task[0], **task[1])).run

        try:
            ids.append((await request.start("submit task", given, begin, part=f"/{number}")).id)
        except MusterError as error:
            if not ids:
                raise
            told = f"only the first {len(ids)} of {len(specs)} tasks were submitted: {error.message}"
            return {"ids": ids, "error": error.code, "message": told, "next": f"wait(ids={ids})"}
    return {"ids": ids, "next": f"wait(ids={ids}); results are in the order of the prompts"}


STARTING = (
    CoordinatorTool(
        name="fan_out",
        description="Submit one task for each of up to 50 prompts, to be done side by side by the slots of the pool. "
        "Returns their ids in the order of the prompts. budget_usd is for each task.",
        takes=tool_input(FanOutOrder, "FanOutInput"),
        scope="start",
        handle=fan_out,
    ),
)

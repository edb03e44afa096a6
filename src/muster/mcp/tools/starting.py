"""Tools that start something and return its id at once: tasks, questions, chains, suites, councils and battles."""

from functools import partial

from muster.app import Muster
from muster.app.pool.orders import TaskRunTerms, fan_out_specs, fan_out_terms, ordered_fan_out, run_terms
from muster.app.pool.values import TaskSpec
from muster.app.serving.battles import submit_battle
from muster.app.serving.chains import submit_chain
from muster.app.serving.councils import submit_council
from muster.app.serving.questions import submit_ask
from muster.app.serving.suites import submit_suite
from muster.app.serving.tasks import submit_task as queue_task
from muster.battles.order import ScaleOrder
from muster.domain.errors import MusterError
from muster.domain.order import shared_fields
from muster.domain.run import Run
from muster.mcp.answers import short_run, whole
from muster.mcp.inputs import (
    AskInput,
    BattleInput,
    ChainRunInput,
    CouncilInput,
    FanOutInput,
    OrderInput,
    SuiteInput,
    TaskInput,
    ToolBattleOrder,
)
from muster.mcp.request import CoordinatorTool, ToolRequest
from muster.mcp.sizes import Answer
from muster.pool.order import FanOutOrder


async def submit_task(request: ToolRequest, given: OrderInput) -> Answer:
    """Queue a task for a slot of the pool."""
    run = await request.start("submit task", given, partial(queue_task, order=given.order()))
    return await whole(request.muster, await request.muster.runs.end_of_lineage(run))


async def fan_out(request: ToolRequest, given: OrderInput) -> Answer:
    """Queue a task for each prompt; when one is refused, those before it go on and are told."""
    order: FanOutOrder = given.order()
    specs = fan_out_specs(ordered_fan_out(order))  # before any is submitted: one of them may be wrong
    await request.muster.pool.require_driver()
    await request.muster.pool.tasks.require_room(len(specs))
    ids: list[str] = []
    for number, task in enumerate(zip(specs, fan_out_terms(run_terms(order), len(specs)), strict=True)):

        async def begin(muster: Muster, task: tuple[TaskSpec, TaskRunTerms] = task) -> Run:
            muster.library.require_agents([order.agent])
            return (await muster.pool.tasks.submit(task[0], **task[1])).run

        try:
            ids.append((await request.start("submit task", given, begin, part=f"/{number}")).id)
        except MusterError as error:
            if not ids:
                raise
            told = f"only the first {len(ids)} of {len(specs)} tasks were submitted: {error.message}"
            return {"ids": ids, "error": error.code, "message": told, "next": f"wait(ids={ids})"}
    return {"ids": ids, "next": f"wait(ids={ids}); results are in the order of the prompts"}


async def ask(request: ToolRequest, given: OrderInput) -> Answer:
    """Start the run of one question."""
    return started(await request.start("start ask", given, partial(submit_ask, order=given.order())))


async def run_chain(request: ToolRequest, given: OrderInput) -> Answer:
    """Start a chain of the library."""
    return started(await request.start("start chain", given, partial(submit_chain, order=given.order())))


async def run_suite(request: ToolRequest, given: OrderInput) -> Answer:
    """Start a run of suites of the library."""
    return started(await request.start("start suite", given, partial(submit_suite, order=given.order())))


async def start_council(request: ToolRequest, given: OrderInput) -> Answer:
    """Start a council."""
    return started(await request.start("start council", given, partial(submit_council, order=given.order())))


async def start_battle(request: ToolRequest, given: OrderInput) -> Answer:
    """Start a battle, or a scale test of several."""
    order: ToolBattleOrder = given.order()
    chosen = order if order.runs == 1 else ScaleOrder(**shared_fields(order, ScaleOrder))
    return started(await request.start("start battle", given, partial(submit_battle, order=chosen)))


def started(run: Run) -> Answer:
    """Return the answer of a tool that has started a run."""
    return short_run(run) | {"next": f"wait(ids=[{run.id!r}])"}


STARTING = (
    CoordinatorTool(
        name="submit_task",
        description="Give a piece of work to an agent of the pool (a crew of coding or CLI agents in slots). Returns "
        "the id of the task at once; the work continues when you disconnect. With review=true it stops "
        "when done and waits for review_task; rejected work is done again with your feedback.",
        takes=TaskInput,
        scope="start",
        handle=submit_task,
    ),
    CoordinatorTool(
        name="fan_out",
        description="Submit one task for each of up to 50 prompts, to be done side by side by the slots of the pool. "
        "Returns their ids in the order of the prompts. budget_usd is for each task.",
        takes=FanOutInput,
        scope="start",
        handle=fan_out,
    ),
    CoordinatorTool(
        name="ask",
        description="Ask one agent one question, without a slot or tools: a single durable model call. Returns an id; "
        "wait for it to get the reply.",
        takes=AskInput,
        scope="start",
        handle=ask,
    ),
    CoordinatorTool(
        name="run_chain",
        description="Run a chain of the operator's library: steps of prompts and commands, in order, each with the "
        "output of those before. overview lists the chains.",
        takes=ChainRunInput,
        scope="start",
        handle=run_chain,
    ),
    CoordinatorTool(
        name="run_suite",
        description="Run test suites of the operator's library against agents: cases with checks and judges, pass "
        "rates with intervals. overview lists the suites.",
        takes=SuiteInput,
        scope="start",
        handle=run_suite,
    ),
    CoordinatorTool(
        name="start_council",
        description="Let several agents argue about a question: each proposes, all score each other's proposals, until "
        "they are convinced. Returns an id; the result has the winning answer and the dissent. A member can be a "
        "person, whose questions you ask the user.",
        takes=CouncilInput,
        scope="start",
        handle=start_council,
    ),
    CoordinatorTool(
        name="start_battle",
        description="Test an agent in a conversation with a counterpart who wants a goal; judges say when it is "
        "reached. With runs > 1 it is a scale test: many such conversations, with goal rate, cost and a revised "
        "prompt.",
        takes=BattleInput,
        scope="start",
        handle=start_battle,
    ),
)

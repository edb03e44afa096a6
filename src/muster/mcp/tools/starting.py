"""Tools that start something and return its id at once: tasks, questions, chains, suites, councils and battles."""

from functools import partial
from typing import Any

from muster.app import Muster
from muster.app.pool.values import TaskSpec
from muster.app.runs.ask import Question
from muster.app.runs.handle import RunHandle
from muster.app.runs.options import RunOptions
from muster.app.serving.battles import submit_battle
from muster.app.serving.library import LibraryKind
from muster.app.suites.suites import SuiteChoice
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
    StartInput,
    SuiteInput,
    TaskInput,
    ToolBattleOrder,
)
from muster.mcp.request import CoordinatorTool, ToolRequest
from muster.mcp.sizes import Answer


async def submit_task(request: ToolRequest, given: TaskInput) -> Answer:
    """Queue a task for a slot of the pool."""
    spec = TaskSpec(
        prompt=given.prompt,
        agent=given.agent,
        slot=given.slot,
        role=given.role,
        system=given.system,
        review=given.review,
        max_rejections=given.max_rejections,
        after=tuple(given.after),
        priority=given.priority,
        budget_usd=given.budget_usd,
        schema=given.output_schema,
    )

    async def begin(muster: Muster) -> Run:
        muster.library.require_agents([given.agent])
        await muster.pool.require_driver()
        task = await muster.pool.tasks.submit(
            spec, tags=given.tags, name=given.name, timeout=given.timeout_secs, continues=given.continues
        )
        return task.run

    run = await request.start("submit task", given, begin)
    return await whole(request.muster, await request.muster.runs.end_of_lineage(run))


async def fan_out(request: ToolRequest, given: FanOutInput) -> Answer:
    """Queue a task for each prompt; when one is refused, those before it go on and are told."""
    specs = [
        TaskSpec(
            prompt=prompt,
            agent=given.agent,
            role=given.role,
            system=given.system,
            review=given.review,
            budget_usd=given.budget_usd,
        )
        for prompt in given.prompts
    ]  # before any is submitted: one of them may be wrong
    await request.muster.pool.require_driver()
    await request.muster.pool.tasks.require_room(len(specs))
    ids: list[str] = []
    for number, spec in enumerate(specs):
        name = None if given.name is None else f"{given.name}-{number + 1}"

        async def begin(muster: Muster, spec: TaskSpec = spec, name: str | None = name) -> Run:
            muster.library.require_agents([given.agent])
            return (await muster.pool.tasks.submit(spec, tags=given.tags, name=name)).run

        try:
            ids.append((await request.start("submit task", given, begin, part=f"/{number}")).id)
        except MusterError as error:
            if not ids:
                raise
            told = f"only the first {len(ids)} of {len(given.prompts)} tasks were submitted: {error.message}"
            return {"ids": ids, "error": error.code, "message": told, "next": f"wait(ids={ids})"}
    return {"ids": ids, "next": f"wait(ids={ids}); results are in the order of the prompts"}


async def ask(request: ToolRequest, given: AskInput) -> Answer:
    """Start the run of one question."""

    async def begin(muster: Muster) -> RunHandle:
        muster.library.require_agents([given.agent])
        question = Question(
            agent=given.agent,
            prompt=given.prompt,
            system=given.system,
            schema=given.output_schema,
            max_tokens=given.max_tokens,
        )
        return await muster.submit_question(question, _options(muster, given, dispatch=given.dispatch))

    return _started(await request.start("start ask", given, begin))


async def run_chain(request: ToolRequest, given: ChainRunInput) -> Answer:
    """Start a chain of the library."""

    async def begin(muster: Muster) -> RunHandle:
        chain = muster.chains.load(muster.library.find(LibraryKind.CHAIN, given.chain))
        spec = muster.chains.spec(chain, given.input, folder=muster.settings.folder)
        return await muster.chains.submit(spec, _options(muster, given))

    return _started(await request.start("start chain", given, begin))


async def run_suite(request: ToolRequest, given: SuiteInput) -> Answer:
    """Start a run of suites of the library."""

    async def begin(muster: Muster) -> RunHandle:
        muster.library.require_agents(given.agents)
        paths = [str(muster.library.find(LibraryKind.SUITE, name)) for name in given.suites]
        chosen = {
            "path": paths,
            "agents": given.agents,
            "judge": muster.library.judge(given.judge),
            "epochs": given.epochs,
            "filter": given.filter,
        }
        spec = await muster.suites.spec(SuiteChoice(given={name: value for name, value in chosen.items() if value}))
        return await muster.suites.submit(spec, _options(muster, given, dispatch=given.dispatch))

    return _started(await request.start("start suite", given, begin))


async def start_council(request: ToolRequest, given: CouncilInput) -> Answer:
    """Start a council."""

    async def begin(muster: Muster) -> RunHandle:
        muster.library.require_agents([*given.agents, given.synthesis])
        path = None if given.policy is None else muster.library.find(LibraryKind.COUNCIL, given.policy)
        spec = muster.councils.spec(
            given.question,
            given.agents,
            policy=None if path is None else muster.councils.load(path),
            rounds=given.rounds,
            synthesis=given.synthesis,
        )
        return await muster.councils.submit(spec, _options(muster, given, dispatch=given.dispatch))

    return _started(await request.start("start council", given, begin))


async def start_battle(request: ToolRequest, given: OrderInput) -> Answer:
    """Start a battle, or a scale test of several."""
    order: ToolBattleOrder = given.order()
    chosen = order if order.runs == 1 else ScaleOrder(**shared_fields(order, ScaleOrder))
    return _started(await request.start("start battle", given, partial(submit_battle, order=chosen)))


def _options(muster: Muster, given: StartInput, **more: Any) -> RunOptions:
    return muster.runs.options(budget_usd=given.budget_usd, name=given.name, **more)


def _started(run: Run) -> Answer:
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

"""Tools that look and wait: what there is, what was started, and how it stands."""

import asyncio
import re
from collections.abc import Sequence

from muster.app import Muster
from muster.app.kinds import BUILT_IN, kind_of, word_of
from muster.app.views.pool import pool_view
from muster.domain.errors import BadArgument, NotFound
from muster.domain.ids import RunId
from muster.domain.money import to_usd
from muster.domain.run import TERMINAL, Run, RunState
from muster.mcp.answers import (
    brief_of_all,
    compact,
    picked,
    pointer_to,
    short_batch,
    short_run,
    short_task,
    whole_of_all,
)
from muster.mcp.catalogue import catalogue, catalogue_page
from muster.mcp.inputs import ListInput, OverviewInput, WaitInput
from muster.mcp.request import SERVER, CoordinatorTool, ToolRequest
from muster.mcp.sizes import ENVELOPE, MAX_ANSWER, Answer, fit_all

BATCH_ID = re.compile(r"b[0-9a-z]{16}")
LOOK_SECONDS = 1.0  # between two looks at a run that nothing is heard of
PROGRESS_SECONDS = 1.0  # between two notifications of one wait
MAX_WAITING = 20  # runs in an overview that wait for a decision
MAX_TOLD = 5  # runs in a notification
WORKLOADS = {kind.word: kind.workload for kind in BUILT_IN}


async def overview(request: ToolRequest, given: OverviewInput) -> Answer:
    """Return what the caller can use, what is left to spend, and what waits for a decision."""
    muster = request.muster
    if given.part != "all":
        return await catalogue_page(muster, given.part, given.after)
    waiting = await muster.runs.page([RunState.WAITING], roots=True, limit=MAX_WAITING)
    asking = [run for run in waiting if await is_at_rest(muster, run)]
    all_of = "; list_work(needs_you=true) lists all that waits" if len(waiting) == MAX_WAITING else ""
    return {
        **(await catalogue(muster)),
        **(await _pool(muster) if request.may("admin") else {}),  # its tasks are those of everybody
        "budget": await budget_of(muster),
        "waiting": _fitting([await _listed(muster, run) for run in asking], MAX_ANSWER // 6),
        "next": "start something (submit_task, fan_out, ask, run_chain, run_suite, start_council, start_battle), then "
        f"wait for its id; agents and library entries are named exactly as listed here{all_of}",
    }


def _fitting(rows: list[Answer], most: int) -> list[Answer]:
    """Return rows of a list of runs or batches with at most so many characters together."""
    return fit_all(rows, most, [pointer_to(row["id"]) for row in rows])


async def _pool(muster: Muster) -> Answer:
    pool = pool_view(await muster.pool.status())
    driven = {"driven": pool.driver is not None}
    return {"pool": picked(pool, "slots", "tasks", "draining") | driven}


async def budget_of(muster: Muster) -> Answer:
    """Return what everything that is started through this server may cost, and has."""
    funds = await muster.server_budgets.funds(SERVER)
    return compact(
        {
            "spent_usd": to_usd(funds.spent),
            "reserved_usd": to_usd(funds.reserved),
            "limit_usd": None if funds.cap is None else to_usd(funds.cap),
            "left_usd": None if funds.left is None else to_usd(funds.left),
        }
    )


async def list_work(request: ToolRequest, given: ListInput) -> Answer:
    """Return a page of what was started, the newest first."""
    muster = request.muster
    if given.kind == "batch":
        request.caller.require("admin")  # a batch holds calls of everybody
        batches = [short_batch(one) for one in await muster.batches.list((), given.limit)]
        return {"batches": _fitting(batches, MAX_ANSWER - ENVELOPE)}
    states = [RunState.WAITING] if given.needs_you else []
    workloads = () if given.kind == "any" else (WORKLOADS[given.kind],)
    found = await muster.runs.page(
        states, workloads=workloads, roots=True, search=given.search, after=given.after, limit=given.limit
    )
    # Others that wait do so for a provider.
    rows = [await _listed(muster, run) for run in found if not given.needs_you or await is_at_rest(muster, run)]
    return {
        "runs": _fitting(rows, MAX_ANSWER - ENVELOPE),
        "next": found[-1].id if len(found) == given.limit else None,
    }


async def _listed(muster: Muster, run: Run) -> Answer:
    return short_task(await muster.pool.tasks.of(run)) if kind_of(run).in_slot else short_run(run)


async def wait(request: ToolRequest, given: WaitInput) -> Answer:
    """Wait until runs are over or need somebody, for a bounded time, and return how they stand."""
    muster = request.muster
    for reference in given.ids:
        if await is_batch(muster, reference):
            ways = (f"result(id={reference!r}) shows it; wait for the runs whose calls it holds",)
            raise BadArgument(f"has {reference!r}, which is a batch", argument="ids", suggestions=ways)
    runs = [await find(muster, reference) for reference in given.ids]
    progress = WaitProgress(request, runs, given.timeout_secs)
    rest = [asyncio.ensure_future(_until_at_rest(muster, run, progress)) for run in runs]
    first = asyncio.FIRST_COMPLETED if given.until == "any" else asyncio.ALL_COMPLETED
    try:
        await asyncio.wait(rest, timeout=given.timeout_secs, return_when=first)
    finally:
        for task in rest:
            task.cancel()
        await asyncio.wait(rest)
    for task in rest:
        if not task.cancelled():
            task.result()
    now = [await find(muster, run.id) for run in runs]
    found = await (whole_of_all if given.full else brief_of_all)(muster, now)
    going_on = [run.id for run, task in zip(runs, rest, strict=True) if task.cancelled()]
    if not going_on:
        return {"done": True, "runs": found}
    ids = f"wait(ids={going_on})"
    return {"done": False, "runs": found, "next": f"still running: call {ids} again, or do something else meanwhile"}


class WaitProgress:
    """Tells the client of one wait how long it has lasted and how its runs stand.

    Progress must grow with every notification, and calls that are done need not: what grows is time.
    """

    def __init__(self, request: ToolRequest, runs: Sequence[Run], most: float) -> None:
        self._request, self._most = request, most
        self._states = {run.id: "" for run in runs}
        self._begun = request.server.clock.monotonic()
        self._told: float | None = None  # when the client was last notified

    async def tell(self, looked_for: RunId, run: Run) -> None:
        """Notify the client, not too often; `looked_for` is the run that was waited for, `run` the newest of it."""
        calls = f", {run.calls.done} of {run.calls.total} calls done" if run.calls.total else ""
        self._states[looked_for] = f"{word_of(run.workload)} {run.id} is {run.state}{calls}"
        now = self._request.server.clock.monotonic()
        if self._told is not None and now - self._told < PROGRESS_SECONDS:
            return
        self._told = now
        known = [words for words in self._states.values() if words]
        more = f"; and {len(known) - MAX_TOLD} more" if len(known) > MAX_TOLD else ""
        seconds = round(now - self._begun, 3)
        await self._request.progress(seconds, max(self._most, seconds), "; ".join(known[:MAX_TOLD]) + more)


async def _until_at_rest(muster: Muster, run: Run, progress: WaitProgress) -> None:
    """Follow a run to where it ends or waits for somebody, and tell of its progress."""
    looked_for = run.id
    async with await muster.runs.follow(run.id, run.last_seq) as watcher:
        while not await is_at_rest(muster, run):
            await progress.tell(looked_for, run)
            await watcher.take(LOOK_SECONDS)
            run = await find(muster, run.id)


async def is_at_rest(muster: Muster, run: Run) -> bool:
    """Return whether a run goes no further by itself: it is over, or waits for a review or an answer."""
    if run.state in TERMINAL:
        return True
    if run.state is not RunState.WAITING:
        return False
    return kind_of(run).in_slot or bool(await muster.runs.questions(run.id))


async def find(muster: Muster, reference: str) -> Run:
    """Return the run that an id or a name stands for, as it was last resumed."""
    return await muster.runs.end_of_lineage(await muster.runs.find(reference))


async def is_batch(muster: Muster, reference: str) -> bool:
    """Return whether an id is that of a batch, and not the name of a run that looks alike."""
    if not BATCH_ID.fullmatch(reference):
        return False
    try:
        await muster.runs.find(reference)
    except NotFound:
        return True
    return False


FOLLOWING = (
    CoordinatorTool(
        name="overview",
        description="Call this first. Lists the agents that you may name, with their kind (model, anthropic, openai: "
        "a model that answers; claude-code, cli: a coding agent with tools; program, http, python: the operator's own; "
        "human: a person; scripted: for trials); chains with their inputs, suites and councils; the pool of slots, the "
        "money that is left, and what waits for a decision.",
        takes=OverviewInput,
        scope="read",
        handle=overview,
        reads_only=True,
    ),
    CoordinatorTool(
        name="list_work",
        description="List tasks and runs that were started, the newest first, with state and cost. needs_you=true "
        "shows only what waits for a review, a permission or an answer.",
        takes=ListInput,
        scope="read",
        handle=list_work,
        reads_only=True,
    ),
    CoordinatorTool(
        name="wait",
        description="Wait until tasks or runs have ended or need a decision, at most timeout_secs (up to 300), and "
        "return how they stand; result reads whole outputs. If done is false, call it again.",
        takes=WaitInput,
        scope="read",
        handle=wait,
        reads_only=True,
    ),
)

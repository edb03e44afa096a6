"""An open Muster: starts, resumes, forks, replays and follows runs, for the command line and for Python programs."""

import asyncio
import math
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.app.batch_office import BatchOffice
from muster.app.directory import AgentDirectory
from muster.app.handle import RunHandle
from muster.app.project_workloads import ProjectWorkloads
from muster.domain.budget import Budgets, require_left
from muster.domain.call import Reply
from muster.domain.canonical import Json, plain_json
from muster.domain.data import SchemaLike, json_schema, require_data
from muster.domain.entry import Entry
from muster.domain.errors import BadArgument, Conflict, MusterError, NotFound, Overdraft, StopRun
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.process import OwnedProcess
from muster.domain.run import LIVE, REPLAYS, TERMINAL, Dispatch, NewRun, Origin, Reuse, Run, RunState, mode_of
from muster.engine.clock import Clock
from muster.engine.drive import Listener
from muster.engine.engine import Engine
from muster.engine.worker import Worker
from muster.settings import Settings, parse_budget
from muster.shapes.schema import JsonSchemas
from muster.store.base import Store

MOST_CONCURRENCY = 10_000
PAGE = 1000  # runs that are looked through at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How a run is to be done, apart from what."""

    name: str | None = None
    tags: tuple[str, ...] = ()
    budget: Microdollars | None = None
    timeout: float | None = None
    concurrency: int = 20
    dispatch: Dispatch = LIVE


class Muster:
    """An open store with an engine: starts, resumes, forks and replays runs."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        engine: Engine,
        clock: Clock,
        directory: AgentDirectory,
        workloads: ProjectWorkloads,
    ) -> None:
        self.settings, self.store, self.engine = settings, store, engine
        self.workloads = workloads
        self.directory = directory
        self._clock = clock
        self.batches = BatchOffice(store, engine.pool, clock)
        self.reaped: Sequence[OwnedProcess] = ()  # what dead drivers had left at work when this was opened
        self._driving: set[asyncio.Task[Run]] = set()
        self._stopped: StopRun | None = None

    async def ask(
        self,
        agent: str,
        prompt: str,
        *,
        system: str = "",
        schema: SchemaLike | None = None,
        max_tokens: int | None = None,
        budget_usd: str | float | None = None,
        dispatch: str | Dispatch = LIVE,
    ) -> Reply:
        """Ask one question, durably, and return the reply; Overdraft holds it when it exceeded a budget.

        With a `schema`, a JSON Schema or a Pydantic model, the reply has `data` that fits it; BadOutput holds a reply
        that does not.
        """
        spec: dict[str, Json] = {"agent": agent, "prompt": prompt, "system": system, "max_tokens": max_tokens}
        if schema is not None:
            spec["schema"] = json_schema(schema)
            JsonSchemas().require(spec["schema"])
        handle = await self.start("ask", spec, budget_usd=budget_usd, dispatch=dispatch)
        try:
            await handle.result()
        except Overdraft as error:
            error.result = await self._reply_to(handle.id)
            raise
        reply = await self._reply_to(handle.id)
        return reply if schema is None else require_data(reply, schema)

    async def _reply_to(self, question: RunId) -> Reply:
        entry = await self.entry(question, "ask")
        if entry is None or entry.reply is None:
            raise NotFound(f"run {question} has no reply")
        return entry.reply

    async def entry(self, run: RunId, key: str) -> Entry | None:
        """Return what a run remembers under a key; the reply to a request with a schema has its data."""
        entry = await self.store.journal.find(run, key)
        schema = entry.request.get("schema") if entry is not None and isinstance(entry.request, dict) else None
        if entry is None or entry.reply is None or not schema:
            return entry
        return replace(entry, reply=JsonSchemas().parse(entry.reply, schema))

    async def start(
        self,
        workload: str,
        spec: Json,
        *,
        budget_usd: str | float | None = None,
        name: str | None = None,
        tags: Sequence[str] = (),
        timeout: float | None = None,
        concurrency: int = 20,
        dispatch: str | Dispatch = LIVE,
        detach: bool = False,
        on_delta: Listener | None = None,
        origin: Origin | None = None,
    ) -> RunHandle:
        """Store a run and drive it in this process; with `detach` only until it waits for batches.

        With an origin it takes over what another run remembers, as far as the origin says.
        """
        self._require_going_on()
        order = self._order(budget_usd, name, tags, timeout, concurrency, dispatch)
        self.workloads.find(workload)
        run = await self._create(workload, spec, order, submitted=detach, origin=origin)
        return self.drive(run, on_delta, detach=detach)

    async def submit(
        self,
        workload: str,
        spec: Json,
        *,
        budget_usd: str | float | None = None,
        name: str | None = None,
        tags: Sequence[str] = (),
        timeout: float | None = None,
        concurrency: int = 20,
        dispatch: str | Dispatch = LIVE,
    ) -> RunHandle:
        """Store a run for the workers."""
        order = self._order(budget_usd, name, tags, timeout, concurrency, dispatch)
        run = await self._create(workload, spec, order, submitted=True)
        return RunHandle(self.store, self._clock, run.id, None, self.engine.sweep)

    async def resume(
        self, reference: str, *, budget_usd: str | float | None = None, on_delta: Listener | None = None
    ) -> RunHandle:
        """Go on with a run: the same one if it stands still, a new one with all its replies if it is over.

        Both spend from the budget that the run was started with; `budget_usd` sets a new total.
        """
        self._require_going_on()
        run = await self.prepare_resume(reference, budget_usd=budget_usd)
        return self.drive(run, on_delta)

    async def prepare_resume(self, reference: str, *, budget_usd: str | float | None = None) -> Run:
        """Give the run that will be driven on resume, made if need be."""
        run = await self.find(reference)
        cap = parse_budget(budget_usd)
        self.workloads.find(run.workload)
        if run.state is RunState.COMPLETED:
            raise Conflict(
                f"run {run.id} is completed; there is nothing to resume",
                suggestions=(f"muster runs fork {run.id} --from KEY",),
            )
        if run.state in TERMINAL:
            replayed = run.origin is not None and run.origin.reuse in REPLAYS  # then nobody is asked now either
            reuse = run.origin.reuse if run.origin and replayed else Reuse.REPLIES
            return await self._descend(run, reuse, cap=cap, budgets=await self.engine.budgets_of(run))
        if cap is not None:
            await self.store.desk.set_cap(run.id, cap)
        elif run.calls.done < run.calls.total:  # else what is left to do may cost nothing
            require_left(run.id, run.cap, run.total.settled)
        return await self.get(run)

    async def fork(self, reference: str, key: str, *, budget_usd: str | float | None = None) -> Run:
        """Make a run that takes over everything before a key and asks anew from there on."""
        run = await self.find(reference)
        if await self.store.journal.find(run.id, key) is None:
            raise NotFound(
                f"run {run.id} has nothing under the key {key!r}", suggestions=(f"muster runs show {run.id} --calls",)
            )
        cap = parse_budget(budget_usd) or run.cap
        return await self._descend(run, Reuse.REPLIES, cap=cap, fork_key=key)

    async def replay(self, reference: str) -> Run:
        """Make a run that takes every outcome from another and asks nobody."""
        run = await self.find(reference)
        return await self._descend(run, Reuse.REPLAY, cap=run.cap)

    def drive(self, run: Run, on_delta: Listener | None = None, *, detach: bool = False) -> RunHandle:
        """Drive a run in this process."""
        task = asyncio.get_running_loop().create_task(self.engine.drive(run.id, on_delta, detach=detach))
        self._driving.add(task)
        task.add_done_callback(self._driving.discard)
        return RunHandle(self.store, self._clock, run.id, task, self.engine.sweep)

    def stop(self, error: StopRun, *, now: bool) -> None:
        """Stop every run that this process drives; none is started or resumed here any more."""
        self._stopped = error
        self.engine.stop_all(error, now=now)

    def _require_going_on(self) -> None:
        if self._stopped is not None:
            raise self._stopped

    def watch(self, run: Run) -> RunHandle:
        """Follow a run that another process may drive."""
        return RunHandle(self.store, self._clock, run.id, None, self.engine.sweep)

    async def newest(self, workloads: Collection[str]) -> Run | None:
        """Return the newest run of some workloads that is nobody's child."""
        limit = 0
        while True:
            limit += PAGE
            runs = await self.store.runs.roots(limit=limit)
            found = next((run for run in runs if run.workload in workloads), None)
            if found is not None or len(runs) < limit:
                return found

    async def find(self, reference: str) -> Run:
        """Give the run that an id, a unique beginning of one, a name (the newest with it) or `last` stands for."""
        if reference == "last":
            runs = await self.store.runs.roots(limit=1)
            if not runs:
                raise NotFound("this store has no runs yet", suggestions=("muster demo", "muster ask sim/echo hello"))
            return runs[0]
        found = await self.store.runs.match(reference)
        exact = [run for run in found if run.id == reference] or [run for run in found if run.name == reference]
        if exact:
            return exact[0]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(run.id for run in found[:5])
            raise BadArgument(
                f"{reference!r} stands for {len(found)} runs: {ids}", suggestions=("write more of the id",)
            )
        raise NotFound(f"there is no run {reference!r} in {self.settings.database}", suggestions=("muster runs list",))

    async def get(self, run: Run) -> Run:
        """Read a run anew."""
        found = await self.store.runs.get(run.id)
        if found is None:
            raise NotFound(f"there is no run {run.id}")
        return found

    async def cancel(self, reference: str) -> Run:
        """Ask for a run to be canceled; one that nobody drives is canceled at once, with its batches."""
        await self.engine.sweep()
        run = await self.find(reference)
        canceled = await self.store.desk.cancel(run.id, self._clock.now())
        if canceled.state is RunState.CANCELED:
            await self.engine.cancel_batches(run.id)
        return await self.get(canceled)

    async def delete(self, run: RunId) -> None:
        """Forget a run with everything in it."""
        await self.store.desk.delete(run, self._clock.now())

    async def vacuum(self) -> None:
        """Give the free space of the store back to the disk; refused while runs are driven."""
        await self.engine.sweep()
        await self.store.desk.finish_deletions()
        await self.store.housekeeping.vacuum(self.engine.driver, self._clock.now())

    async def queue(self, run: Run) -> Run:
        """Hand a run that stands still to the workers."""
        return await self.store.desk.requeue(run.id, self._clock.now())

    async def export_run(self, run: Run, path: Path) -> int:
        """Write a run to a file."""
        from muster.reports.cassette import export_run

        return await export_run(self.store, run, path)

    async def import_run(self, path: Path) -> Run:
        """Read a run from a file."""
        from muster.reports.cassette import import_run

        return await import_run(self.store, path)

    def worker(
        self, *, most: int, on_end: Callable[[Run], None], on_error: Callable[[RunId, MusterError], None]
    ) -> Worker:
        """Make a worker of this process; raises BadConfiguration when it could not know every workload."""
        self.workloads.load()
        return Worker(self.store, self.engine, self._clock, most=most, on_end=on_end, on_error=on_error)

    async def close(self) -> None:
        """Let go of every run that is being driven here; they can be resumed.

        Calls on the wire are answered first; canceled meanwhile, as by a second Ctrl-C, it cuts them.
        """
        if self._driving:
            await self.engine.let_go("the program closed the store", set(self._driving))

    def _order(
        self,
        budget_usd: str | float | None,
        name: str | None,
        tags: Iterable[str],
        timeout: float | None,
        concurrency: int,
        dispatch: str | Dispatch,
    ) -> Order:
        if not 1 <= concurrency <= MOST_CONCURRENCY:
            raise BadArgument(f"concurrency must be between 1 and {MOST_CONCURRENCY}, not {concurrency}")
        if timeout is not None and not 0 < timeout < math.inf:
            raise BadArgument(f"a timeout must be more than 0 seconds, not {timeout:g}")
        if name == "last":
            raise BadArgument("`last` means the newest run and cannot be the name of one")
        budget = parse_budget(budget_usd)
        return Order(
            name=name,
            tags=tuple(tags),
            budget=self.settings.run_cap if budget is None else budget,
            timeout=timeout,
            concurrency=concurrency,
            dispatch=Dispatch(mode=mode_of(dispatch)) if isinstance(dispatch, str) else dispatch,
        )

    async def _create(
        self, workload: str, spec: Json, order: Order, *, submitted: bool = False, origin: Origin | None = None
    ) -> Run:
        return await self.engine.create(
            NewRun(
                id=self.engine.new_id(),
                workload=workload,
                spec=plain_json(spec, "the spec of the run"),
                created_at=self._clock.now(),
                name=order.name,
                tags=order.tags,
                seed=random.SystemRandom().getrandbits(31),
                cap=order.budget,
                timeout=order.timeout,
                concurrency=order.concurrency,
                submitted=submitted,
                dispatch=order.dispatch,
                origin=origin,
            )
        )

    async def _descend(
        self,
        run: Run,
        reuse: Reuse,
        *,
        cap: Microdollars | None,
        fork_key: str | None = None,
        budgets: Budgets | None = None,
    ) -> Run:
        """Make a run that comes from another; it has a budget of its own, unless it continues one."""
        return await self.engine.create(
            NewRun(
                id=self.engine.new_id(),
                workload=run.workload,
                spec=run.spec,
                created_at=self._clock.now(),
                name=run.name,
                tags=run.tags,
                seed=run.seed,
                cap=cap,
                timeout=run.timeout,
                concurrency=run.concurrency,
                dispatch=run.dispatch,
                origin=Origin(run=run.id, reuse=reuse, fork_key=fork_key),
                budgets=budgets,
            )
        )

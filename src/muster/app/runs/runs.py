"""Runs: started, resumed, forked, replayed and followed. `Muster.runs`."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from muster.app.backend import Backend
from muster.app.runs.actions import RunActions
from muster.app.runs.follow import RunWatcher
from muster.app.runs.handle import RunHandle
from muster.app.runs.options import (
    RunOptions,
    descendant,
    new_run,
)
from muster.domain.agent import LoweredLimit
from muster.domain.budget import Budgets, UserBudget, require_left, require_server_left
from muster.domain.canonical import Json
from muster.domain.errors import (
    BadArgument,
    Conflict,
    Interrupted,
    NotFound,
    QueueFailed,
    RunFailed,
    StopRun,
)
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.rules import CURRENT_RULES
from muster.domain.run import LIVE, REPLAYS, TERMINAL, Dispatch, Origin, Reuse, Run, RunState, mode_of
from muster.engine.drive import Leave, Listener
from muster.engine.workload import Preparation
from muster.settings import parse_budget

# Raises what would keep a run of a workload from being done with its spec; True: it is to be driven in this process.
Admission = Callable[[str, Json, RunOptions, bool], None]


class Runs(RunActions):
    """The runs of an open Muster."""

    def __init__(self, backend: Backend, admit: Admission) -> None:
        super().__init__(backend)
        self._admit = admit
        self._directory, self._workloads = backend.directory, backend.workloads
        self._feeds, self._queue = backend.feeds, backend.queue
        self._driving: set[asyncio.Task[Run]] = set()
        self._stopped: StopRun | None = None

    @property
    def user_budget(self) -> UserBudget | None:
        """The budget of the user, that runs which they start count under."""
        return self._user.budget

    async def requested(self) -> Run | None:
        """Return the run that the request of the user started before, under its key or with the id that it chose.

        Raises Conflict for another request under the key or the id.
        """
        request, chosen = self._user.request, self._user.run
        if request is None:
            return None
        found = await self._store.runs.requested(self._user.name, request)
        if found is not None or chosen is None:
            return found
        taken = await self._store.runs.get(chosen)
        if taken is None:
            return None
        if taken.owner != self._user.name or taken.request is None or taken.request.digest != request.digest:
            raise Conflict(
                f"id {chosen} is already used by another request", suggestions=("use a new one for each request",)
            )
        return taken

    async def starts(self, seconds: float) -> Sequence[tuple[str, float]]:
        """Return the clients whose requests started runs in the last seconds, and when, the oldest first."""
        return await self._store.queue.starts(self._clock.now() - seconds)

    def new_id(self) -> RunId:
        """Return the id of the run that the user starts next: the one that was chosen for it, or a new one."""
        return self._user.run or self._engine.new_id()

    async def start(
        self,
        workload: str,
        spec: Json,
        options: RunOptions | None = None,
        *,
        detach: bool = False,
        on_delta: Listener | None = None,
        origin: Origin | None = None,
    ) -> RunHandle:
        """Store a run and drive it in this process; with `detach` only until it waits for batches.

        With an origin it takes over what another run remembers, as far as the origin says.
        """
        options = options or self.options()
        self._workloads.find(workload)
        self._workloads.check(workload, spec)
        if origin is None:
            self._admit(workload, spec, options, True)
        return await self.start_checked(workload, spec, options, detach=detach, on_delta=on_delta, origin=origin)

    async def start_checked(
        self,
        workload: str,
        spec: Json,
        options: RunOptions | None = None,
        *,
        detach: bool = False,
        on_delta: Listener | None = None,
        origin: Origin | None = None,
        before: Preparation | None = None,
    ) -> RunHandle:
        """Store a run whose agents and files were checked, and drive it in this process.

        `before` does steps of the workload in advance; the workload must be able to do without.
        """
        self._require_going_on()
        self._workloads.find(workload)
        self._workloads.check(workload, spec)
        run = await self._create(workload, spec, options or self.options(), submitted=detach, origin=origin)
        return self.drive(run, on_delta, detach=detach, before=before)

    async def create(self, workload: str, spec: Json, options: RunOptions, run: RunId, budgets: Budgets) -> Run:
        """Store a run under budgets of its part; nothing drives it yet."""
        self._workloads.check(workload, spec)
        await self._require_payable()
        new = new_run(run, self._clock.now(), workload, spec, options)
        new = replace(new, budgets=budgets, request=self._user.request)
        return await self._engine.create(new, level=self._user.level)

    async def submit(
        self, workload: str, spec: Json, options: RunOptions | None = None, *, origin: Origin | None = None
    ) -> RunHandle:
        """Store a run for the workers; its keys are theirs to have, but its agents must be known."""
        chosen = options or self.options()
        self._workloads.check(workload, spec)
        self._admit(workload, spec, chosen, False)
        run = await self._create(workload, spec, chosen, submitted=True, origin=origin)
        await self._announce(run)
        return self.watch(run)

    async def resume(
        self, reference: str, *, budget_usd: str | float | None = None, on_delta: Listener | None = None
    ) -> RunHandle:
        """Go on with a run: the same one if it stands still, a new one with all its replies if it is over.

        Both spend from the budget that the run was started with; `budget_usd` sets a new total.
        """
        self._require_going_on()
        return self.drive(await self.prepare_resume(reference, budget_usd=budget_usd), on_delta)

    async def prepare_resume(self, reference: str, *, budget_usd: str | float | None = None, here: bool = True) -> Run:
        """Return the run that will be driven on resume, made if need be; raises before anything changes.

        If it is to be driven in this process (`here`), the batches that it waits for must be within reach.
        """
        run = await self.find(reference)
        if not self._engine.is_abandoned(run):
            require_not_driven(run)
        cap = parse_budget(budget_usd)
        self._workloads.find(run.workload)
        if here:
            await self.require_batches(run.id)
        if run.state is RunState.COMPLETED:
            raise Conflict(
                f"run {run.id} completed; there is nothing to resume",
                suggestions=(f"muster runs fork {run.id} --from KEY",),
            )
        if run.state in TERMINAL:
            replayed = run.origin is not None and run.origin.reuse in REPLAYS  # then nobody is asked now either
            reuse = run.origin.reuse if run.origin and replayed else Reuse.REPLIES
            return await self._descend(run, reuse, cap=cap, budgets=await self._engine.budgets_of(run))
        await self._require_counted(run)
        if cap is not None:
            await self._store.commands.set_cap(run.id, cap)
        elif run.calls.done < run.calls.total:  # else what is left to do may cost nothing
            require_left(run.id, run.cap, run.total.settled)
        return await self.get(run.id)

    async def require_batches(self, run: RunId) -> None:
        """Raise BadConfiguration when a batch that a run waits for is out of reach: a key is missing or another's."""
        for batch in (await self.batches_of(run)).under_way:
            self._directory.reopen(batch.endpoint)

    async def queue(self, run: RunId) -> Run:
        """Hand a run that stands still to the workers."""
        queued = await self._store.commands.requeue(run, self._clock.now())
        await self._announce(queued)
        return queued

    async def _announce(self, run: Run) -> None:
        """Tell workers on other machines of a run; without the queue they find it in the store a little later.

        A run of a job is offered to the worker that took the job: another that was told would only be in its way.
        """
        if self._queue is not None and not self._user.queued:
            with contextlib.suppress(QueueFailed):
                await self._queue.get().announce(run)

    async def fork(self, reference: str, key: str, *, budget_usd: str | float | None = None) -> Run:
        """Make a run that takes over everything before a key and asks anew from there on."""
        run = await self.find(reference)
        if await self._store.journal.find(run.id, key) is None:
            raise NotFound(
                f"run {run.id} has no entry under the key {key!r}", suggestions=(f"muster runs show {run.id} --calls",)
            )
        cap = parse_budget(budget_usd) or run.cap
        return await self._descend(run, Reuse.REPLIES, cap=cap, fork_key=key)

    async def replay(self, reference: str) -> Run:
        """Make a run that takes every outcome from another and makes no calls."""
        run = await self.find(reference)
        return await self._descend(run, Reuse.REPLAY, cap=run.cap)

    def drive(
        self,
        run: Run,
        on_delta: Listener | None = None,
        *,
        detach: bool = False,
        before: Preparation | None = None,
    ) -> RunHandle:
        """Drive a run in this process."""
        leave = Leave.FOR_BATCHES if detach else Leave.NEVER
        driving = self._engine.drive(run.id, on_delta, leave=leave, before=before)
        task = asyncio.get_running_loop().create_task(driving)
        self._driving.add(task)
        task.add_done_callback(self._driving.discard)
        return self._handle(run.id, task)

    def watch(self, run: Run) -> RunHandle:
        """Follow a run that another process may drive."""
        return self._handle(run.id, None)

    async def follow(self, reference: str, after: int = 0) -> RunWatcher:
        """Return a watcher of a run, which many may share at the cost of one: every event after a number, then live.

        Unlike `watch` it goes on while the run stands still, and is told of text while it is being written.
        """
        return self._feeds.follow(await self.find(reference), after)

    @property
    def watchers(self) -> int:
        """Return how many watchers of `follow` this process has."""
        return self._feeds.watchers

    async def close_watchers(self) -> None:
        """End every watcher of this process; whoever follows can go on in another one after its last event."""
        await self._feeds.close()

    @property
    def calls_on_wire(self) -> int:
        """Return how many calls of runs driven here wait for their agents."""
        return self._engine.on_wire

    @property
    def lowered_limits(self) -> Sequence[LoweredLimit]:
        """Return the agents that may write less than was asked of them in runs that were driven here."""
        return self._engine.lowered_limits

    @property
    def use_batches(self) -> bool:
        """Return whether runs driven here have parked calls, or taken up batches, since the store was opened."""
        return self._engine.uses_batches

    @property
    def stopping(self) -> bool:
        """Return whether this process was told to stop; it drives nothing new then."""
        return self._stopped is not None

    def stop(self, error: StopRun, *, now: bool) -> None:
        """Stop every run that this process drives; none is started or resumed here any more."""
        self._stopped = error
        self._engine.stop_all(error, now=now)

    async def close(self) -> None:
        """Let go of every run that is being driven here; they can be resumed.

        Calls on the wire are answered first; canceled meanwhile, as by a second Ctrl-C, it cuts them.
        """
        if self._driving:
            await self._engine.let_go("the program closed the store", set(self._driving))

    def options(
        self,
        *,
        budget_usd: str | float | None = None,
        name: str | None = None,
        tags: Iterable[str] = (),
        timeout: float | None = None,
        concurrency: int = 20,
        dispatch: str | Dispatch = LIVE,
    ) -> RunOptions:
        """Return checked options; without a budget, that of the settings."""
        budget = parse_budget(budget_usd)
        if not isinstance(dispatch, str | Dispatch):
            raise BadArgument(f"must be live or batch, not {dispatch!r}", argument="dispatch")
        if not isinstance(tags, Iterable):
            raise BadArgument(f"tags must be a list of strings, not {tags!r}")
        if isinstance(tags, str):
            raise BadArgument(f"tags must be a list of strings, not {tags!r}", suggestions=(f"write [{tags!r}]",))
        return RunOptions(
            name=name,
            tags=tuple(tags),
            budget=self._settings.run_cap if budget is None else budget,
            timeout=timeout,
            concurrency=concurrency,
            dispatch=Dispatch(mode=mode_of(dispatch)) if isinstance(dispatch, str) else dispatch,
        )

    def _handle(self, run: RunId, task: "asyncio.Task[Run] | None") -> RunHandle:
        return RunHandle(self, self._store, run, task, self._engine.sweep)

    def _require_going_on(self) -> None:
        if self._stopped is not None:
            raise self._stopped

    async def _create(
        self, workload: str, spec: Json, options: RunOptions, *, submitted: bool = False, origin: Origin | None = None
    ) -> Run:
        await self._require_payable()
        id_, now = self.new_id(), self._clock.now()
        source = None if origin is None else await self._store.runs.get(origin.run)
        rules = CURRENT_RULES if source is None else source.rules  # else it would not ask what that run asked
        new = new_run(id_, now, workload, spec, options, submitted=submitted, origin=origin, rules=rules)
        new = replace(new, request=self._user.request)
        return await self._engine.create(new, self._user.budget, self._user.level)

    async def _descend(
        self,
        run: Run,
        reuse: Reuse,
        *,
        cap: Microdollars | None,
        fork_key: str | None = None,
        budgets: Budgets | None = None,
    ) -> Run:
        await self._require_payable()
        id_, now = self.new_id(), self._clock.now()
        new = descendant(id_, now, run, reuse, cap=cap, fork_key=fork_key, budgets=budgets)
        new = replace(new, request=self._user.request)
        return await self._engine.create(new, self._user.budget, self._user.level)

    async def _require_payable(self) -> None:
        """Raise BudgetExhausted when the server through which the user comes has nothing left to spend."""
        if self._user.level is not None:
            require_server_left(self._user.level, await self._server_balance())


def require_completed(run: Run) -> Run:
    """Return the run if it is completed, or waits as it was told to; else raise what it came to."""
    if run.state is RunState.COMPLETED or run.is_detached:
        return run
    if run.state is RunState.INTERRUPTED:
        go_on = f"muster runs resume {run.id}"
        why = f" ({run.error['message']})" if run.error else ""
        raise Interrupted(f"run {run.id} is interrupted{why}; continue with: {go_on}", suggestions=(go_on,))
    raise RunFailed(run.id, str(run.state), run.ended_reason, run.error)


def require_not_driven(run: Run) -> None:
    """Raise Conflict for a run that a living process drives."""
    if run.is_driven:
        raise Conflict(
            f"run {run.id} is being executed by {run.lease.driver}",
            suggestions=(f"muster runs watch {run.id}", f"muster runs cancel {run.id}"),
        )

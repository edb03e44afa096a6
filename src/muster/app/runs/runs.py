"""Runs: started, resumed, forked, replayed and followed. `Muster.runs`."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from muster.app.base.backend import Backend
from muster.app.base.feeds import RunWatcher
from muster.app.runs.continuations import RunContinuations
from muster.app.runs.handle import RunHandle
from muster.app.runs.options import (
    RunOptions,
    new_run,
    terms_of,
)
from muster.domain.budget import Budgets, UserBudget
from muster.domain.canonical import Json
from muster.domain.content import AgentNote
from muster.domain.dispatch import DEFAULT_CONCURRENCY, LIVE, MODES, Dispatch, mode_of
from muster.domain.errors import (
    BadArgument,
    Conflict,
    Interrupted,
    RunFailed,
    StopRun,
)
from muster.domain.ids import RunId
from muster.domain.rules import CURRENT_RULES, counted_anew
from muster.domain.run import Origin, Reuse, Run, RunState
from muster.domain.run_order import RunOrder
from muster.engine.drive import Leave, Listener
from muster.engine.queue.base import is_due
from muster.engine.workload import Preparation
from muster.settings import parse_budget

# Raises what would keep a run of a workload from being done with its spec; True: it is to be driven in this process.
Admission = Callable[[str, Json, RunOptions, bool], None]


class Runs(RunContinuations):
    """The runs of an open Muster."""

    def __init__(self, backend: Backend, admit: Admission) -> None:
        super().__init__(backend)
        self._admit = admit
        self._feeds = backend.feeds
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
        if taken.owner != self._user.name:  # whose run it is, and whether it still exists, is nobody else's business
            raise Conflict(f"id {chosen} cannot be used; choose another one")
        if taken.request is None or not request.asks_for(taken.request):
            raise Conflict(
                f"id {chosen} is already used by another request", suggestions=("use a new one for each request",)
            )
        return taken

    async def starts(self, seconds: float) -> Sequence[tuple[str, float]]:
        """Return the clients whose requests started runs in the last seconds, and when, the oldest first."""
        return await self._store.queue.starts(self._clock.now() - seconds)

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
        options = options or self.options()
        run = await self._create(workload, spec, options, submitted=detach, origin=origin)
        return self.drive(run, on_delta, detach=detach, before=before, shared=options.is_only)

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
        run = await self._announce(await self._create(workload, spec, chosen, submitted=True, origin=origin))
        return self.watch(run, to_end=True)

    async def resume(
        self, reference: str, *, budget_usd: str | float | None = None, on_delta: Listener | None = None
    ) -> RunHandle:
        """Go on with a run: with its continuation if it has one, else with itself, else with a new one.

        All of them spend from the budget that the first was started with; `budget_usd` sets a new total. One that has
        completed is not driven: its result is the answer. Raises Conflict for one that is driven elsewhere.
        """
        self._require_going_on()
        return self.go_on(await self.prepare_resume(reference, budget_usd=budget_usd), on_delta)

    async def follow_or_resume(
        self, run: Run, *, budget_usd: str | float | None = None, on_delta: Listener | None = None
    ) -> RunHandle:
        """Go on with a run as `resume` does, or follow it if somebody drives it; a total that it has is no new one.

        Raises Conflict for one that was canceled, which only `resume` goes on with.
        """
        self._require_going_on()
        end = await self.end_of_lineage(run)
        while not self._is_at_work(end):
            _require_not_canceled(end)
            total = None if parse_budget(budget_usd) == end.cap else budget_usd
            try:
                return self.go_on(await self.prepare_resume(end.id, budget_usd=total), on_delta, shared=True)
            except Conflict:  # somebody may have been faster
                end = await self.end_of_lineage(run)
                if not self._is_at_work(end):
                    raise
        return self.watch(end, to_end=end.submitted)

    async def follow_or_submit(self, run: Run, *, budget_usd: str | float | None = None) -> RunHandle:
        """Hand a run that goes on to the workers, or follow it if somebody drives it, as `follow_or_resume` does."""
        end = await self.end_of_lineage(run)
        if not self._is_at_work(end):
            _require_not_canceled(end)
            total = None if parse_budget(budget_usd) == end.cap else budget_usd
            end = await self.submit_resume(end.id, budget_usd=total)
        return self.watch(end, to_end=end.submitted)

    def _is_at_work(self, run: Run) -> bool:
        """Return whether somebody drives a run, or is about to in this process."""
        return self._engine.is_beginning(run.id) or (run.is_driven and not self._engine.is_abandoned(run))

    def go_on(self, run: Run, on_delta: Listener | None = None, *, shared: bool = False) -> RunHandle:
        """Drive a run that was prepared to go on; one that has completed is only looked at."""
        return self.watch(run) if run.state is RunState.COMPLETED else self.drive(run, on_delta, shared=shared)

    def drive(
        self,
        run: Run,
        on_delta: Listener | None = None,
        *,
        detach: bool = False,
        before: Preparation | None = None,
        shared: bool = False,
    ) -> RunHandle:
        """Drive a run in this process; one that is `shared` is followed when another one was faster to drive it."""
        leave = Leave.FOR_BATCHES if detach else Leave.NEVER
        raised: list[Exception] = []
        driving = self._engine.drive(run.id, on_delta, leave=leave, before=before, on_error=raised.append)
        task = asyncio.get_running_loop().create_task(driving)
        self._driving.add(task)
        task.add_done_callback(self._driving.discard)
        return RunHandle(self, self._store, run.id, task, self._engine.sweep_in_turn, raised, shared=shared)

    def watch(self, run: Run, *, to_end: bool = False) -> RunHandle:
        """Follow a run that another process may drive; `to_end` also while it waits for a worker to go on with it."""
        goes_on = _to_end if to_end else self._goes_on
        return RunHandle(self, self._store, run.id, None, self._engine.sweep_in_turn, goes_on=goes_on)

    async def _goes_on(self, run: Run) -> bool:
        """Return whether workers go on with a run that stands still; one that waits may wait for days for the first."""
        if run.parent is not None or not is_due(run):
            return False
        return run.state is not RunState.WAITING or bool(await self._engine.workers())

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
    def only_wait(self) -> bool:
        """Return whether the runs that are driven here only wait: for a time, a signal, a batch or another attempt."""
        return self._engine.only_waits

    @property
    def unstored_answers(self) -> int:
        """Return how many answers of calls wait until they can be stored."""
        return self._store.journal.unstored

    @property
    def agent_notes(self) -> Sequence[AgentNote]:
        """Return what is to be known of the agents of runs that were driven here."""
        return self._engine.agent_notes

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
        concurrency: int = DEFAULT_CONCURRENCY,
        dispatch: str | Dispatch = LIVE,
    ) -> RunOptions:
        """Return checked options; without a budget, that of the settings."""
        budget = parse_budget(budget_usd)
        if not isinstance(dispatch, str | Dispatch):
            raise BadArgument(f"must be {MODES}, not {dispatch!r}", argument="dispatch")
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

    def ordered(self, order: RunOrder, dispatch: Dispatch | None = None) -> RunOptions:
        """Return the options of a run that was ordered; without a budget, that of the settings."""
        return self.options(**terms_of(order, dispatch))

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
        if origin is not None and origin.reuse is Reuse.CALLS:
            rules = counted_anew(rules)
        new = new_run(id_, now, workload, spec, options, submitted=submitted, origin=origin, rules=rules)
        new = replace(new, request=self._user.request)
        return await self._engine.create(new, self._user.budget, self._user.level)


def require_completed(run: Run) -> Run:
    """Return the run if it is completed, or waits as it was told to; else raise what it came to."""
    if run.state is RunState.COMPLETED or run.is_detached:
        return run
    if run.state is RunState.INTERRUPTED:
        go_on = f"muster runs resume {run.id}"
        why = f" ({run.error['message']})" if run.error else ""
        raise Interrupted(f"run {run.id} is interrupted{why}; continue with: {go_on}", suggestions=(go_on,))
    raise RunFailed(run.id, str(run.state), run.ended_reason, run.error)


def _require_not_canceled(run: Run) -> None:
    """Raise Conflict for a run that somebody has canceled: a program that is started again does not know of that."""
    if run.state is RunState.CANCELED:
        raise Conflict(
            f"run {run.id}{f', named {run.name!r},' if run.name else ''} was canceled",
            suggestions=(
                f'to go on with it all the same: await m.resume("{run.id}"), or muster runs resume {run.id}',
                "to begin anew: start it once without resume=True, or under another name",
            ),
        )


async def _to_end(_: Run) -> bool:
    return True

"""One run driven by this process: from the claim to the release, with its heartbeat and its clock."""

import asyncio
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

from muster.domain.agent import CATCH_UP, LATE
from muster.domain.canonical import Json, plain_json
from muster.domain.entry import AwaitedSignal
from muster.domain.errors import (
    AwaitsSignal,
    BudgetExhausted,
    Interrupted,
    LeaseLost,
    LeftWaiting,
    MusterError,
    RunCanceled,
    RunTimedOut,
    StopRun,
    StoreFailed,
)
from muster.domain.ids import RunId
from muster.domain.run import TRACEBACK, Run, RunState
from muster.engine.base.clock import STEP, Stopwatch, Ticks, turns
from muster.engine.base.driven_run import DrivenRun
from muster.engine.base.signals import Receiver
from muster.engine.calls.admission import RunPlaces
from muster.engine.calls.path import CallPath
from muster.engine.calls.state import CallServices
from muster.engine.context import Context, require_awaited, tell_unused
from muster.engine.workload import Workload
from muster.store.base import RunRelease

LEASE_SECONDS = 12.0  # so that another machine goes on with the run of a dead driver within 15 seconds
BEAT_SECONDS = 1.0
MIN_LOOK_SECONDS = 0.02
SHORT_WAIT_SECONDS = 60.0
LEAVE_LOOK_SECONDS = 0.05

_NO_ERRORS = frozenset({"done", Interrupted.code, LeftWaiting.code, AwaitsSignal.code})

_STATES: Mapping[type[StopRun], RunState] = {
    RunCanceled: RunState.CANCELED,
    RunTimedOut: RunState.TIMEOUT,
    Interrupted: RunState.INTERRUPTED,
    LeftWaiting: RunState.WAITING,
    StoreFailed: RunState.INTERRUPTED,  # nothing is wrong with the run; it goes on when the disk does
}


class Leave(StrEnum):
    """When a driver lets go of a run that goes on without it."""

    NEVER = "never"
    FOR_SIGNALS = "signals"  # when it waits for nothing else
    FOR_BATCHES = "batches"  # also when it waits for batches that the providers have


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadOutcome:
    """What a workload came to."""

    result: Json = None
    error: BaseException | None = None
    stop: StopRun | None = None  # that was raised to it, and that it may have caught


class ChildDrive(Protocol):
    """A child run under its parent: one that this process drives, or one that any worker may drive."""

    over: asyncio.Event

    @property
    def awaits_shortly(self) -> bool:
        """Return whether the time of a signal that is waited for is over soon."""

    @property
    def all_parked(self) -> bool:
        """Return whether everything in it waits in batches or for signals."""

    @property
    def any_parked(self) -> bool:
        """Return whether a call of it waits in a batch."""

    @property
    def handed_in(self) -> bool:
        """Return whether the providers have everything that it waits for."""

    def stop(self, error: StopRun, *, now: bool) -> None:
        """Stop: `now` closes what is on the wire."""


class Drive:
    """Runs a workload, keeps its lease, and ends it when told, when its time is up, or when it is done."""

    def __init__(
        self,
        services: CallServices,
        driven: DrivenRun,
        *,
        workload: Workload,
        context: Context,
        path: CallPath,
        receiver: Receiver,
        beats: Ticks,
        leave: Leave = Leave.NEVER,
    ) -> None:
        self._with, self._beats = services, beats
        self._run, self._epoch, self._activity = driven.run, driven.epoch, driven.activity
        self._workload, self._context, self._path = workload, context, path
        self._receiver, self._leave = receiver, leave
        self._awaited: tuple[AwaitedSignal, ...] = ()  # when it was told to let go for that
        self._stopwatch: Stopwatch = driven.activity.stopwatch
        self._stop: StopRun | None = None
        self._raised: StopRun | None = None  # to the workload, while it worked
        self._now = False  # whether calls on the wire were cut
        self._task: asyncio.Task[Json] | None = None
        self._helpers: set[asyncio.Task[None]] = set()
        self._abandoned = asyncio.Event()
        self.children: set[ChildDrive] = set()
        self.over = asyncio.Event()
        self.ended: Run | None = None  # as it was let go of

    @property
    def run(self) -> Run:
        """The run as it was when it was claimed."""
        return self._run

    @property
    def awaits_shortly(self) -> bool:
        """Return whether the time of a signal that is waited for is over soon: a pause, for which nobody lets go."""
        soon = self._with.clock.now() + SHORT_WAIT_SECONDS
        own = any(one.until is not None and one.until <= soon for one in self._receiver.awaited)
        return own or any(child.awaits_shortly for child in self.children)

    @property
    def only_waits(self) -> bool:
        """Return whether nothing is at work in this run but, it may be, its children."""
        return self._activity.only_waits or (self._activity.open == 0 and bool(self.children))

    @property
    def all_parked(self) -> bool:
        """Return whether everything in this run, its children too, waits in batches or for signals."""
        own = self._activity.all_parked or (self._activity.open == 0 and bool(self.children))
        return own and all(child.all_parked for child in self.children)

    @property
    def any_parked(self) -> bool:
        """Return whether a call of this run or its children waits in a batch."""
        return self._activity.parked > 0 or any(child.any_parked for child in self.children)

    @property
    def handed_in(self) -> bool:
        """Return whether the providers have everything that this run waits for."""
        return self._with.batcher.get().handed_in(self._run.id) and all(child.handed_in for child in self.children)

    def stop(self, error: StopRun, *, now: bool) -> None:
        """Stop: `now` closes what is on the wire, else calls on the wire are waited for."""
        if self._stop is None and isinstance(error, AwaitsSignal):
            self._awaited = self._receiver.awaited
        self._stop = self._stop or error
        self._path.halt.tell(error)
        for child in tuple(self.children):
            child.stop(error, now=now)
        if now:
            self._now = True
            self._path.halt.release()
            self._path.wires.cut()
            self._cancel()
            self._help(self._abandon())
        else:
            self._path.halt.hold()
            self._help(self._cancel_when_quiet())

    @property
    def places(self) -> RunPlaces:
        """The places for calls, which children share: the concurrency of a run is that of all its calls."""
        return self._path.places

    @property
    def stopping(self) -> bool:
        """Return whether it was told to stop, rather than has ended."""
        return self._stop is not None

    def drives(self, run: RunId) -> bool:
        """Return whether a child is driven here under this run."""
        return any(isinstance(child, Drive) and child.run.id == run for child in self.children)

    def adopt(self, child: ChildDrive) -> None:
        """Take over a child; one that was claimed while this run was told to stop is told so too."""
        self.children.add(child)
        if self._stop is not None:
            child.stop(self._stop, now=self._now)

    async def to_end(self) -> Run:
        """Drive the run until it is over or let go, and give it as it then is; canceled, let go of it first."""
        ending = asyncio.get_running_loop().create_task(self._to_end())
        ending.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            self.stop(Interrupted("the program stopped waiting for the run"), now=True)
            await asyncio.wait({ending})
            raise
        finally:
            self.over.set()

    async def _to_end(self) -> Run:
        if self._stop is None:
            await self._work()
        # Else it was told to stop before it began.
        self.ended = await self._release(self._outcome())
        return self.ended

    async def _work(self) -> None:
        self._task = asyncio.get_running_loop().create_task(_enter(self._workload, self._context, self._run.spec))
        self._help(self._keep_lease())
        if self._run.timeout is not None:
            self._help(self._watch_time(self._run.timeout))
        if self._leave is not Leave.NEVER:
            self._help(self._leave_when_waiting())
        await self._unless_abandoned(self._task)
        self._raised = self._path.halt.raised  # what is refused from here on is only what the workload left behind
        await self._close(self._outcome())
        for helper in self._helpers:
            helper.cancel()

    async def _close(self, outcome: WorkloadOutcome) -> None:
        """End what the workload left behind: of one that failed or was told to stop, calls on the wire are answered."""
        why = self._stop or Interrupted(f"run {self._run.id} has ended")
        self._path.halt.tell(why)
        waits = not self._now and (self._stop or outcome.stop or outcome.error) is not None
        for child in tuple(self.children):
            child.stop(why, now=not waits)
        if waits:
            quiet = asyncio.get_running_loop().create_task(self._quiet())
            await self._unless_abandoned(quiet)
            quiet.cancel()
        await self._drain()
        await self._children_over()

    async def _drain(self) -> None:
        """Wait until calls are closed; what a driver without a lease still writes may wait for ever, and is refused."""
        if not isinstance(self._stop, LeaseLost):
            await self._path.drain()
            return
        draining = asyncio.get_running_loop().create_task(self._path.drain())
        await self._unless_abandoned(draining)
        draining.cancel()

    async def _unless_abandoned(self, task: "asyncio.Task[Any]") -> None:
        """Wait for a task, but no longer than a run that is cut may take to let go."""
        abandoned = asyncio.ensure_future(self._abandoned.wait())
        await asyncio.wait({task, abandoned}, return_when=asyncio.FIRST_COMPLETED)
        abandoned.cancel()

    def _outcome(self) -> WorkloadOutcome:
        """Return what the workload came to; without a result and an error of its own it was canceled."""
        task = self._task
        if task is None or not task.done() or task.cancelled():
            return WorkloadOutcome(error=asyncio.CancelledError(), stop=self._raised)
        error = task.exception()
        return WorkloadOutcome(result=None if error else task.result(), error=error, stop=self._raised)

    async def _release(self, outcome: WorkloadOutcome) -> Run:
        if isinstance(self._stop, LeaseLost):
            raise self._stop
        ending = await self._with_overdraft(self._ending(outcome))
        if ending.state is RunState.COMPLETED:
            await tell_unused(self._context)
        self._with.kill.reach("run.before_release")
        return await self._with.store.leases.release(self._run.id, self._epoch, ending)

    async def _with_overdraft(self, ending: RunRelease) -> RunRelease:
        """Return the ending with the budget that was exceeded, of a run that completed or was refused another call."""
        completed = ending.state is RunState.COMPLETED
        if not completed and ending.reason != BudgetExhausted.code:
            return ending
        overdraft = await self._path.overdraft()
        if overdraft is None:
            return ending
        if completed:
            return replace(ending, reason=overdraft.code, error=overdraft.record())
        message = f"{overdraft.message}; no further calls are made"
        return replace(ending, error={**overdraft.record(), "code": BudgetExhausted.code, "message": message})

    def _ending(self, outcome: WorkloadOutcome) -> RunRelease:
        state, reason = verdict(outcome, self._stop)
        return RunRelease(
            state=state,
            reason=reason,
            at=self._with.clock.now(),
            result=outcome.result if state is RunState.COMPLETED else None,
            error=None if reason in _NO_ERRORS else describe(outcome, self._stop),
            active=self._stopwatch.elapsed,
            awaited=self._awaited,
        )

    async def _keep_lease(self) -> None:
        while True:
            await self._beats.wait()
            until = self._with.clock.now() + LEASE_SECONDS
            state = RunState.WAITING if self.all_parked else RunState.RUNNING
            try:
                canceled = await self._with.store.leases.beat(
                    self._run.id, self._epoch, until, self._stopwatch.elapsed, state
                )
            except StopRun as error:
                self.stop(error, now=True)
                return
            if canceled:
                self.stop(RunCanceled(f"run {self._run.id} was canceled"), now=True)
                return

    async def _watch_time(self, limit: float) -> None:
        while (left := limit - self._stopwatch.elapsed) > 0:
            await self._stopwatch.counting()
            await self._with.clock.sleep(max(left, MIN_LOOK_SECONDS))
            late = self._stopwatch.elapsed - limit
            if late > LATE:  # the process stood still: answers that arrived meanwhile are read first
                self._stopwatch.skip(late + min(CATCH_UP, limit))
        await turns()
        self.stop(RunTimedOut(f"run {self._run.id} exceeded its time limit of {limit:g} s"), now=True)

    async def _leave_when_waiting(self) -> None:
        """Let go of the run as soon as it only waits for signals, or for batches that the providers have."""
        while True:
            if self._why_leave() is not None:
                await turns()  # a workload that was just handed a signal acts on it within them
                why = self._why_leave()
                if why is not None:
                    self.stop(why, now=True)
                    return
            await self._with.clock.sleep(LEAVE_LOOK_SECONDS)

    def _why_leave(self) -> LeftWaiting | None:
        if not self.all_parked or self.awaits_shortly:
            return None
        if not self.any_parked:
            return AwaitsSignal(f"run {self._run.id} waits for a signal")
        if self._leave is Leave.FOR_BATCHES and self.handed_in:
            return LeftWaiting(f"run {self._run.id} waits for its batches")
        return None

    async def _cancel_when_quiet(self) -> None:
        """Let the workload learn of the stop when nothing is on the wire any more."""
        await self._quiet()
        self._path.halt.release()
        self._cancel()

    async def _quiet(self) -> None:
        """Wait until nothing is on the wire, in children either: canceling the parent would cut their calls."""
        await self._children_over()
        await self._path.wires.quiet()

    async def _children_over(self) -> None:
        while self.children:
            await next(iter(self.children)).over.wait()

    async def _abandon(self) -> None:
        """Wait no longer for a workload that does not let itself be canceled; it can make no calls any more."""
        await asyncio.sleep(self._with.timeouts.grace)
        self._abandoned.set()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _help(self, work: Any) -> None:
        self._helpers.add(asyncio.get_running_loop().create_task(work))


async def _enter(workload: Workload, context: Context, spec: Json) -> Any:
    STEP.set(None)  # a child is not in the step in which its parent waits for it
    try:
        result = await workload(context, spec)
        await require_awaited(context)
        return plain_json(result, "the result of the workload")
    except SystemExit as error:  # else it would end the whole process, with every other run in it
        raise RuntimeError(f"the workload tried to exit the process with {error.code!r}") from error


def verdict(outcome: WorkloadOutcome, stop: StopRun | None) -> tuple[RunState, str]:
    """Return in which state a run ends and why: told to stop, stopped by itself, failed, or completed."""
    own = outcome.stop or outcome.error
    if own is None and (stop is None or isinstance(stop, Interrupted)):
        return RunState.COMPLETED, "done"  # it was done before it noticed
    cause = stop or own
    for kind, state in _STATES.items():
        if isinstance(cause, kind):
            return state, cause.code
    if isinstance(cause, MusterError):
        return RunState.FAILED, cause.code
    return RunState.FAILED, "workload_error"


def describe(outcome: WorkloadOutcome, stop: StopRun | None) -> Mapping[str, Json]:
    """Put down what went wrong, for the run's row."""
    cause = stop or outcome.stop or outcome.error
    if isinstance(cause, MusterError):
        return cause.record()
    text = "".join(traceback.format_exception(cause)[-6:]) if cause else ""
    return {"code": "workload_error", "message": f"the workload raised {cause!r}", TRACEBACK: text}


Listener = Callable[[str, str], None]

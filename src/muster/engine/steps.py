"""Steps: whatever else a workload does once. Functions that are not async run in threads, never on the loop."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial, update_wrapper
from hashlib import sha256
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

from muster.domain.canonical import Json, noun_of
from muster.domain.entry import EntryKind
from muster.domain.errors import BadArgument, MusterError
from muster.engine.base.arguments import require_count, require_seconds
from muster.engine.base.clock import STEP, Activity, Clock
from muster.engine.base.driven_run import StopState
from muster.engine.base.mapping import dismiss
from muster.engine.memory import RunMemory
from muster.engine.values import returned

P = ParamSpec("P")
R = TypeVar("R")
MAX_THREADS = 32  # of one run, for steps that are not async
MAX_BACKOFF = 300.0  # seconds between two tries of a step


@dataclass(frozen=True, slots=True)
class StepRetries:
    """How often a step that raised is tried again, and how long it waits before that: twice as long each time."""

    retries: int = 0
    backoff: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be counted or waited for."""
        require_count("retries", self.retries, 0)
        require_seconds("backoff", self.backoff, MAX_BACKOFF)

    def pause(self, tries: int) -> float:
        """Return the seconds to wait after so many tries."""
        return min(self.backoff * 2.0 ** (tries - 1), MAX_BACKOFF)


ONCE = StepRetries()


def _is_retryable(error: Exception) -> bool:
    """Return whether a step that raised may go well the next time: of our own errors each says so."""
    return not isinstance(error, MusterError) or error.retryable


class Steps:
    """Does the steps of one run under its driver."""

    def __init__(self, lineage: str, memory: RunMemory, *, activity: Activity, clock: Clock, halt: StopState) -> None:
        self._lineage, self._memory, self._activity = lineage, memory, activity
        self._clock, self._halt = clock, halt
        self._threads = asyncio.Semaphore(MAX_THREADS)

    async def once(self, key: str, function: Callable[[], Any], retries: StepRetries = ONCE) -> Any:
        """Return the value of a step; what the function does is done once, unless the process dies midway."""
        what, value_type = f"the value of step {key!r}", returned(function)
        known, stored = await self._memory.recall(key, EntryKind.STEP)
        if not known:
            value_type.require_storable(what)
            stored = await self._do(key, function, retries, partial(value_type.write, what=what))
        return value_type.read(stored, what)

    async def _do(
        self, key: str, function: Callable[[], Any], retries: StepRetries, write: Callable[[object], Json]
    ) -> Json:
        tries = 0
        while True:
            await self._halt.admit()
            tries += 1
            try:
                value = write(await self._try(key, function))
            except Exception as error:
                if tries > retries.retries or not _is_retryable(error):
                    raise
                with self._activity.working(), self._activity.waiting():  # it uses up none of the run's time
                    await self._clock.sleep(retries.pause(tries))
            else:
                return await self._memory.record(key, EntryKind.STEP, value)

    async def _try(self, key: str, function: Callable[[], Any]) -> object:
        with self._activity.working(f"{self._lineage}/{key}") as step:
            around = STEP.set(step)
            try:
                return await call_function(function, self._threads)
            finally:
                STEP.reset(around)
                if step.stopped is not None:  # what the step lacks would be missing for ever
                    self._halt.note(step.stopped)
                    raise step.stopped


def idempotency_key() -> str:
    """Return a key for what the step or tool at work writes outside, such as a payment: the same when it runs again.

    It is the same in every try, after a crash and in a run that goes on with this one; a fork has another. 64
    characters that may stand in a header. Raises BadArgument outside of steps and tools.
    """
    step = STEP.get()
    if step is None:
        raise BadArgument(
            "muster.idempotency_key() is that of the step or tool which calls it, and this is none",
            suggestions=("call it in the function that is given to ctx.step or ctx.tools",),
        )
    return sha256(step.identity.encode()).hexdigest()


def require_function(key: str, function: object) -> None:
    """Raise BadArgument for a step that is no function, such as what one returned."""
    if callable(function):
        return
    dismiss(function)
    raise BadArgument(
        f"step {key!r} must be a function, not {noun_of(function)}",
        suggestions=("give the function and do not call it: ctx.step(key, work), or ctx.step(key, lambda: work(1))",),
    )


async def call_function(function: Callable[[], Any], threads: AbstractAsyncContextManager[Any] | None = None) -> Any:
    """Return what a function returns; one that is not async is called in a thread, as soon as there is one for it."""
    if is_async(function):
        return await function()
    async with threads or nullcontext():
        made = await in_thread(function)
    return await made if inspect.isawaitable(made) else made


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling a function gives something to be awaited, as far as it says so."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def in_thread(function: Callable[[], R]) -> R:
    """Return what a function returns, called in a thread of its own: one that hangs does not keep the process alive."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[R] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: R | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(value)  # type: ignore[arg-type]  # R may be None
        else:
            answer.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)

    def work() -> None:
        value, raised = None, None
        try:
            value = context.run(function)
        except BaseException as error:  # raised again where the thread is waited for
            raised = error
        with suppress(RuntimeError):  # the loop was closed: nobody waits for it any more
            loop.call_soon_threadsafe(settle, value, raised)

    threading.Thread(target=work, name="muster step", daemon=True).start()
    return await answer


class StepRunner(Protocol):
    """Whoever does steps: the context of a run."""

    def step(
        self, key: str, function: Callable[[], Any], *, retries: int = 0, backoff: float = 1.0
    ) -> Coroutine[Any, Any, Any]:
        """Do something once."""


class StepFunction(Generic[P, R]):
    """A function that is a step of whatever run calls it: `await fetch(ctx, "fetch/1", url)`."""

    def __init__(self, function: Callable[P, Any], policy: StepRetries) -> None:
        self.function, self.policy = function, policy
        update_wrapper(self, function)

    def __call__(self, ctx: StepRunner, key: str, *args: P.args, **kwargs: P.kwargs) -> Coroutine[object, object, R]:
        """Do it once under a key of the run."""
        if not hasattr(ctx, "step"):
            name = getattr(self.function, "__name__", "this")
            raise BadArgument(
                f"step {name} must be called with the context of a run and a key first, not with {ctx!r}",
                suggestions=(f'write await {name}(ctx, "{name}", …)',),
            )
        doing = partial(self.function, *args, **kwargs)
        return ctx.step(key, doing, retries=self.policy.retries, backoff=self.policy.backoff)


@dataclass(frozen=True, slots=True)
class StepDecorator:
    """Makes steps of functions."""

    policy: StepRetries

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]]) -> StepFunction[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R]) -> StepFunction[P, R]: ...

    def __call__(self, function: Callable[P, Any]) -> StepFunction[P, Any]:
        """Return the step."""
        if not callable(function):
            raise BadArgument(
                f"muster.step makes a step of a function, not of {function!r}",
                suggestions=("in a workload write await ctx.step(key, function)",),
            )
        return StepFunction(function, self.policy)


@overload
def step(function: Callable[P, Awaitable[R]], /) -> StepFunction[P, R]: ...


@overload
def step(function: Callable[P, R], /) -> StepFunction[P, R]: ...


@overload
def step(*, retries: int = 0, backoff: float = 1.0) -> StepDecorator: ...


def step(
    function: Callable[..., Any] | None = None, /, *, retries: int = 0, backoff: float = 1.0
) -> StepFunction[Any, Any] | StepDecorator:
    """Make a step of a function; one that raises is tried again so often, after a pause that doubles each time.

    Of our own errors those are tried again that are `retryable`. The step can also be given as a tool to `ctx.tools`.
    """
    decorator = StepDecorator(StepRetries(retries, backoff))
    return decorator if function is None else decorator(function)

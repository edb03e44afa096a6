"""An async function of the user's as an agent: it gets the request and gives a text, a mapping or a whole reply.

It runs in this process and on this event loop, so it must await whatever takes time. The time of a call is kept here;
a function that goes on although it was canceled is left to itself.
"""

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from muster.agents.base import OnDelta
from muster.agents.function_result import reply_of
from muster.agents.retold import retold
from muster.agents.service_terms import Counted, Terms
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request, request_json
from muster.domain.canonical import canonical
from muster.domain.errors import AgentFailed, BadConfiguration, BadOutput, MusterError, TimedOut, WireError
from muster.shapes.schema import require_schema

Function = Callable[[Request], Awaitable[Any]]

_MOST_MESSAGE = 2000
_LAST_LINES = 20  # of a traceback
_CLOSING_SECONDS = 1.0
_FREE = Terms()

Error = TypeVar("Error", bound=WireError)


class FunctionAgent:
    """An agent that is a function of the user's."""

    def __init__(self, *, profile: Profile, function: Function, terms: Terms = _FREE) -> None:
        self._profile, self._function, self._terms = profile, function, terms
        self._place = f"agent {profile.name!r}"
        self._running: set[asyncio.Task[Any]] = set()
        require_async(function, self._place)

    @property
    def profile(self) -> Profile:
        """Say who this is, its defaults and its pace."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Say the most that one attempt can cost: as declared, or by the price of all bytes and max_tokens."""
        return self._terms.quote(request, _size(request))

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Run the function once; with `on_delta`, hand over its text in one piece."""
        require_schema(request)
        result = await self._result(request, timeouts)
        try:
            reply = reply_of(result, request, _size(request), self._terms)
        except BadOutput as error:
            raise self._blamed(retold(error, f"{self._place}: "), request) from error
        if on_delta is not None and reply.text:
            on_delta(reply.text)
        return replace(reply, model=reply.model or self._profile.name)

    async def close(self) -> None:
        """Stop what still runs; may be called twice."""
        await asyncio.gather(*(_stop(task, _CLOSING_SECONDS) for task in tuple(self._running)))

    async def _result(self, request: Request, timeouts: Timeouts) -> Any:
        """Give what the function returned; it is stopped when its time is over or the call is canceled."""
        task = self._launch(self._run(request))
        # Half the grace, because whoever calls this waits no longer than all of it.
        try:
            done, _ = await asyncio.wait({task}, timeout=timeouts.call)
        except asyncio.CancelledError:
            await _stop(task, timeouts.grace / 2)
            raise
        if not done:
            await _stop(task, timeouts.grace / 2)
            raise self._blamed(self._too_slow(timeouts.call), request)
        if task.cancelled():
            raise self._blamed(AgentFailed(f"{self._place}: the function canceled itself"), request)
        return task.result()

    def _launch(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # asked for, because nobody else may, and the loop would complain

    async def _run(self, request: Request) -> Any:
        try:
            return await self._function(request)
        except WireError:
            raise  # the function says itself what to do next
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            raise self._blamed(_broken(error, self._place), request) from error

    def _too_slow(self, seconds: float) -> TimedOut:
        return TimedOut(
            f"{self._place}: timed out after {seconds:g}s; the function was canceled",
            suggestions=("allow it more time with timeout_secs in muster.toml",),
        )

    def _blamed(self, error: Error, request: Request) -> Error:
        self._terms.blame(error, Counted(), self.quote(request).most)
        return error


def require_async(function: object, place: str) -> None:
    """Refuse what cannot be awaited: it would hold up every other call of this process."""
    if callable(function) and any(map(inspect.iscoroutinefunction, (function, type(function).__call__))):
        return
    raise BadConfiguration(
        f"the function of {place} is not async",
        suggestions=("write it like: async def answer(request): …", "or name an object with an async __call__"),
    )


async def _stop(task: asyncio.Task[Any], seconds: float) -> None:
    """Cancel a task and wait a moment for it; one that goes on all the same is broken off where it stands."""
    task.cancel()
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            # Left alone, it would keep the event loop from ever closing.
            with suppress(Exception):
                task.get_coro().close()
            task.cancel()


def _broken(error: BaseException, place: str) -> AgentFailed:
    shown = "".join(traceback.format_exception_only(error)).strip()  # safe where str() of an error is not
    trace = error.__traceback__.tb_next if error.__traceback__ else None  # without our own line
    lines = "".join(traceback.format_exception(type(error), error, trace)).splitlines()
    return AgentFailed(
        f"{place}: the function raised {shown[:_MOST_MESSAGE]}",
        log="\n".join(lines[-_LAST_LINES:]),
        suggestions=error.suggestions if isinstance(error, MusterError) else (),
    )


def _size(request: Request) -> int:
    return len(canonical(request_json(request)))

"""An async function of the user's as an agent: it gets the request and gives a text, a mapping or a whole reply.

It runs in this process and on this event loop, so it must await whatever takes time. The time of a call is kept here;
a function that goes on although it was canceled is left to itself.
"""

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, astuple, replace
from typing import Any, TypeVar

from muster.agents.base import OnDelta, read_answer
from muster.agents.local import retold
from muster.agents.payload import count_of, microdollars_of, to_json, tokens_of
from muster.agents.service_terms import Counted, ServiceTerms, stop_of, tool_calls_of
from muster.agents.usage import ceiling_of
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request, Stop, ToolCall, Trace, Usage, request_json
from muster.domain.canonical import Json, canonical, plain_json
from muster.domain.errors import AgentFailed, BadArgument, BadConfiguration, BadOutput, MusterError, TimedOut, WireError
from muster.domain.money import NOTHING, Lane, is_cost
from muster.text.schemas.json_schema import require_schema, shaped

Function = Callable[[Request], Awaitable[Any]]

_MAX_MESSAGE = 2000
_LAST_LINES = 20  # of a traceback
_CLOSING_SECONDS = 1.0
_FREE = ServiceTerms()

Error = TypeVar("Error", bound=WireError)


class FunctionAgent:
    """An agent that is a function of the user's."""

    def __init__(self, *, profile: Profile, function: Function, terms: ServiceTerms = _FREE) -> None:
        self._profile, self._function, self._terms = profile, function, terms
        self._place = f"agent {profile.name!r}"
        self._running: set[asyncio.Task[Any]] = set()
        require_async(function, self._place)

    @property
    def profile(self) -> Profile:
        """Return the profile: the name, its defaults and its pace."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Return the maximum cost of one attempt: as declared, or by the price of all bytes and max_tokens."""
        return self._terms.quote(request, _size(request))

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Run the function once; with `on_delta`, hand over its text in one piece."""
        require_schema(request)
        result = await self._result(request, timeouts)
        try:
            reply = await read_answer(request, reply_of, result, request, _size(request), self._terms)
        except BadOutput as error:
            raise self._charged(retold(error, f"{self._place}: "), request) from error
        if on_delta is not None and reply.text:
            on_delta(reply.text)
        return replace(reply, model=reply.model or self._profile.name)

    async def close(self) -> None:
        """Stop what still runs; may be called twice."""
        await asyncio.gather(*(_stop(task, _CLOSING_SECONDS) for task in tuple(self._running)))

    async def _result(self, request: Request, timeouts: Timeouts) -> Any:
        """Return what the function returned; it is stopped when its time is over or the call is canceled."""
        task = self._launch(self._run(request))
        # Half the grace, because whoever calls this waits no longer than all of it.
        try:
            done, _ = await asyncio.wait({task}, timeout=timeouts.call)
        except asyncio.CancelledError:
            await _stop(task, timeouts.grace / 2)
            raise
        if not done:
            await _stop(task, timeouts.grace / 2)
            raise self._charged(self._too_slow(timeouts.call), request)
        if task.cancelled():
            raise self._charged(AgentFailed(f"{self._place}: the function canceled itself"), request)
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
            raise self._charged(_broken(error, self._place), request) from error

    def _too_slow(self, seconds: float) -> TimedOut:
        return TimedOut(
            f"{self._place}: timed out after {seconds:g}s; the function was canceled",
            suggestions=("raise timeout_secs in muster.toml",),
        )

    def _charged(self, error: Error, request: Request) -> Error:
        self._terms.charge_failure(error, Counted(), self.quote(request).most)
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
        f"{place}: the function raised {shown[:_MAX_MESSAGE]}",
        log="\n".join(lines[-_LAST_LINES:]),
        suggestions=error.suggestions if isinstance(error, MusterError) else (),
    )


def _size(request: Request) -> int:
    return len(canonical(request_json(request)))


PARTS = ("text", "tool_calls", "input_tokens", "output_tokens", "cost_usd", "data")

_KINDS: Mapping[str, type] = {
    "text": str, "stop": Stop, "tool_calls": tuple, "usage": Usage, "lane": Lane
}  # fmt: skip


def reply_of(result: Any, request: Request, size: int, terms: ServiceTerms) -> Reply:
    """Make a reply of a result, or raise BadOutput; `size` is that of the request in bytes."""
    if isinstance(result, Reply):
        return _shaped(_checked(result, terms), request)
    parts = {"text": result} if isinstance(result, str) else result
    if not isinstance(parts, Mapping):
        raise BadOutput(
            f"the function returned {_kind_of(result)}, which is not an answer",
            suggestions=(f"return a string, a mapping with some of {', '.join(PARTS)}, or a muster.Reply",),
        )
    return _assembled(parts, request, size, terms)


def _kind_of(result: Any) -> str:
    return "None" if result is None else f"a value of the type {type(result).__name__}"


def _assembled(parts: Mapping[str, Json], request: Request, size: int, terms: ServiceTerms) -> Reply:
    counted = _counted(parts)
    try:
        _require_known(parts)
        calls, data = _calls(parts.get("tool_calls") or ()), _plain(parts.get("data"), "data")
        text = _text(parts, data, bool(calls))
        stop = stop_of(request, text, calls)
        data = shaped(request, stop, text, data)
    except BadOutput as error:
        raise retold(error, cost=terms.known(counted)) from error
    booked = terms.book(counted, ceiling_of(request, size), text, calls)
    return Reply(
        text=text,
        stop=stop,
        tool_calls=calls,
        usage=booked.usage,
        cost=booked.cost,
        lane=booked.lane,
        data=data,
        trace=Trace(note=booked.note) if booked.note else None,
    )


def _checked(reply: Reply, terms: ServiceTerms) -> Reply:
    """Take a reply at its word, if it can be stored; one that counts tokens and no cost is priced."""
    for name, kind in _KINDS.items():
        if not isinstance(getattr(reply, name), kind):
            raise BadOutput(f"the function returned a Reply whose {name} is not of the type {kind.__name__}")
    reply = replace(reply, tool_calls=_calls(reply.tool_calls), data=_plain(reply.data, "data"))
    if tokens_of(*astuple(reply.usage)) is None or not is_cost(reply.cost):
        return replace(reply, usage=Usage(), cost=NOTHING, lane=Lane.UNCERTAIN)
    if terms.price is None or reply.cost or reply.usage == Usage():
        return reply
    return replace(reply, cost=terms.price.cost(reply.usage))


def _shaped(reply: Reply, request: Request) -> Reply:
    """Return a reply with the data that was asked for; one without it has cost what it says."""
    try:
        return replace(reply, data=shaped(request, reply.stop, reply.text, reply.data))
    except BadOutput as error:
        known = None if reply.lane is Lane.UNCERTAIN else reply.cost
        again = BadOutput(error.message, cost=known, imputed=reply.lane is Lane.IMPUTED)
        again.flaw, again.answer = error.flaw, error.answer
        raise again from error


def _require_known(parts: Mapping[str, Json]) -> None:
    unknown = [name for name in parts if name not in PARTS]
    if unknown:
        raise BadOutput(
            f"the function returned a mapping with {unknown[0]!r} in it, which is not known",
            suggestions=(f"use {', '.join(PARTS)}",),
        )


def _counted(parts: Mapping[str, Json]) -> Counted:
    sent, wrote, cost = parts.get("input_tokens"), parts.get("output_tokens"), parts.get("cost_usd")
    counted = Counted(input=count_of(sent), output=count_of(wrote), cost=microdollars_of(cost))
    told = ((sent, counted.input), (wrote, counted.output), (cost, counted.cost))
    return replace(counted, wrong=any(value is not None and number is None for value, number in told))


def _calls(items: Any) -> tuple[ToolCall, ...]:
    calls = tool_calls_of(_plain(_spelled(items), "tool_calls"))
    if calls is None:
        raise BadOutput(
            "the function returned tool_calls that are not a list of calls, each with a name",
            suggestions=('write them like [{"name": "search", "arguments": {"query": "x"}}]',),
        )
    return calls


def _spelled(items: Any) -> Any:
    if not isinstance(items, Iterable) or isinstance(items, str | Mapping):
        return items
    return [asdict(item) if isinstance(item, ToolCall) else item for item in items]


def _text(parts: Mapping[str, Json], data: Json, called: bool) -> str:
    text = parts.get("text")
    if isinstance(text, str):
        return text
    if text is None and data is not None:
        return to_json(data).decode()
    if text is None and called:
        return ""
    raise BadOutput(
        f"the function returned a mapping whose text is {_kind_of(text)}",
        suggestions=('return {"text": "…"}, or the text alone',),
    )


def _plain(value: Any, what: str) -> Any:
    try:
        return plain_json(value, what)
    except BadArgument as error:
        raise BadOutput(f"the function returned {error.message}") from error

"""What a workload is given: durable calls, steps, signals, waits, events and child runs."""

import logging
import random
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from types import UnionType
from typing import Any, Literal, TypeVar, Unpack, overload

from muster.agents.base import Agent, OnDelta
from muster.domain.agent import Command
from muster.domain.budget import Allowance, Funds, funds_of
from muster.domain.call import Asked, Reply, Request, request_of, require_agent, require_key
from muster.domain.canonical import Json, plain_json
from muster.domain.dispatch import Mode
from muster.domain.entry import EntryKind, EntryState, Signal
from muster.domain.errors import BudgetExhausted, ChildFailed, KeyReused, StopRun
from muster.domain.exchange import WireRequest
from muster.domain.ids import RunId
from muster.domain.media import MediaFile
from muster.domain.money import from_usd
from muster.engine.base.arguments import (
    require_iterable,
    require_moment,
    require_own_kind,
    require_seconds,
    require_text,
)
from muster.engine.base.clock import STEP, Clock
from muster.engine.base.driven_run import ChildOptions, DrivenRun
from muster.engine.base.mapping import (
    GroupLimits,
    gather,
    ordered_map,
    require_item_function,
    require_limit,
    returning_failures,
)
from muster.engine.base.signals import CallInbox, Receiver
from muster.engine.base.wire_bodies import WireBodies
from muster.engine.calls.exchange import DeltaListener
from muster.engine.calls.flow import AnswerFlow, Passage
from muster.engine.calls.path import CallPath
from muster.engine.declared import JsonMapping, MappingT, ResultT, SpecT, WorkloadFunction, declared
from muster.engine.memory import RunMemory, require_new
from muster.engine.schemas import AskedData, JsonSchema, SchemaLike, completed
from muster.engine.steps import StepRetries, Steps, require_function
from muster.engine.terms import CallOptions, ChildStarter, ChildTerms, ToolOptions
from muster.engine.tools import ToolLoop
from muster.engine.unawaited import SHOWN, UnawaitedWork, awaited
from muster.engine.waits import RunWaits, inside
from muster.store.base import Store

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
LEFT = "work.unawaited"  # the event of a run whose workload returned while something that it had begun was at work


class Context:
    """One run, as its workload sees it; every key names one thing in the run, for ever."""

    def __init__(
        self,
        driven: DrivenRun,
        *,
        store: Store,
        path: CallPath,
        clock: Clock,
        children: Callable[[], ChildStarter],
        receiver: Receiver,
        on_delta: Callable[[str, str], None] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        self.limits: Mapping[str, int] = limits or {}  # that the operator of this process sets, by name
        self.rules = driven.rules  # those with which the run, or the one that it comes from, was started
        self._run, self._activity, self._levels = driven.run, driven.activity, driven.levels
        self.version = 1  # of the code with which the run began, as its workload declared it then
        self._store, self._path, self._clock, self._children = store, path, clock, children
        self._on_delta = None if on_delta is None else DeltaListener(on_delta, f"run {driven.run.id}")
        self._driven, self._receiver = driven, receiver
        self._drawn: set[str] = set()  # keys of random numbers
        self._unawaited = UnawaitedWork()

    # The parts below are made when first used: most runs only call.

    @cached_property
    def _memory(self) -> RunMemory:
        return RunMemory(self._driven, store=self._store, clock=self._clock, halt=self._path.halt)

    @cached_property
    def _steps(self) -> Steps:
        return Steps(
            self._run.lineage_level, self._memory, activity=self._activity, clock=self._clock, halt=self._path.halt
        )

    @cached_property
    def _waits(self) -> RunWaits:
        return RunWaits(
            self._driven,
            memory=self._memory,
            steps=self._steps,
            receiver=self._receiver,
            clock=self._clock,
            halt=self._path.halt,
        )

    @cached_property
    def _bodies(self) -> WireBodies:
        return WireBodies(self._store, self._run.id)

    @cached_property
    def _group_limits(self) -> GroupLimits:
        return GroupLimits(self._activity)

    @cached_property
    def _child(self) -> ChildStarter:
        """The children of this run; made with the first of them."""
        return self._children()

    @property
    def run(self) -> RunId:
        """The id of this run."""
        return self._run.id

    @property
    def name(self) -> str | None:
        """The name of this run."""
        return self._run.name

    @property
    def is_resumed(self) -> bool:
        """Return whether somebody drove this run before, or it goes on with what another one did."""
        begun = any(not one.calls_only for one in self._driven.inheritance.ancestors)
        return begun or self._driven.epoch > 1

    @property
    def mode(self) -> Mode:
        """How calls of this run are sent that say nothing about it."""
        return self._run.dispatch.mode

    @overload
    async def call(
        self,
        agent: str | Command,
        request: Asked,
        *,
        key: str,
        schema: type[T],
        **options: Unpack[CallOptions],
    ) -> Reply[T]: ...

    @overload
    async def call(
        self,
        agent: str | Command,
        request: Asked,
        *,
        key: str,
        schema: UnionType,
        **options: Unpack[CallOptions],
    ) -> Reply[object]: ...

    @overload
    async def call(
        self,
        agent: str | Command,
        request: Asked,
        *,
        key: str,
        schema: JsonSchema | None = None,
        **options: Unpack[CallOptions],
    ) -> Reply: ...

    def call(
        self,
        agent: str | Command,
        request: Asked,
        *,
        key: str,
        system: str = "",
        schema: SchemaLike | None = None,
        timeout: float | None = None,
        stream: bool = False,
        on_delta: OnDelta | None = None,
        shown: Callable[[str], str] | None = None,
        dispatch: str | None = None,
        known: bool = False,
        allowance: Allowance | None = None,
        final_failures: Collection[str] = (),
        inbox: CallInbox | None = None,
        optional: bool = False,
    ) -> Coroutine[Any, Any, Reply[Any]]:
        """Ask an agent, or run a command; answered once and paid once, however often the run is resumed.

        With a `schema` the reply has `data` that fits it: JSON that fits a JSON Schema, or an instance of a dataclass,
        a TypedDict, a msgspec Struct or a Pydantic model; an answer that does not fit is kept, and raises BadOutput
        without being asked again. While a reply is written, its text so far is told, or what `shown` makes of it.
        `dispatch` sends this call "live", in the tier "flex" or in a "batch", whatever the run does with its others.
        `known` takes a reply or a failure that this run or the one it comes from remembers, and raises ReplayMiss when
        there is none. `final_failures` are codes of failures that are not tried again when the run is resumed: once
        recorded, they are raised as RecordedFailure. What comes into an `inbox`
        reaches an agent at work that can be told more, and the prompt of whoever is asked again after an attempt that
        had taken it in. Calls with the same `allowance` spend no more than it together; one that does not fit raises
        BudgetExhausted, and so does an `optional` one that a budget of the run does not cover: the run goes on. All
        else that stops the run ends it, whether or not the workload catches it.
        """
        if not isinstance(agent, Command):
            require_agent(agent)
        if timeout is not None:
            require_seconds("timeout", timeout)
        request = request_of(request)
        if system or schema is not None:
            request = completed(request, system, schema)
        listener: OnDelta | None = self._listener(key) if stream else None
        if on_delta is not None:
            listener = DeltaListener(on_delta, f"call {key!r} of run {self._run.id}")
        making = partial(
            self._path.call,
            agent,
            request,
            key,
            timeout=timeout,
            on_delta=listener,
            stream=stream,
            shown=shown,
            mode=dispatch,
            known=known,
            allowance=allowance,
            final_failures=final_failures,
            inbox=inbox,
            optional=optional,
        )
        asked, step = agent.name if isinstance(agent, Command) else agent, STEP.get()

        async def calling() -> "Reply[Any]":  # quoted: it is made for every call, and takes a while to evaluate
            made = making()
            found = made if schema is None else AskedData(self._run.id, key, asked, schema).of(made)
            return await (found if step is None else inside(step, found))

        self._driven.asked.note(key)
        return self._unawaited.note(f"ctx.call under {key!r}", calling)

    async def exchange(
        self, agent: Agent, request: WireRequest, *, key: str, flow: AnswerFlow, patience: float
    ) -> Reply:
        """Pass the request of a foreign program on, once, and let its answer leave through the flow.

        It is booked before the last of the answer leaves. A budget that does not cover it raises BudgetExhausted, at
        once or after `patience` seconds in which others hold what it needs; the run goes on.
        """
        pieces = await self._bodies.keep(request.body)
        asked = Request(messages=(), wire=replace(request, pieces=pieces))
        passage = Passage(flow, self._bodies, patience)
        try:
            reply = await self._path.call(agent, asked, key, optional=True, passage=passage)
        except BaseException as error:
            flow.finish(error)
            raise
        flow.finish()
        return reply

    async def keep_media(self, *files: MediaFile) -> None:
        """Store images and documents with the run, so that its requests and its journal can hold references to them."""
        await self._store.media.keep(self._run.id, files)

    @overload
    async def tools(
        self,
        agent: str,
        request: Asked,
        *,
        tools: Sequence[Callable[..., object]],
        key: str,
        schema: type[T],
        **options: Unpack[ToolOptions],
    ) -> Reply[T]: ...

    @overload
    async def tools(
        self,
        agent: str,
        request: Asked,
        *,
        tools: Sequence[Callable[..., object]],
        key: str,
        schema: UnionType,
        **options: Unpack[ToolOptions],
    ) -> Reply[object]: ...

    @overload
    async def tools(
        self,
        agent: str,
        request: Asked,
        *,
        tools: Sequence[Callable[..., object]],
        key: str,
        schema: JsonSchema | None = None,
        **options: Unpack[ToolOptions],
    ) -> Reply: ...

    @awaited
    async def tools(
        self,
        agent: str,
        request: Asked,
        *,
        tools: Sequence[Callable[..., object]],
        key: str,
        system: str = "",
        schema: SchemaLike | None = None,
        max_turns: int = 20,
        timeout: float | None = None,
    ) -> Reply[Any]:
        """Ask an agent that may use functions as tools, until it answers without using one.

        A function's name, docstring and typed parameters are what the agent is told of it. Each use is a step: done
        once, however often the run is resumed, and tried again as `@muster.step` says if it is one. A ToolError that it
        raises is told to the agent; anything else ends the loop. Raises ToolTurnsExceeded when there is no answer after
        so many turns.
        """

        def ask_at(turn: Request, key: str) -> Awaitable[Reply[Any]]:
            if schema is None:
                return self.call(agent, turn, key=key, timeout=timeout)
            return self.call(agent, turn, key=key, timeout=timeout, schema=schema)

        loop = ToolLoop(tools, ask=ask_at, step=self.step, max_turns=max_turns)
        return await loop.answer(key, completed(request_of(request), system, None))

    @overload
    async def gather(self, first: Awaitable[A], second: Awaitable[B], /) -> tuple[A, B]: ...

    @overload
    async def gather(self, first: Awaitable[A], second: Awaitable[B], third: Awaitable[C], /) -> tuple[A, B, C]: ...

    @overload
    async def gather(self, *awaitables: Awaitable[R]) -> list[R]: ...

    async def gather(self, *awaitables: Awaitable[Any]) -> Sequence[Any]:
        """Wait for all; after a failure the others still finish, then the first failure is raised."""
        return await gather(awaitables)

    @overload
    def map(
        self,
        function: Callable[[int, T], Awaitable[R]],
        items: Iterable[T] | AsyncIterable[T],
        *,
        limit: int | None = None,
        return_exceptions: Literal[False] = False,
    ) -> AsyncIterator[R]: ...

    @overload
    def map(
        self,
        function: Callable[[int, T], Awaitable[R]],
        items: Iterable[T] | AsyncIterable[T],
        *,
        limit: int | None = None,
        return_exceptions: Literal[True],
    ) -> AsyncIterator[R | Exception]: ...

    def map(
        self,
        function: Callable[[int, T], Awaitable[R]],
        items: Iterable[T] | AsyncIterable[T],
        *,
        limit: int | None = None,
        return_exceptions: bool = False,
    ) -> AsyncIterator[Any]:
        """Apply a function to many items with bounded memory, to at most `limit` at a time, results in order.

        With `return_exceptions` the exception of an item is yielded in its place, and the others go on. What stops the
        run, and a key that is used twice, are raised all the same.
        """
        # Twice the concurrency: while some items are on the wire others are being written down.
        require_iterable("items", items)
        wide = 2 * self._run.concurrency if limit is None else require_limit(limit)
        require_item_function(function)
        applied = returning_failures(function, self._concerns_one_item) if return_exceptions else function
        what = f"ctx.map of {getattr(function, '__name__', 'a function')}"
        return self._unawaited.note_items(what, ordered_map(applied, items, wide))

    def _concerns_one_item(self, error: Exception) -> bool:
        stops = isinstance(error, StopRun) and self._path.halt.error is not None
        return not stops and not isinstance(error, KeyReused)

    def limit(self, name: str, most: int) -> AbstractAsyncContextManager[None]:
        """Return what lets so many pieces of this run's work in at a time: `async with ctx.limit("database", 4): …`.

        Waiting for it uses up none of the run's time.
        """
        return self._group_limits.enter(name, most)

    @overload
    async def step(
        self, key: str, function: Callable[[], Awaitable[R]], *, retries: int = 0, backoff: float = 1.0
    ) -> R: ...

    @overload
    async def step(self, key: str, function: Callable[[], R], *, retries: int = 0, backoff: float = 1.0) -> R: ...

    @awaited
    async def step(self, key: str, function: Callable[[], Any], *, retries: int = 0, backoff: float = 1.0) -> Any:
        """Do anything else once: its value is remembered and given back on resume, as the type that it says it returns.

        A function that is not async runs in a thread. One that raises is tried again `retries` times, after a pause of
        `backoff` seconds that doubles each time; of our own errors those that are `retryable`. A step during which the
        process dies runs again. Raises KeyReused for a key that had a value before under this driver: `recall` reads
        one again.
        """
        require_key(key)
        require_function(key, function)
        with self._memory.claimed(key, "step"):
            return await self._steps.once(key, function, StepRetries(retries, backoff))

    @awaited
    async def recall(self, key: str, *, inherited: bool = False) -> Json:
        """Return the value of a step that this very run has done before; None if it has not.

        With `inherited` also of one that only a run has done which this one comes from; it is taken over.
        """
        if inherited:
            known, value = await self._memory.recall(key, EntryKind.STEP)
            return value if known else None
        entry = await self._store.journal.find(self._run.id, key)
        return None if entry is None or entry.state is not EntryState.DONE else entry.value

    @awaited
    async def emit(self, key: str, kind: str, data: Mapping[str, object] | None = None) -> None:
        """Emit an event once in this run."""
        require_key(key)
        require_own_kind(kind)
        with self._memory.claimed(key, "event"), self._path.halt.noting():
            entry = await self._store.journal.find(self._run.id, key)
            if entry is None:
                told = plain_json(dict(data or {}), f"the data of event {key!r}")
                await self._memory.record(key, EntryKind.EMIT, told, kind_of_event=kind)
            elif entry.kind is not EntryKind.EMIT:
                raise KeyReused(f"key {key!r} is used for a {entry.kind} in this run and cannot be used for an event")

    @overload
    async def child(
        self, key: str, workload: WorkloadFunction[SpecT, ResultT], spec: SpecT, **terms: Unpack[ChildTerms]
    ) -> ResultT: ...

    @overload
    async def child(
        self,
        key: str,
        workload: WorkloadFunction[MappingT, ResultT],
        spec: JsonMapping,
        **terms: Unpack[ChildTerms],
    ) -> ResultT: ...

    @overload
    async def child(self, key: str, workload: str, spec: object, **terms: Unpack[ChildTerms]) -> Json: ...

    @awaited
    async def child(
        self,
        key: str,
        workload: str | WorkloadFunction[Any, Any],
        spec: Any,
        *,
        budget_usd: str | float | None = None,
        dispatch: str | None = None,
        timeout: float | None = None,
        optional: bool = False,
    ) -> Any:
        """Run another workload inside this one, under this one's budget; started once, its result remembered.

        A workload that is given as its function takes a spec of the type that it declares, and so is the result.
        `dispatch` sends its calls "live" or in a "batch", whatever this run does with its own; `timeout` is that of
        the child. Raises ChildFailed, which names the run, when it does not complete. A refused key, or a budget above
        the child's own, ends this run too, whether or not that is caught. An `optional` child may lack the budget.
        """
        require_key(key)
        child = declared(workload)
        written = child.written(spec)
        await self._path.halt.admit()
        options = ChildOptions(
            cap=None if budget_usd is None else from_usd(budget_usd),
            mode=None if dispatch is None else Mode(dispatch),
            timeout=timeout,
        )
        async with self._memory.alone(key):
            try:
                starting, step = self._child(key, child.name, written, options), STEP.get()
                result = await (starting if step is None else inside(step, starting))
                return child.result.read(result, f"the result of child {key!r}")
            except StopRun as error:  # it was stopped with this run, and may have had nothing to wait for
                await self._path.halt.wait()
                self._path.halt.note(error)
                raise
            except ChildFailed as error:  # canceled or timed out with this run, it is not a result of its own
                await self._path.halt.admit()
                if error.stop is not None and not (optional and isinstance(error.stop, BudgetExhausted)):
                    self._path.halt.note(error.stop)
                raise

    @awaited
    async def receive(
        self, key: str, channel: str, *, timeout: float | None = None, aside: bool = False
    ) -> Signal | None:
        """Wait for the next signal of a channel of this run; the same one on resume, None when `timeout` is over.

        The time counts from the first time that this is waited for. A run that waits for nothing else needs no process.
        `aside` is for a signal that may end other work: it is waited for beside that, and canceled when that is done.
        """
        require_text("channel", channel)
        if timeout is not None:
            require_seconds("timeout", timeout)
        return await self._waits.receive(key, channel, timeout=timeout, aside=aside)

    @awaited
    async def sleep(self, key: str, seconds: float) -> None:
        """Wait so long, counted from the first time that this is waited for: on resume only for what is left of it.

        It uses up none of the run's time, and a run that does nothing else meanwhile needs no process.
        """
        await self._waits.until(key, require_seconds("seconds", seconds), self._clock.now)

    @awaited
    async def until(self, key: str, time: float | datetime) -> None:
        """Wait until a moment: seconds since 1970, or a datetime with a time zone; the first one under a key counts.

        It uses up none of the run's time, and a run that does nothing else meanwhile needs no process.
        """
        moment = require_moment(time)
        await self._waits.until(key, 0.0, lambda: moment)

    @awaited
    async def collect(self, key: str, channel: str, *, slot: str | None = None) -> Sequence[Signal]:
        """Take the signals of a channel of this run, or of a slot, that are there now; the same ones on resume."""
        return await self._waits.collect(key, channel, slot)

    def inbox(
        self, call: str, channel: str, *, slot: str | None = None, written: Callable[[Signal], str] = str
    ) -> CallInbox:
        """Return the inbox of the call with this key: signals of a channel of this run, or of a slot, as texts."""
        return self._waits.inbox(call, channel, slot, written)

    @property
    def open_inbox(self) -> CallInbox | None:
        """The inbox of a call that is being made; None when there is none."""
        return self._waits.open_inbox

    @awaited
    async def now(self, key: str) -> float:
        """Return the time, the same one on resume."""

        async def read() -> float:
            return self._clock.now()

        return await self.step(key, read)

    @property
    def seconds(self) -> float:
        """How long this run has been at work: what it waited for does not count. Another one on resume."""
        return self._activity.stopwatch.elapsed

    @awaited
    async def funds(self, key: str) -> Funds:
        """Return what is spent and what the budgets of this run leave, the same on resume."""

        async def read() -> Any:
            levels = self._levels.now(self._clock.now())
            balances = await self._store.runs.balances(level.id for level in levels)
            found = funds_of(self._levels.lineage.id, levels, balances)
            return {"spent": found.spent, "left": found.left}

        return Funds(**await self.step(key, read))

    def on_wire(self, key: str) -> bool:
        """Return whether the agent of a call is at work on it: to cancel such a call may waste what it costs."""
        return self._path.on_wire(key)

    def random(self, key: str) -> random.Random:
        """Return chance that is the same on resume, seeded by the run."""
        require_new(key, self._drawn, "random sequence")
        self._drawn.add(key)
        return random.Random(f"{self._run.seed}/{key}")  # noqa: S311  # it decides orders, it keeps no secrets

    def _listener(self, key: str) -> OnDelta | None:
        if self._on_delta is None:
            return None
        listener = self._on_delta
        return lambda delta: listener(key, delta)


async def require_awaited(ctx: Context) -> None:
    """Raise BadArgument for what a workload made and never began; what it left at work is told by the run."""
    ctx._unawaited.require_none()
    left = await ctx._unawaited.left()
    if not left:
        return
    told = (
        f"{' and '.join(left[:SHOWN])} {'was' if len(left) == 1 else 'were'} still at work when the workload returned"
    )
    logging.getLogger("muster").warning("run %s: %s, and cut; await its task first, or cancel it", ctx.run, told)
    data: Json = {"work": list(left[:SHOWN]), "total": len(left)}
    await ctx._memory.record(LEFT, EntryKind.EMIT, data, kind_of_event=LEFT)


async def tell_unused(ctx: Context) -> None:
    """Write in a completed run what was stored for it and it did not ask for, while the like of it was done anew."""
    if ctx._driven.asked.anew:  # of a run that was driven before
        await ctx._memory.tell_unused()

"""What a workload is given: durable calls, steps, signals, events and child runs; and answers that fit a schema."""

import asyncio
import inspect
import random
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar, overload, runtime_checkable

from muster.agents.base import OnDelta
from muster.domain.agent import Command
from muster.domain.budget import Allowance, Funds, funds_of
from muster.domain.call import Quality, Reply, Request, Stop, ask, require_key
from muster.domain.canonical import Json, digest, plain_json
from muster.domain.entry import AwaitedSignal, EntryKind, EntryState, Signal, slot_address
from muster.domain.errors import BadArgument, BadOutput, BudgetExhausted, ChildFailed, KeyReused, StopRun
from muster.domain.ids import RunId
from muster.domain.money import from_usd
from muster.domain.run import Mode
from muster.engine.calls.exchange import DeltaListener
from muster.engine.calls.path import CallPath
from muster.engine.clock import STEP, Clock, StepActivity
from muster.engine.driven_run import ChildOptions, DrivenRun
from muster.engine.mapping import gather, ordered_map, returning_failures
from muster.engine.signals import CallInbox, Receiver
from muster.store.base import Record, Store

T = TypeVar("T")
R = TypeVar("R")


async def _inside(step: StepActivity, calling: Awaitable[R]) -> R:
    with step.calling():
        return await calling


class ChildStarter(Protocol):
    """Starts a child run and gives its result."""

    async def __call__(self, key: str, workload: str, spec: Json, options: ChildOptions) -> Json:
        """Drive the child to its end; raises ChildFailed when it does not complete."""


@runtime_checkable
class Model(Protocol):
    """A Pydantic model, as far as it is needed here."""

    def model_json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the model."""

    def model_validate(self, data: Any) -> object:
        """Return an instance, or raise ValueError."""


SchemaLike = Mapping[str, Json] | Model


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
        self._run, self._epoch, self._inheritance = driven.run, driven.epoch, driven.inheritance
        self._store, self._path, self._clock, self._children = store, path, clock, children
        self._receiver, self._activity, self._levels = receiver, driven.activity, driven.levels
        self._on_delta = None if on_delta is None else DeltaListener(on_delta, f"run {driven.run.id}")
        self._inboxes: list[CallInbox] = []
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}  # with how many hold it or wait for it
        self._used: set[str] = set()  # keys of steps and events, under this driver
        self._drawn: set[str] = set()  # keys of random numbers

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
    def mode(self) -> Mode:
        """How calls of this run are sent that say nothing about it."""
        return self._run.dispatch.mode

    def call(
        self,
        agent: str | Command,
        request: str | Request,
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
    ) -> Coroutine[Any, Any, Reply]:
        """Ask an agent, or run a command; answered once and paid once, however often the run is resumed.

        With a `schema`, a JSON Schema or a Pydantic model, the reply has `data` that fits it; an answer that does not
        fit is kept, and raises BadOutput without being asked again. While a reply is written, its text so far is
        told, or what `shown` makes of it. `dispatch` sends this call "live" or in a "batch", whatever the run does with
        its others. `known` takes a reply or a failure that this run or the one it comes from
        remembers, and raises ReplayMiss when there is none. `final_failures` are codes of failures that are not tried
        again when the run is resumed: once recorded, they are raised as RecordedFailure. What comes into an `inbox`
        reaches an agent at work that can be told more, and the prompt of whoever is asked again after an attempt that
        had taken it in. Calls with the same `allowance` spend no more than it together; one that does not fit raises
        BudgetExhausted, and so does an `optional` one that a budget of the run does not cover: the run goes on. All
        else that stops the run ends it, whether or not the workload catches it.
        """
        request = _completed(ask(request) if isinstance(request, str) else request, system, schema)
        listener: OnDelta | None = self._listener(key) if stream else None
        if on_delta is not None:
            listener = DeltaListener(on_delta, f"call {key!r} of run {self._run.id}")
        calling = self._path.call(
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
        found = calling if schema is None else _fitting(calling, schema)
        step = STEP.get()
        return found if step is None else _inside(step, found)

    async def gather(self, *awaitables: Awaitable[R]) -> list[R]:
        """Wait for all; after a failure the others still finish, then the first failure is raised."""
        return await gather(awaitables)

    @overload
    def map(
        self,
        function: Callable[[int, T], Awaitable[R]],
        items: Iterable[T] | AsyncIterable[T],
        *,
        window: int | None = None,
        return_exceptions: Literal[False] = False,
    ) -> AsyncIterator[R]: ...

    @overload
    def map(
        self,
        function: Callable[[int, T], Awaitable[R]],
        items: Iterable[T] | AsyncIterable[T],
        *,
        window: int | None = None,
        return_exceptions: Literal[True],
    ) -> AsyncIterator[R | Exception]: ...

    def map(
        self,
        function: Callable[[int, T], Awaitable[R]],
        items: Iterable[T] | AsyncIterable[T],
        *,
        window: int | None = None,
        return_exceptions: bool = False,
    ) -> AsyncIterator[Any]:
        """Apply a function to many items with bounded memory, results in order.

        With `return_exceptions` the exception of an item is yielded in its place, and the others go on. What stops the
        run, and a key that is used twice, are raised all the same.
        """
        # Twice the concurrency: while some items are on the wire others are being written down.
        wide = window or 2 * self._run.concurrency
        if return_exceptions:
            return ordered_map(returning_failures(function, self._concerns_one_item), items, wide)
        return ordered_map(function, items, wide)

    def _concerns_one_item(self, error: Exception) -> bool:
        stops = isinstance(error, StopRun) and self._path.halt.error is not None
        return not stops and not isinstance(error, KeyReused)

    async def step(self, key: str, function: Callable[[], Awaitable[Json] | Json]) -> Json:
        """Do anything else once: its value is remembered and given back on resume.

        Raises KeyReused for a key that had a value before under this driver: `recall` reads one again.
        """
        require_key(key)
        with self._claimed(key, "step"):
            return await self._once(key, function)

    async def _once(self, key: str, function: Callable[[], Awaitable[Json] | Json]) -> Json:
        known, value = await self._remembered(key, EntryKind.STEP)
        if known:
            return value
        await self._path.halt.admit()
        with self._activity.working() as step:
            around = STEP.set(step)
            try:
                made = function()
                value = plain_json(await made if inspect.isawaitable(made) else made, f"the value of step {key!r}")
            finally:
                STEP.reset(around)
        if step.stopped is not None:  # what it lacks would be missing for ever
            self._path.halt.note(step.stopped)
            raise step.stopped
        return await self._record(key, EntryKind.STEP, value)

    async def recall(self, key: str, *, inherited: bool = False) -> Json:
        """Return the value of a step that this very run has done before; None if it has not.

        With `inherited` also of one that only a run has done which this one comes from; it is taken over.
        """
        if inherited:
            known, value = await self._remembered(key, EntryKind.STEP)
            return value if known else None
        entry = await self._store.journal.find(self._run.id, key)
        return None if entry is None or entry.state is not EntryState.DONE else entry.value

    async def emit(self, key: str, kind: str, data: Mapping[str, Json] | None = None) -> None:
        """Emit an event once in this run."""
        require_key(key)
        with self._claimed(key, "event"), self._path.halt.noting():
            entry = await self._store.journal.find(self._run.id, key)
            if entry is None:
                told = plain_json(dict(data or {}), f"the data of event {key!r}")
                await self._record(key, EntryKind.EMIT, told, kind_of_event=kind)
            elif entry.kind is not EntryKind.EMIT:
                raise KeyReused(f"key {key!r} is used for a {entry.kind} in this run and cannot be used for an event")

    async def child(
        self,
        key: str,
        workload: str,
        spec: Json,
        *,
        budget_usd: str | float | None = None,
        dispatch: str | None = None,
        timeout: float | None = None,
        optional: bool = False,
    ) -> Json:
        """Run another workload inside this one, under this one's budget; started once, its result remembered.

        `dispatch` sends its calls "live" or in a "batch", whatever this run does with its own; `timeout` is that of
        the child. Raises ChildFailed, which names the run, when it does not complete. A refused key, or a budget above
        the child's own, ends this run too, whether or not that is caught. An `optional` child may lack the budget.
        """
        require_key(key)
        await self._path.halt.admit()
        options = ChildOptions(
            cap=None if budget_usd is None else from_usd(budget_usd),
            mode=None if dispatch is None else Mode(dispatch),
            timeout=timeout,
        )
        async with self._alone(key):
            try:
                starting = self._child(key, workload, plain_json(spec, f"the spec of child {key!r}"), options)
                step = STEP.get()
                return await (starting if step is None else _inside(step, starting))
            except StopRun as error:  # it was stopped with this run, and may have had nothing to wait for
                await self._path.halt.wait()
                self._path.halt.note(error)
                raise
            except ChildFailed as error:  # canceled or timed out with this run, it is not a result of its own
                await self._path.halt.admit()
                if error.stop is not None and not (optional and isinstance(error.stop, BudgetExhausted)):
                    self._path.halt.note(error.stop)
                raise

    async def receive(
        self, key: str, channel: str, *, timeout: float | None = None, aside: bool = False
    ) -> Signal | None:
        """Wait for the next signal of a channel of this run; the same one on resume, None when `timeout` is over.

        The time counts from the first time that this is waited for. A run that waits for nothing else needs no process.
        `aside` is for a signal that may end other work: it is waited for beside that, and canceled when that is done.
        """
        require_key(key)
        async with self._alone(key):
            until = None if timeout is None else float(await self._once(f"{key}/since", self._clock.now)) + timeout
            known, value = await self._remembered(key, EntryKind.SIGNAL)
            if known:
                return Signal(**value[0]) if value else None
            await self._path.halt.admit()
            awaited = AwaitedSignal(address=self._run.lineage_level, channel=channel, until=until)
            receiving, step = self._receiver.receive(key, awaited, aside=aside), STEP.get()
            return await (receiving if step is None or aside else _inside(step, receiving))

    async def collect(self, key: str, channel: str, *, slot: str | None = None) -> Sequence[Signal]:
        """Take the signals of a channel of this run, or of a slot, that are there now; the same ones on resume."""
        require_key(key)
        async with self._alone(key):
            known, value = await self._remembered(key, EntryKind.SIGNAL)
            if known:
                return [Signal(**one) for one in value]
            await self._path.halt.admit()
            address = self._run.lineage_level if slot is None else slot_address(slot)
            return await self._receiver.collect(key, address, channel)

    def inbox(
        self, call: str, channel: str, *, slot: str | None = None, written: Callable[[Signal], str] = str
    ) -> CallInbox:
        """Return the inbox of the call with this key: signals of a channel of this run, or of a slot, as texts."""
        address = self._run.lineage_level if slot is None else slot_address(slot)
        awaited = AwaitedSignal(address=address, channel=channel)
        inbox = CallInbox(self._receiver, call, awaited, recall=self._recall_signals, written=written)
        self._inboxes.append(inbox)
        return inbox

    @property
    def open_inbox(self) -> CallInbox | None:
        """The inbox of a call that is being made; None when there is none."""
        return next((inbox for inbox in self._inboxes if inbox.is_open), None)

    async def _recall_signals(self, key: str) -> Sequence[Signal] | None:
        known, value = await self._remembered(key, EntryKind.SIGNAL)
        return [Signal(**one) for one in value] if known else None

    async def now(self, key: str) -> float:
        """Return the time, the same one on resume."""
        return float(await self.step(key, self._clock.now))

    @property
    def seconds(self) -> float:
        """How long this run has been at work: what it waited for does not count. Another one on resume."""
        return self._activity.stopwatch.elapsed

    async def funds(self, key: str) -> Funds:
        """Return what is spent and what the budgets of this run leave, the same on resume."""

        async def read() -> Json:
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
        _require_new(key, self._drawn, "random sequence")
        self._drawn.add(key)
        return random.Random(f"{self._run.seed}/{key}")  # noqa: S311  # it decides orders, it keeps no secrets

    @contextmanager
    def _claimed(self, key: str, what: str) -> Iterator[None]:
        """Let a key be used once under this driver; one whose use failed may be used again."""
        _require_new(key, self._used, what)
        self._used.add(key)
        try:
            yield
        except BaseException:
            self._used.discard(key)
            raise

    @asynccontextmanager
    async def _alone(self, key: str) -> AsyncIterator[None]:
        """Let only one at a time do what stands under a key."""
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(key)
            if users > 1:
                self._locks[key] = (lock, users - 1)

    def _listener(self, key: str) -> OnDelta | None:
        if self._on_delta is None:
            return None
        listener = self._on_delta
        return lambda delta: listener(key, delta)

    async def _remembered(self, key: str, kind: EntryKind) -> tuple[bool, Any]:
        with self._path.halt.noting():
            entry = await self._store.journal.find(self._run.id, key)
            if entry is None:
                entry = await self._inheritance.find(key, _no_digest(kind), kind)
                if entry is not None:
                    await self._store.reuser.reuse(self._run.id, self._epoch, entry, self._clock.now())
        if entry is not None and entry.kind is not kind:
            raise KeyReused(f"key {key!r} is used for a {entry.kind} in this run and cannot be used for a {kind}")
        return entry is not None and entry.state is EntryState.DONE, entry.value if entry else None

    async def _record(self, key: str, kind: EntryKind, value: Json, kind_of_event: str | None = None) -> Json:
        record = Record(
            run=self._run.id,
            epoch=self._epoch,
            key=key,
            kind=kind,
            digest=_no_digest(kind),
            value=value,
            at=self._clock.now(),
            kind_of_event=kind_of_event,
        )
        with self._path.halt.noting():
            return await self._store.journal.record(record)


def _require_new(key: str, used: Collection[str], what: str) -> None:
    if key in used:
        raise KeyReused(
            f"key {key!r} was used before in this run and cannot be used for another {what}",
            suggestions=(f"use a different key for each, with the number or the name of its item: {key}/1",),
        )


def _no_digest(kind: EntryKind) -> str:
    """A step is what its key says: nothing else tells two of them apart."""
    return digest({"kind": str(kind)})


def _completed(request: Request, system: str, schema: SchemaLike | None) -> Request:
    """Return the request with what was given beside it."""
    if system:
        request = replace(request, system=system)
    return request if schema is None else replace(request, schema=json_schema(schema))


async def _fitting(calling: Awaitable[Reply], schema: SchemaLike) -> Reply:
    return require_data(await calling, schema)


def json_schema(schema: SchemaLike) -> Mapping[str, Json]:
    """Return a schema as JSON; raises BadArgument for anything that is neither a mapping nor a Pydantic model."""
    if isinstance(schema, Mapping):
        return schema
    if isinstance(schema, Model):
        return schema.model_json_schema()
    raise BadArgument(f"schema must be a JSON Schema (a dict) or a Pydantic model, not {type(schema).__name__}")


def require_data(reply: Reply, schema: SchemaLike) -> Reply:
    """Return a reply whose data fits; raises BadOutput for any other, which costs what it cost."""
    wrong = _flaw(reply, schema)
    if wrong:
        error = BadOutput(wrong, suggestions=("the reply is kept: muster runs show RUN --call KEY",))
        error.reply = reply
        raise error
    return reply


def _flaw(reply: Reply, schema: SchemaLike) -> str:
    if reply.stop is Stop.TOOL_USE:
        return "" if reply.tool_calls else "it stopped for tool calls but made none, and data was requested"
    if reply.quality in (Quality.CUT, Quality.REFUSED):
        return f"its answer was {reply.quality}, and data was requested"
    if reply.data_error or isinstance(schema, Mapping):
        return reply.data_error
    try:
        schema.model_validate(reply.data)  # a model may ask for more than its schema says
    except ValueError as error:
        return f"its answer does not fit the model: {error}"
    return ""

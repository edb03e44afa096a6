"""An open Muster: what one can do stands on its parts; the command line and Python programs use the same object."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import cached_property
from types import UnionType
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from muster.app.kinds import REPORTED, kind_of
from muster.app.parts.parts import MusterParts
from muster.app.questions.ask import (
    KEY,
    AskOutcome,
    Question,
    answer_of,
    outcome_of_question,
    parts_of,
    start_question,
    submit_question,
)
from muster.app.runs.handle import RunHandle, returning
from muster.app.runs.options import RunOptions, only_of
from muster.app.views.errors import not_passed
from muster.domain.call import Message, Reply
from muster.domain.canonical import Json
from muster.domain.dispatch import DEFAULT_CONCURRENCY, LIVE, Dispatch, Mode
from muster.domain.errors import MusterError, NameTaken, NotFound, Overdraft, RunFailed, StopRun
from muster.domain.ids import RunId
from muster.domain.media import Media
from muster.domain.run import TERMINAL, Origin, OwnedProcess, Run
from muster.engine.declared import (
    DeclaredWorkload,
    JsonMapping,
    MappingT,
    ResultT,
    SpecT,
    WorkloadFunction,
    declared,
)
from muster.engine.drive import Listener
from muster.engine.queue.base import QUEUES
from muster.engine.queue.fleet import FallbackDelivery
from muster.engine.queue.sweeps import CancelKeys, FleetRuns
from muster.engine.schemas import AskedData, JsonSchema, SchemaLike, json_schema

if TYPE_CHECKING:
    from muster.app.hooks import RunHooks
    from muster.app.parts.spending import Costs
    from muster.app.runs.reports import AnyReport
    from muster.engine.queue.turns import DriveCaps
    from muster.engine.worker import Worker


T = TypeVar("T")


class AskOptions(TypedDict, total=False):
    """What may be said of a question besides its prompt, as `Muster.ask` explains it."""

    messages: Sequence[Message]
    system: str
    max_tokens: int | None
    temperature: float | None
    seed: int | None
    budget_usd: str | float | None
    name: str | None
    timeout: float | None
    dispatch: str | Dispatch


class SubmitOptions(TypedDict, total=False):
    """What may be said of a run besides its workload and spec, as `Muster.submit` explains it."""

    budget_usd: str | float | None
    name: str | None
    tags: Sequence[str]
    timeout: float | None
    concurrency: int
    dispatch: str | Dispatch
    resume: bool


class StartOptions(SubmitOptions, total=False):
    """The same of a run that is driven here, as `Muster.start` explains it."""

    detach: bool
    on_delta: Listener | None
    origin: Origin | None


class Muster(MusterParts):
    """An open store with an engine. Use cases stand on its parts, everyday ones on itself."""

    reaped: Sequence[OwnedProcess] = ()  # what dead drivers had left at work when this was opened

    @cached_property
    def hooks(self) -> "RunHooks":
        """Return what tells the operator's hooks what became of runs."""
        from muster.app.hooks import RunHooks

        return RunHooks(self._backend)

    @overload
    async def ask(
        self, agent: str, prompt: str | Sequence[str | Media], *, schema: type[T], **options: Unpack[AskOptions]
    ) -> Reply[T]: ...

    @overload
    async def ask(
        self, agent: str, prompt: str | Sequence[str | Media], *, schema: UnionType, **options: Unpack[AskOptions]
    ) -> Reply[object]: ...

    @overload
    async def ask(
        self,
        agent: str,
        prompt: str | Sequence[str | Media],
        *,
        schema: JsonSchema | None = None,
        **options: Unpack[AskOptions],
    ) -> Reply: ...

    async def ask(
        self,
        agent: str,
        prompt: str | Sequence[str | Media],
        *,
        schema: SchemaLike | None = None,
        **options: Unpack[AskOptions],
    ) -> Reply[Any]:
        """Ask one question, durably, and return the reply; Overdraft holds it when it exceeded a budget.

        With a `schema` the reply has `data` that fits it: JSON that fits a JSON Schema, or an instance of a dataclass,
        a TypedDict, a msgspec Struct or a Pydantic model, or of one of several types (`Refund | Refusal`). BadOutput
        holds a reply that does not. `messages` are the turns of the conversation before the prompt. The prompt may be a
        list of texts, `muster.image(…)` and `muster.document(…)`.
        """
        question, terms = self._question(agent, prompt, schema, **options)
        return await self._answered(await self.start_question(question, terms), question, schema)

    @overload
    def stream(
        self, agent: str, prompt: str | Sequence[str | Media], *, schema: type[T], **options: Unpack[AskOptions]
    ) -> AsyncIterator[str | Reply[T]]: ...

    @overload
    def stream(
        self, agent: str, prompt: str | Sequence[str | Media], *, schema: UnionType, **options: Unpack[AskOptions]
    ) -> AsyncIterator[str | Reply[object]]: ...

    @overload
    def stream(
        self,
        agent: str,
        prompt: str | Sequence[str | Media],
        *,
        schema: JsonSchema | None = None,
        **options: Unpack[AskOptions],
    ) -> AsyncIterator[str | Reply]: ...

    async def stream(
        self,
        agent: str,
        prompt: str | Sequence[str | Media],
        *,
        schema: SchemaLike | None = None,
        **options: Unpack[AskOptions],
    ) -> AsyncIterator[str | Reply[Any]]:
        """Ask as `ask` does, and yield the text while it is written, and at the end the reply.

        An attempt that is tried again is told from its beginning; the reply has the whole text. Whoever stops listening
        does not stop the question: its reply is stored.
        """
        question, terms = self._question(agent, prompt, schema, stream=True, **options)
        told: asyncio.Queue[str | None] = asyncio.Queue()
        handle = await self.start_question(question, terms, on_delta=lambda key, text: told.put_nowait(text))
        answering = asyncio.ensure_future(self._answered(handle, question, schema))
        answering.add_done_callback(lambda _: told.put_nowait(None))
        try:
            while (text := await told.get()) is not None:
                yield text
            yield answering.result()
        finally:
            answering.cancel()

    def _question(
        self,
        agent: str,
        prompt: str | Sequence[str | Media],
        schema: SchemaLike | None,
        *,
        stream: bool = False,
        messages: Sequence[Message] = (),
        system: str = "",
        max_tokens: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        budget_usd: str | float | None = None,
        name: str | None = None,
        timeout: float | None = None,
        dispatch: str | Dispatch = LIVE,
    ) -> tuple[Question, RunOptions]:
        """Return a question, and how it is asked."""
        text, parts = parts_of(prompt)
        question = Question(
            agent=agent,
            prompt=text,
            content=parts,
            system=system,
            schema=None if schema is None else json_schema(schema),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
            stream=stream,
            messages=tuple(messages),
        )
        return question, self.runs.options(budget_usd=budget_usd, name=name, timeout=timeout, dispatch=dispatch)

    async def _answered(self, handle: RunHandle, question: Question, schema: SchemaLike | None) -> Reply[Any]:
        """Return the reply to a question that was started."""
        asked = None if schema is None else AskedData(handle.id, KEY, question.agent, schema)
        try:
            await handle.result()
        except Overdraft as error:
            error.result = await self.answer_of(handle.id)
            raise
        except RunFailed as error:
            misfit = None if asked is None else asked.misfit_in(error.__cause__)
            raise misfit or error from error.__cause__
        reply = await self.answer_of(handle.id)
        return reply if asked is None else asked.fitting(reply)

    async def start_question(
        self, question: Question, options: RunOptions, *, detach: bool = False, on_delta: Listener | None = None
    ) -> RunHandle:
        """Start the run of a question; raises before anything is stored when nobody could answer it."""
        return await start_question(self.agents, self.runs, question, options, detach=detach, on_delta=on_delta)

    async def submit_question(self, question: Question, options: RunOptions) -> RunHandle:
        """Store the run of a question for the workers; raises before that when nobody could answer it."""
        return await submit_question(self.agents, self.runs, question, options)

    async def outcome_of_question(self, run: Run) -> AskOutcome:
        """Return what became of the question of a run: its reply and whether that is a success."""
        return await outcome_of_question(self.runs, run)

    async def answer_of(self, run: RunId) -> Reply:
        """Return the reply to the question of a run."""
        return await answer_of(self.runs, run)

    @overload
    async def start(
        self, workload: WorkloadFunction[SpecT, ResultT], spec: SpecT, **options: Unpack[StartOptions]
    ) -> RunHandle[ResultT]: ...

    @overload
    async def start(
        self, workload: WorkloadFunction[MappingT, ResultT], spec: JsonMapping, **options: Unpack[StartOptions]
    ) -> RunHandle[ResultT]: ...

    @overload
    async def start(self, workload: str, spec: object, **options: Unpack[StartOptions]) -> RunHandle: ...

    async def start(
        self,
        workload: str | WorkloadFunction[Any, Any],
        spec: Any,
        *,
        budget_usd: str | float | None = None,
        name: str | None = None,
        tags: Sequence[str] = (),
        timeout: float | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        dispatch: str | Dispatch = LIVE,
        detach: bool = False,
        on_delta: Listener | None = None,
        origin: Origin | None = None,
        resume: bool = False,
    ) -> RunHandle[Any]:
        """Store a run and drive it in this process; with `detach` only until it waits for batches.

        A workload that is given as its function takes a spec of the type that it declares, and so is the result.
        With `resume` the newest run of that name goes on if there is one: it is resumed, followed if somebody drives
        it, or gives the result that it has. Raises Conflict when that does other work, or was canceled.
        With an origin it takes over what another run remembers, as far as the origin says.
        """
        options = self.runs.options(
            budget_usd=budget_usd,
            name=name,
            tags=tags,
            timeout=timeout,
            concurrency=concurrency,
            dispatch=dispatch,
        )
        asked, written = self._declared(workload, spec)
        if resume:
            only = only_of(options, origin)
            handle = await self._start_only(
                asked.name, written, only, budget_usd=budget_usd, detach=detach, on_delta=on_delta
            )
        else:
            handle = await self.start_with(
                asked.name, written, options, detach=detach, on_delta=on_delta, origin=origin
            )
        return returning(handle, asked.result)

    async def _start_only(
        self,
        workload: str,
        spec: Json,
        options: RunOptions,
        *,
        budget_usd: str | float | None,
        detach: bool,
        on_delta: Listener | None,
    ) -> RunHandle:
        """Go on with the newest run of the name, or start it; of several processes one starts it."""
        part = self._part_of(workload)
        while True:
            named = await self.runs.newest_named(options.name or "", workload, part.stored(spec))
            if named is not None:
                part.require_resumable(named)
                return await self.runs.follow_or_resume(named, budget_usd=budget_usd, on_delta=on_delta)
            with contextlib.suppress(NameTaken):  # somebody was faster: go on with that run
                return await self.start_with(workload, spec, options, detach=detach, on_delta=on_delta)

    def _declared(self, workload: str | WorkloadFunction[Any, Any], spec: object) -> tuple[DeclaredWorkload, Json]:
        """Return a workload with its spec as it is stored; one that is only named gives its result as JSON."""
        asked = declared(workload)
        known = self._backend.workloads
        return asked, (known.declared(asked.name) if asked.name in known else asked).written(spec)

    async def start_with(
        self,
        workload: str,
        spec: Json,
        options: RunOptions,
        *,
        detach: bool = False,
        on_delta: Listener | None = None,
        origin: Origin | None = None,
    ) -> RunHandle:
        """Start a run as `start` does, with options that were made before."""
        part = self._part_of(workload)
        begun = await part.start_stored(spec, options, detach=detach) if origin is None else None
        if begun is not None:
            return begun
        spec = part.stored(spec)
        return await self.runs.start(workload, spec, options, detach=detach, on_delta=on_delta, origin=origin)

    @overload
    async def submit(
        self, workload: WorkloadFunction[SpecT, ResultT], spec: SpecT, **options: Unpack[SubmitOptions]
    ) -> RunHandle[ResultT]: ...

    @overload
    async def submit(
        self, workload: WorkloadFunction[MappingT, ResultT], spec: JsonMapping, **options: Unpack[SubmitOptions]
    ) -> RunHandle[ResultT]: ...

    @overload
    async def submit(self, workload: str, spec: object, **options: Unpack[SubmitOptions]) -> RunHandle: ...

    async def submit(
        self,
        workload: str | WorkloadFunction[Any, Any],
        spec: Any,
        *,
        budget_usd: str | float | None = None,
        name: str | None = None,
        tags: Sequence[str] = (),
        timeout: float | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        dispatch: str | Dispatch = LIVE,
        resume: bool = False,
    ) -> RunHandle[Any]:
        """Store a run for the workers; a workload and its spec are given as to `start`.

        With `resume` the newest run of that name is theirs to go on with if there is one, and else is stored once.
        """
        options = self.runs.options(
            budget_usd=budget_usd,
            name=name,
            tags=tags,
            timeout=timeout,
            concurrency=concurrency,
            dispatch=dispatch,
        )
        asked, written = self._declared(workload, spec)
        stored = self._part_of(asked.name).stored(written)
        if resume:
            handle = await self._submit_only(asked.name, stored, only_of(options), budget_usd)
        else:
            handle = await self.runs.submit(asked.name, stored, options)
        return returning(handle, asked.result)

    async def _submit_only(
        self, workload: str, spec: Json, options: RunOptions, budget_usd: str | float | None
    ) -> RunHandle:
        """Hand the newest run of the name to the workers, or store it; of several processes one stores it."""
        while True:
            named = await self.runs.newest_named(options.name or "", workload, spec)
            if named is not None:
                self._part_of(workload).require_resumable(named)
                return await self.runs.follow_or_submit(named, budget_usd=budget_usd)
            with contextlib.suppress(NameTaken):  # somebody was faster
                return await self.runs.submit(workload, spec, options)

    async def resume(
        self, reference: str, *, budget_usd: str | float | None = None, on_delta: Listener | None = None
    ) -> RunHandle:
        """Go on with a run: with its continuation if it has one, else with itself, else with one new run.

        All of them spend from the budget that the first was started with; `budget_usd` sets a new total. One that has
        completed gives its result; one that another process drives is refused.
        """
        await self._require_resumable(reference)
        return await self.runs.resume(reference, budget_usd=budget_usd, on_delta=on_delta)

    async def prepare_resume(self, reference: str, *, budget_usd: str | float | None = None, here: bool = True) -> Run:
        """Return the run that will be driven on resume, made if need be, or that has completed.

        Raises before anything changes.
        """
        await self._require_resumable(reference)
        return await self.runs.prepare_resume(reference, budget_usd=budget_usd, here=here)

    async def submit_resume(self, reference: str, *, budget_usd: str | float | None = None) -> Run:
        """Hand the run that goes on to the workers; one that has completed, or is driven, is returned as it is."""
        await self._require_resumable(reference)
        return await self.runs.submit_resume(reference, budget_usd=budget_usd)

    async def _require_resumable(self, reference: str) -> None:
        """Raise before anything is spent when a run could not write what it leaves behind, or needs a slot."""
        run = await self.runs.find(reference)
        self._part_of(run.workload).require_resumable(run)

    def log(self, event: str, *, level: str = "info", **fields: Json) -> None:
        """Write a line to the log of this process, if it was opened with one."""
        if self._backend.telemetry is not None:
            self._backend.telemetry.log(event, fields, level)

    async def metrics(self, *, sse_watchers: int = 0) -> str:
        """Return metrics in the text format of Prometheus: of the store, and of this process.

        What this process has done, attempts and tokens, is counted only when it was opened with `metrics=True`.
        """
        from muster.app.metrics import metrics_text

        return await metrics_text(self._backend, sse_watchers)

    async def costs(self, days: int = 30) -> "Costs":
        """Return what was spent in so many days (UTC), by day, agent and run, and how the budgets above runs stand."""
        from muster.app.parts.spending import costs_since

        return await costs_since(self._backend, days)

    async def report(self, reference: str) -> "AnyReport":
        """Sum up a suite run or a verification; `last` is the newest run that has a report."""
        if reference != "last":
            return await self.report_of(await self.runs.find(reference))
        found = await self.runs.newest(REPORTED)
        if found is None:
            ways = ("muster run PATH --agent A", "muster verify PATH", "muster runs list")
            raise NotFound("this store has no suite run and no verification yet", suggestions=ways)
        return await self.report_of(found)

    async def report_of(self, run: Run) -> "AnyReport":
        """Sum up a suite run or a verification."""
        from muster.app.runs.reports import report_of

        return await report_of(self._backend.store, run)

    async def succeeded(self, run: Run) -> bool:
        """Return whether what a completed run came to is a success by the rules of its workload."""
        return await self.error_of(run) is None

    async def error_of(self, run: Run) -> Mapping[str, Json] | None:
        """Return why what a completed run came to is not a success by the rules of its workload; None when it is."""
        if run.overdraft is not None:
            return run.overdraft
        if run.workload in REPORTED:
            report = await self.report_of(run)
            return None if report.ok else not_passed(report.summary.verdict, [f"muster report {run.id}"])
        return await self._part_of(run.workload).error_of(run)

    async def output_of(self, run: Run) -> str:
        """Return what a run came to as a text: an answer if its kind has one, else its result as JSON."""
        return await self._part_of(run.workload).output(run)

    async def may_use_batches(self, run: Run) -> bool:
        """Return whether calls of a run may go into batches; a workload of the user's own may decide so at any time."""
        if run.dispatch.mode is Mode.BATCH or not kind_of(run).is_built_in:
            return True
        return bool((await self.runs.batches_of(run.id)).batches) or self._part_of(run.workload).uses_batches(run)

    def worker(
        self,
        *,
        most: int = 4,
        on_end: Callable[[Run], None] = lambda run: None,
        on_error: Callable[[RunId, MusterError], None] = lambda run, error: None,
        caps: "DriveCaps | None" = None,
        queues: Collection[str] = QUEUES,
        serving: bool = False,
        on_note: Callable[[str], None] = lambda text: None,
    ) -> "Worker":
        """Return a worker of this process; raises BadConfiguration when it could not know every workload.

        `caps` decide which runs may be driven beside each other. `queues` are "battles", "scale-tests" and "runs", for
        everything else. With REDIS_URL one that is `serving` drives only runs that no other worker takes; `on_note` is
        told so, and when the queue cannot be reached.
        """
        from muster.app.serving.workers import WorkerOptions, make_worker

        async def conclude(run: Run) -> None:
            if run.parent is None and run.state in TERMINAL:  # of a child its parent takes care
                await self._part_of(run.workload).after_end(run)
            on_end(run)

        options = WorkerOptions(
            most=most, queues=tuple(queues), caps=caps, on_end=conclude, on_error=on_error, on_note=on_note
        )
        return make_worker(self, self._backend, options, self._fallback if serving else None)

    @cached_property
    def _fallback(self) -> FallbackDelivery | None:
        """What lets a server drive only runs that no worker takes; None without a queue."""
        backend = self._backend
        if backend.queue is None:
            return None
        runs = FleetRuns(backend.store, backend.clock)
        cancels = CancelKeys(backend.queue.get(), backend.store, backend.clock, runs)
        return FallbackDelivery(served=backend.engine.served, cancels=cancels)

    @property
    def driven_here(self) -> Collection[str] | None:
        """The queues whose runs this server drives itself, since no worker takes them; None without REDIS_URL."""
        return None if self._backend.queue is None or self._fallback is None else sorted(self._fallback.taken)

    def stop(self, error: StopRun, *, now: bool) -> None:
        """Stop every run that this process drives; `now` cuts calls, and waits for no lock of another process."""
        if now:
            self.store.stop_waiting()
        self.runs.stop(error, now=now)

    async def close(self) -> None:
        """Let go of every run that is being driven here; they can be resumed."""
        await self.runs.close()
        await self._backend.feeds.close()

"""Traces of OpenTelemetry: a span for each run, call, attempt and batch, named by its conventions for generative AI.

    invoke_workflow WORKLOAD      a run, below the run that it is a child of
      invoke_agent AGENT          a call
        chat MODEL                an attempt of a model; of another agent: attempt AGENT
    batch                         a batch, a trace of its own; attempts in it have a link to it

A call that is answered from the journal has no attempt. Prompts, answers and messages of errors are left out unless
they were asked for.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from json import dumps
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, TracerProvider, set_span_in_context

from muster.domain.agent import Profile
from muster.domain.call import Reply, Request, Stop, ToolCall, Usage
from muster.domain.entry import AttemptId, Failed, Outcome, Replied
from muster.domain.errors import BadArgument, MusterError
from muster.domain.ids import BatchId, RunId
from muster.domain.money import to_usd
from muster.domain.observation import (
    AttemptBegan,
    AttemptEnded,
    BatchBegan,
    BatchEnded,
    CallBegan,
    CallEnded,
    Observation,
    RunBegan,
    RunEnded,
)
from muster.domain.run import FAILURES, Run
from muster.observability.exporters import make_provider
from muster.observability.options import TraceOptions

FLUSH_SECONDS = 5.0  # that a process which ends waits for the last spans to be sent
_FINISH_REASONS = {
    Stop.END: "stop",
    Stop.SEQUENCE: "stop",
    Stop.TOOL_USE: "tool_call",
    Stop.MAX_TOKENS: "length",
    Stop.REFUSED: "content_filter",
    Stop.OTHER: "other",
}

Redact = Callable[[str], str]
Attributes = dict[str, Any]


@dataclass(slots=True)
class _CallSpan:
    """A call under way, and its attempt if there is one; the request only where content is recorded."""

    span: Span
    profile: Profile
    request: Request | None
    attempt: Span | None = None
    attempts: int = 0


@dataclass(slots=True)
class _RunSpan:
    """A run that this process drives, and its calls under way."""

    span: Span
    calls: dict[str, _CallSpan] = field(default_factory=dict)


class SpanRecorder:
    """Makes spans of what the engine tells; an observer."""

    def __init__(self, tracer: Tracer, redact: Redact, *, content: bool = False) -> None:
        self._tracer, self._redact, self._content = tracer, redact, content
        self._runs: dict[RunId, _RunSpan] = {}
        self._batches: dict[BatchId, Span] = {}

    def __call__(self, observation: Observation) -> None:
        """Begin or end the span of an observation."""
        match observation:
            case RunBegan():
                self._begin_run(observation)
            case RunEnded():
                self._end_run(observation)
            case CallBegan():
                self._begin_call(observation)
            case CallEnded():
                self._end_call(observation)
            case AttemptBegan():
                self._begin_attempt(observation)
            case AttemptEnded():
                self._end_attempt(observation)
            case BatchBegan(batch):
                # Of no trace: many runs may have calls in it.
                attributes = {"muster.batch.id": batch}
                self._batches[batch] = self._tracer.start_span("batch", context=Context(), attributes=attributes)
            case BatchEnded():
                self._end_batch(observation)

    def _begin_run(self, began: RunBegan) -> None:
        run = began.run
        parent = self._runs.get(run.parent) if run.parent is not None else None
        # One that is nobody's child here goes below the span that is current where it was started.
        context = None if parent is None else set_span_in_context(parent.span)
        attributes = _run_attributes(run, began.epoch)
        span = self._tracer.start_span(f"invoke_workflow {run.workload}", context=context, attributes=attributes)
        self._runs[run.id] = _RunSpan(span)

    def _end_run(self, ended: RunEnded) -> None:
        found = self._runs.pop(ended.run.id, None)
        if found is None:
            return
        for call in found.calls.values():  # of a workload that did not let itself be canceled
            self._close_call(call)
        if ended.error is not None:
            self._fail(found.span, _code_of(ended.error), str(ended.error))
        else:
            found.span.set_attributes(_ending_attributes(ended.run))
            if ended.run.state in FAILURES:
                error = ended.run.error or {}
                self._fail(found.span, ended.run.ended_reason or "failed", str(error.get("message", "")))
        found.span.end()

    def _begin_call(self, began: CallBegan) -> None:
        run = self._runs.get(began.run)
        if run is None:
            return
        span = self._tracer.start_span(
            f"invoke_agent {began.profile.label}",
            context=set_span_in_context(run.span),
            attributes=self._call_attributes(began),
        )
        run.calls[began.key] = _CallSpan(span, began.profile, began.request if self._content else None)

    def _call_attributes(self, began: CallBegan) -> Attributes:
        return {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self._redact(began.profile.name),
            **_model_attributes(began.profile),
            "muster.run.id": began.run,
            "muster.call.key": began.key,
        }

    def _end_call(self, ended: CallEnded) -> None:
        run = self._runs.get(ended.run)
        call = run.calls.pop(ended.key, None) if run is not None else None
        if call is None:
            return
        match ended.outcome:
            case Reply() as reply:
                known = call.attempts == 0 and not call.profile.person
                call.span.set_attributes({"muster.call.from_journal": known, **_cost_attributes(reply)})
            case None:
                call.span.set_attribute("muster.call.canceled", True)
            case error:
                self._fail(call.span, _code_of(error), str(error))
        self._close_call(call)

    def _close_call(self, call: _CallSpan) -> None:
        if call.attempt is not None:
            call.attempt.end()
        call.span.set_attribute("muster.call.attempts", call.attempts)
        call.span.end()

    def _begin_attempt(self, began: AttemptBegan) -> None:
        call = self._call_of(began.attempt)
        if call is None:
            return
        profile, batch = call.profile, None if began.batch is None else self._batches.get(began.batch)
        call.attempts += 1
        call.attempt = self._tracer.start_span(
            f"chat {profile.model}" if profile.model else f"attempt {profile.label}",
            context=set_span_in_context(call.span),
            kind=SpanKind.CLIENT if profile.model else SpanKind.INTERNAL,
            attributes=self._attempt_attributes(began, call),
            links=None if batch is None else [Link(batch.get_span_context())],
        )

    def _attempt_attributes(self, began: AttemptBegan, call: _CallSpan) -> Attributes:
        found: Attributes = {
            **_model_attributes(call.profile),
            "muster.run.id": began.attempt.run,
            "muster.call.key": began.attempt.key,
            "muster.attempt.number": began.attempt.n,
            "muster.attempt.waited_seconds": began.waited,
        }
        if call.profile.model:
            found["gen_ai.operation.name"] = "chat"
        if began.batch is not None:
            found["muster.batch.id"] = began.batch
        return found if call.request is None else found | self._request_attributes(call.request)

    def _end_attempt(self, ended: AttemptEnded) -> None:
        call = self._call_of(ended.attempt)
        if call is None or call.attempt is None:
            return
        span, call.attempt = call.attempt, None
        self._describe(span, ended.outcome)
        span.end()

    def _describe(self, span: Span, outcome: Outcome | None) -> None:
        match outcome:
            case Replied(reply):
                span.set_attributes(_reply_attributes(reply))
                if self._content:
                    span.set_attribute("gen_ai.output.messages", self._output(reply))
            case Failed() as failed:
                if failed.again_in is not None:
                    span.set_attribute("muster.attempt.retry_in_seconds", failed.again_in)
                span.set_attribute("muster.attempt.uncertain", failed.uncertain)
                self._fail(span, str(failed.error.get("code", "")), str(failed.error.get("message", "")))
            case _:
                span.set_attribute("muster.attempt.left", True)

    def _end_batch(self, ended: BatchEnded) -> None:
        span = self._batches.pop(ended.batch, None)
        if span is None:
            return
        batch = ended.found
        if batch is not None:
            span.set_attributes(
                {
                    "gen_ai.provider.name": batch.endpoint.kind,
                    "muster.batch.provider_id": batch.provider_id or "",
                    "muster.batch.state": str(batch.state),
                    "muster.batch.requests": batch.requests,
                    "muster.batch.succeeded": batch.tally.succeeded,
                }
            )
        elif ended.error is not None:
            self._fail(span, _code_of(ended.error), str(ended.error))
        span.end()

    def _call_of(self, attempt: AttemptId) -> _CallSpan | None:
        run = self._runs.get(attempt.run)
        return None if run is None else run.calls.get(attempt.key)

    def _request_attributes(self, request: Request) -> Attributes:
        messages = [{"role": str(one.role), "parts": self._parts(one.text, one.tool_calls)} for one in request.messages]
        found = {"gen_ai.input.messages": dumps(messages)}
        if request.system:
            found["gen_ai.system_instructions"] = dumps(self._parts(request.system))
        return found

    def _output(self, reply: Reply) -> str:
        parts, reason = self._parts(reply.text, reply.tool_calls), _FINISH_REASONS[reply.stop]
        return dumps([{"role": "assistant", "parts": parts, "finish_reason": reason}])

    def _parts(self, text: str, calls: Iterable[ToolCall] = ()) -> list[Mapping[str, str]]:
        """Spell the parts of a message, without secrets; of tools only which were called."""
        said = [{"type": "text", "content": self._redact(text)}] if text else []
        return [*said, *({"type": "tool_call", "id": call.id, "name": call.name} for call in calls)]

    def _fail(self, span: Span, code: str, message: str) -> None:
        """Mark a span as failed; a message may quote a prompt or an answer, so it counts as content."""
        span.set_attribute("error.type", code)
        span.set_status(Status(StatusCode.ERROR, self._redact(message) if self._content else None))


def _run_attributes(run: Run, epoch: int) -> Attributes:
    found: Attributes = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": run.workload,
        "muster.run.id": run.id,
        "muster.run.epoch": epoch,
    }
    origin = None if run.origin is None else run.origin.run
    named = {"muster.run.name": run.name, "muster.run.parent": run.parent, "muster.run.origin": origin}
    return found | {name: value for name, value in named.items() if value is not None}


def _ending_attributes(run: Run) -> Attributes:
    return {
        "muster.run.state": str(run.state),
        "muster.run.reason": run.ended_reason or "",
        "muster.run.calls": run.calls.total,
        "muster.cost_usd": to_usd(run.spent.settled),
    }


def _model_attributes(profile: Profile) -> Attributes:
    named = {"gen_ai.provider.name": profile.provider, "gen_ai.request.model": profile.model}
    return {name: value for name, value in named.items() if value}


def _reply_attributes(reply: Reply) -> Attributes:
    named = {"gen_ai.response.model": reply.model, "gen_ai.response.id": reply.id}
    return {
        **{name: value for name, value in named.items() if value},
        "gen_ai.response.finish_reasons": [_FINISH_REASONS[reply.stop]],
        **_usage_attributes(reply.usage),
        **_cost_attributes(reply),
    }


def _usage_attributes(usage: Usage) -> Attributes:
    return {
        "gen_ai.usage.input_tokens": usage.all_input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write + usage.cache_write_1h,
    }


def _cost_attributes(reply: Reply) -> Attributes:
    return {"muster.cost_usd": to_usd(reply.cost), "muster.cost_lane": str(reply.lane)}


def _code_of(error: BaseException) -> str:
    return error.code if isinstance(error, MusterError) else type(error).__name__


class TraceSession:
    """Traces of one opened Muster: the observer, and the provider that sends what it records."""

    def __init__(self, recorder: SpanRecorder, provider: Any, *, own: bool) -> None:
        self.recorder = recorder
        self._provider, self._own = provider, own

    async def close(self) -> None:
        """Send the last spans, for some seconds at most; a provider of the user's own is left to the user."""
        if not self._own:
            return
        loop, sent = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            loop.call_soon_threadsafe(sent.set)

        # A daemon: a collector that does not answer keeps no process alive.
        threading.Thread(target=shut_down, name="muster-traces", daemon=True).start()
        await asyncio.wait({asyncio.ensure_future(sent.wait())}, timeout=FLUSH_SECONDS)


def open_traces(options: TraceOptions, provider: object | None, redact: Redact) -> TraceSession:
    """Make the traces of an opened Muster, with the user's provider or one that sends them as the options say."""
    if provider is not None and not isinstance(provider, TracerProvider):
        raise BadArgument(
            f"must be a TracerProvider of OpenTelemetry, not {type(provider).__name__}", argument="tracer_provider"
        )
    chosen = make_provider(options) if provider is None else provider
    recorder = SpanRecorder(chosen.get_tracer("muster"), redact, content=options.content)
    return TraceSession(recorder, chosen, own=provider is None)

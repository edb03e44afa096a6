"""The program agent: one process for every call, asked on standard input, heard on standard output.

The modes exec, chat and plain are the three ways to write a request and to read what comes out.
"""

import asyncio
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from muster.agents.base import OnDelta
from muster.agents.local import exit_of, folder_of, retold, transcript_of, variables_of
from muster.agents.payload import microdollars_of, spelled
from muster.agents.processes.conversation import Finished, communicate
from muster.agents.processes.process import ProcessCommand
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.program import exec_protocol
from muster.agents.program.answer import ProgramAnswer, context_of, counts, find_marked, written
from muster.agents.program.answer import encode as encode_context
from muster.agents.program.exec_protocol import failure_of
from muster.agents.usage import ProcessBill, max_tokens_of
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request, Stop, ToolCall, Trace
from muster.domain.canonical import Json
from muster.domain.errors import AgentFailed, BadExit, BadOutput
from muster.domain.money import NOTHING, Microdollars
from muster.domain.script import Line, usage_of
from muster.text.json_documents import flaw_of, parseable, readable
from muster.text.schemas.guard import in_schema_thread
from muster.text.schemas.json_schema import require_schema, shaped
from muster.text.secrets.redaction import Redactor

_SHOWN = 500  # characters of a log in a message
_LARGE = 262_144  # bytes of output that are read beside the event loop


Mode = Literal["exec", "plain", "chat"]


FailureReport = tuple[str, Microdollars | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRequest:
    """A request in the words of one mode; reading is pure, and raises BadOutput."""

    input: bytes
    read: Callable[[bytes], ProgramAnswer]
    failure_of: Callable[[bytes], FailureReport]  # of a program that failed: its own words for it, and what it cost


class ProgramAgent:
    """Any command that reads standard input and answers on standard output."""

    def __init__(
        self,
        *,
        profile: Profile,
        order: ProcessCommand,
        mode: Mode,
        processes: ProcessRegistry,
        most: Microdollars = NOTHING,
        exits: tuple[int, ...] | None = None,
        quotes: bool = False,
    ) -> None:
        self._profile, self._order, self._mode = profile, order, mode
        self._processes, self._bill = processes, ProcessBill(most=most)
        self._exits = exits  # codes with which its output is an answer, also when there is none
        self._quotes = quotes  # its output is kept without secrets of others

    @property
    def profile(self) -> Profile:
        """Return the profile: the name, its defaults and its pace."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Return the maximum cost of one call: what was declared, whatever the request."""
        sent = usage_of(request.messages, request.system, Line()).input
        return Quote(most=self._bill.reserved, tokens=sent + max_tokens_of(request))

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Start the program, ask it once and give its answer; it and all that it started are ended after that."""
        require_schema(request)
        question = program_request(self._mode, request, self._profile.name, timeouts.call)
        try:
            finished = await self._run(question.input, request, timeouts)
            answer = await self._read(question, finished, request)
        except AgentFailed as error:
            error.command = shlex.join(self._order.command)
            self._bill.charge(error)
            raise
        if on_delta is not None and answer.text:
            on_delta(answer.text)
        return self._reply(answer, finished)

    async def close(self) -> None:
        """Do nothing: no process outlives its call."""

    async def _run(self, data: bytes, request: Request, timeouts: Timeouts) -> Finished:
        environment = {**self._order.environment, **variables_of(request)}
        folder = folder_of(request, self._order.folder or Path())
        order = replace(self._order, input=data, environment=environment, folder=folder)
        async with self._processes.process(order) as process:
            finished = await communicate(process, timeouts)
        return await asyncio.to_thread(_without_secrets, finished) if self._quotes else finished

    async def _read(self, question: ProgramRequest, finished: Finished, request: Request) -> ProgramAnswer:
        if request.schema is not None:
            return await in_schema_thread(self._judge, question, finished, request)
        if len(finished.output) < _LARGE:
            return self._judge(question, finished, request)
        return await asyncio.to_thread(self._judge, question, finished, request)

    def _judge(self, question: ProgramRequest, finished: Finished, request: Request) -> ProgramAnswer:
        """Read what a program left, or raise what is wrong with it under the name of the agent."""
        if finished.status not in (self._exits or (0,)):
            raise self._bad_exit(question, finished)
        try:
            return _fitting(_answered(question, finished, silent=self._exits is not None), request)
        except BadOutput as error:
            raise retold(error, f"agent {self._profile.name!r}: ", log=finished.log) from error

    def _bad_exit(self, question: ProgramRequest, finished: Finished) -> BadExit:
        words, cost = question.failure_of(finished.output)
        said = [part for part in (finished.log.strip()[:_SHOWN], words) if part]
        why = "; ".join(said) or "it wrote nothing to standard error"
        why += self._end_of(finished.output)  # the log may hold nothing but warnings
        message = f"agent {self._profile.name!r}: {exit_of(finished.status)}: {why}"
        error = BadExit(message, log=finished.log, cost=cost)
        error.exit_status = finished.status
        return error

    def _end_of(self, output: bytes) -> str:
        """Quote how an output ends, of a program whose output counts: many checkers say there why they stopped."""
        if self._exits is None:
            return ""
        said = " ".join(output[-4 * _SHOWN :].decode("utf-8", "replace").split())[-_SHOWN:]
        return f"; its output ends: {said}" if said else ""

    def _reply(self, answer: ProgramAnswer, finished: Finished) -> Reply:
        cost, lane = self._bill.settle(answer.cost)
        return Reply(
            text=answer.text,
            stop=answer.stop,
            tool_calls=answer.tool_calls,
            usage=answer.usage,
            cost=cost,
            lane=lane,
            model=self._profile.name,
            data=answer.data,
            trace=Trace(session=answer.session, turns=answer.turns, log=finished.log, exit=finished.status),
        )


def _without_secrets(finished: Finished) -> Finished:
    """Take out what looks like a secret; bytes that are no text stay what they are."""
    redactor = Redactor()
    said = redactor.text(finished.output.decode("utf-8", "surrogateescape"))
    return replace(finished, output=said.encode("utf-8", "surrogateescape"), log=redactor.text(finished.log))


def _answered(question: ProgramRequest, finished: Finished, *, silent: bool) -> ProgramAnswer:
    if finished.broken:
        raise BadOutput("it exited without reading its input, so this is no answer to it")
    if not finished.output.strip() and not silent:
        raise BadOutput("it gave no output", suggestions=("write the answer to standard output",))
    return question.read(finished.output)


def _fitting(answer: ProgramAnswer, request: Request) -> ProgramAnswer:
    """Return an answer with its data, where a schema was asked for; that of the exec protocol has its own.

    Who asks with a context asks for the shape of that protocol; the schema is for agents that do not speak it.
    """
    if answer.tool_calls or (request.context is not None and answer.data is not None):
        return answer
    try:
        data = shaped(request, answer.stop, answer.text)
    except BadOutput as error:
        raise retold(error, cost=answer.cost) from error
    return replace(answer, data=data) if answer.data is None else answer


def program_request(mode: Mode, request: Request, agent: str, seconds: float) -> ProgramRequest:
    """Put a request in the words of a mode; raises InvalidRequest when there are none for it."""
    match mode:
        case "exec":
            context = context_of(request, agent, seconds)
            read = partial(exec_protocol.decode, context=context)
            return ProgramRequest(input=encode_context(context, agent), read=read, failure_of=failure_of)
        case "chat":
            return ProgramRequest(input=encode_chat(request, agent), read=decode_chat, failure_of=failure_of)
        case "plain":
            return ProgramRequest(input=encode_plain(request), read=decode_plain, failure_of=_silent)


def _silent(_: bytes) -> FailureReport:
    return "", None


_OTHER_SHAPE = "its answer is not in the shape of chat mode: "

# Our own words, and those that providers use for the same.
_STOPS = {str(stop): stop for stop in Stop} | {
    "end_turn": Stop.END,
    "stop": Stop.END,
    "stop_sequence": Stop.SEQUENCE,
    "tool_calls": Stop.TOOL_USE,
    "length": Stop.MAX_TOKENS,
    "refusal": Stop.REFUSED,
    "content_filter": Stop.REFUSED,
}


def encode_chat(request: Request, agent: str) -> bytes:
    """Write a request, with nothing in it that is not set."""
    return written(spelled(request), agent)


def decode_chat(output: bytes) -> ProgramAnswer:
    """Read an answer: the last JSON object in the output that is one, or the whole output as text."""
    found = find_marked(parseable(output), _is_answer)
    if found is None:
        return decode_plain(output)
    cost = microdollars_of(found.get("cost_usd"))
    try:
        return _chat_answer(found, cost)
    except BadOutput as error:
        raise retold(error, _OTHER_SHAPE, cost=cost) from error


def _is_answer(value: Mapping[str, Json]) -> bool:
    return isinstance(value.get("text"), str) or isinstance(value.get("content"), str) or "tool_calls" in value


def _chat_answer(found: Mapping[str, Json], cost: Microdollars | None) -> ProgramAnswer:
    calls = _calls(found.get("tool_calls"))
    return ProgramAnswer(
        text=_string(found, "text") or _string(found, "content"),
        stop=_stop(_string(found, "stop_reason"), bool(calls)),
        tool_calls=calls,
        usage=counts(found.get("usage")),
        cost=cost,
        session=_string(found, "session"),
    )


def _calls(calls: Json) -> tuple[ToolCall, ...]:
    if calls is None:
        return ()
    if not isinstance(calls, list):
        raise BadOutput("tool_calls must be a list")
    return tuple(_call(call, place) for place, call in enumerate(calls))


def _call(call: Json, place: int) -> ToolCall:
    where = f"tool_calls[{place}]"
    if not isinstance(call, dict):
        raise BadOutput(f"{where} must be an object")
    name, arguments, id_ = call.get("name"), call.get("arguments", {}), call.get("id")
    if not isinstance(name, str) or not name:
        raise BadOutput(f"{where} needs the name of a tool")
    if not isinstance(arguments, dict):
        raise BadOutput(f"{where}: arguments must be an object")
    if not isinstance(id_, str | None):
        raise BadOutput(f"{where}: id must be a string")
    flaw = flaw_of(arguments)
    if flaw is not None:
        raise BadOutput(f"{where}: arguments cannot be kept: {flaw}")
    return ToolCall(id=id_ or f"call_{place + 1}", name=name, arguments=arguments)


def _string(found: Mapping[str, Json], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str | None):
        raise BadOutput(f"{name} must be a string")
    return value or ""


def _stop(reason: str, uses_tools: bool) -> Stop:
    stop = _STOPS.get(reason, Stop.OTHER) if reason else Stop.END
    return Stop.TOOL_USE if uses_tools and stop is Stop.END else stop


def encode_plain(request: Request) -> bytes:
    """Write a request as text."""
    return transcript_of(request).encode("utf-8", "backslashreplace")


def decode_plain(output: bytes) -> ProgramAnswer:
    """Return an output as it is, without the end of its last line."""
    return ProgramAnswer(text=readable(output).rstrip("\r\n"))

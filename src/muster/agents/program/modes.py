"""The three ways to talk with a program: what goes in, and how what comes out is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from muster.agents.local import retold, transcript_of
from muster.agents.payload import microdollars_of, spelled
from muster.agents.program import exec_protocol
from muster.agents.program.answer import ProgramAnswer, context_of, counts, find_marked, written
from muster.agents.program.answer import encode as encode_context
from muster.agents.program.exec_protocol import last_words
from muster.domain.call import Request, Stop, ToolCall
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput
from muster.domain.money import Microdollars
from muster.text.json_documents import flaw_of, parseable, readable

Mode = Literal["exec", "plain", "chat"]
LastWords = tuple[str, Microdollars | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRequest:
    """A request in the words of one mode; reading is pure, and raises BadOutput."""

    input: bytes
    read: Callable[[bytes], ProgramAnswer]
    last_words: Callable[[bytes], LastWords]  # of a program that failed: its own words for it, and what it cost


def pose(mode: Mode, request: Request, agent: str, seconds: float) -> ProgramRequest:
    """Put a request in the words of a mode; raises InvalidRequest when there are none for it."""
    match mode:
        case "exec":
            context = context_of(request, agent, seconds)
            read = partial(exec_protocol.decode, context=context)
            return ProgramRequest(input=encode_context(context, agent), read=read, last_words=last_words)
        case "chat":
            return ProgramRequest(input=encode_chat(request, agent), read=decode_chat, last_words=last_words)
        case "plain":
            return ProgramRequest(input=encode_plain(request), read=decode_plain, last_words=_silent)


def _silent(_: bytes) -> LastWords:
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
        return _answer(found, cost)
    except BadOutput as error:
        raise retold(error, _OTHER_SHAPE, cost=cost) from error


def _is_answer(value: Mapping[str, Json]) -> bool:
    return isinstance(value.get("text"), str) or isinstance(value.get("content"), str) or "tool_calls" in value


def _answer(found: Mapping[str, Json], cost: Microdollars | None) -> ProgramAnswer:
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

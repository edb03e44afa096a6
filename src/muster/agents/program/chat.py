"""Chat mode: the request as one JSON object in, the answer as one JSON object, or as plain text, out."""

from collections.abc import Mapping
from typing import Any

from muster.agents.program import plain
from muster.agents.program.answer import Answer, count, counts, dollars
from muster.agents.program.envelope import written
from muster.agents.program.extract import find, parseable
from muster.agents.program.keeping import flaw_of
from muster.domain.call import Message, Request, Stop, ToolCall
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput
from muster.domain.money import Microdollars

_SAMPLING = ("max_tokens", "temperature", "top_p", "seed", "schema")
_TOKENS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")

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


def encode(request: Request, agent: str) -> bytes:
    """Write a request, with nothing in it that is not set."""
    body: dict[str, Any] = {"messages": [_message(message) for message in request.messages]}
    if request.system:
        body["system"] = request.system
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
            for tool in request.tools
        ]
    if request.stop:
        body["stop"] = list(request.stop)
    for name in _SAMPLING:
        if (value := getattr(request, name)) is not None:
            body[name] = value
    return written(body, agent)


def decode(output: bytes) -> Answer:
    """Read an answer: the last JSON object in the output that is one, or the whole output as text."""
    found = find(parseable(output), _is_answer)
    if found is None:
        return plain.decode(output)
    cost = _cost(found)
    try:
        return _answer(found, cost)
    except BadOutput as error:
        raise BadOutput(f"its answer is not in the shape of chat mode: {error.message}", cost=cost) from error


def _is_answer(value: Mapping[str, Json]) -> bool:
    return isinstance(value.get("text"), str) or isinstance(value.get("content"), str) or "tool_calls" in value


def _answer(found: Mapping[str, Json], cost: Microdollars | None) -> Answer:
    calls = _calls(found.get("tool_calls"))
    _check_usage(found.get("usage"))
    return Answer(
        text=_string(found, "text") or _string(found, "content"),
        stop=_stop(_string(found, "stop_reason"), bool(calls)),
        tool_calls=calls,
        usage=counts(found.get("usage")),
        cost=cost,
        session=_string(found, "session"),
    )


def _message(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {"role": str(message.role), "content": message.text}
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        found["tool_call_id"] = message.tool_call_id
    return found


def _cost(found: Mapping[str, Json]) -> Microdollars | None:
    said = found.get("cost_usd")
    cost = dollars(said)
    if said is not None and cost is None:
        raise BadOutput(f"its answer is not in the shape of chat mode: cost_usd is no amount in dollars: {said!r}")
    return cost


def _check_usage(usage: Json) -> None:
    if usage is None:
        return
    if not isinstance(usage, dict):
        raise BadOutput("usage must be an object")
    for name in _TOKENS:
        if usage.get(name) is not None and count(usage[name]) is None:
            raise BadOutput(f"usage.{name} must be a whole number, 0 or more")


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

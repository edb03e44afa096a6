"""Chat mode: the request as one JSON object in, the answer as one JSON object, or as plain text, out."""

from collections.abc import Mapping

from muster.agents.amounts import microdollars_of
from muster.agents.program import plain
from muster.agents.program.answer import Answer, counts
from muster.agents.program.envelope import written
from muster.agents.program.markers import find_marked
from muster.agents.retold import retold
from muster.agents.spelling import spelled
from muster.domain.call import Request, Stop, ToolCall
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput
from muster.domain.money import Microdollars
from muster.shapes.json_limits import flaw_of
from muster.shapes.json_search import parseable

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


def encode(request: Request, agent: str) -> bytes:
    """Write a request, with nothing in it that is not set."""
    return written(spelled(request), agent)


def decode(output: bytes) -> Answer:
    """Read an answer: the last JSON object in the output that is one, or the whole output as text."""
    found = find_marked(parseable(output), _is_answer)
    if found is None:
        return plain.decode(output)
    cost = microdollars_of(found.get("cost_usd"))
    try:
        return _answer(found, cost)
    except BadOutput as error:
        raise retold(error, _OTHER_SHAPE, cost=cost) from error


def _is_answer(value: Mapping[str, Json]) -> bool:
    return isinstance(value.get("text"), str) or isinstance(value.get("content"), str) or "tool_calls" in value


def _answer(found: Mapping[str, Json], cost: Microdollars | None) -> Answer:
    calls = _calls(found.get("tool_calls"))
    return Answer(
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

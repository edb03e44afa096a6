"""What a function of the user's gave back, as a reply: a text, a mapping of parts, or a reply of its own. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, replace
from typing import Any

from muster.agents.amounts import count_of, microdollars_of, tokens_of
from muster.agents.payload import to_json
from muster.agents.retold import retold
from muster.agents.service_terms import Counted, Terms
from muster.agents.service_values import stop_of, tool_calls_of
from muster.agents.tally import ceiling_of
from muster.domain.call import Reply, Request, Stop, ToolCall, Trace, Usage
from muster.domain.canonical import Json, plain_json
from muster.domain.errors import BadArgument, BadOutput
from muster.domain.money import NOTHING, Lane, is_cost
from muster.shapes.schema import shaped

PARTS = ("text", "tool_calls", "input_tokens", "output_tokens", "cost_usd", "data")

_KINDS: Mapping[str, type] = {
    "text": str, "stop": Stop, "tool_calls": tuple, "usage": Usage, "lane": Lane
}  # fmt: skip


def reply_of(result: Any, request: Request, size: int, terms: Terms) -> Reply:
    """Make a reply of a result, or raise BadOutput; `size` is that of the request in bytes."""
    if isinstance(result, Reply):
        return _shaped(_checked(result, terms), request)
    parts = {"text": result} if isinstance(result, str) else result
    if not isinstance(parts, Mapping):
        raise BadOutput(
            f"the function returned {type(result).__name__}, which is no answer",
            suggestions=(f"return a text, a mapping with some of {', '.join(PARTS)}, or a muster.Reply",),
        )
    return _assembled(parts, request, size, terms)


def _assembled(parts: Mapping[str, Any], request: Request, size: int, terms: Terms) -> Reply:
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


def _checked(reply: Reply, terms: Terms) -> Reply:
    """Take a reply at its word, if it can be stored; one that counts tokens and no cost is priced."""
    for name, kind in _KINDS.items():
        if not isinstance(getattr(reply, name), kind):
            raise BadOutput(f"the function returned a Reply whose {name} is no {kind.__name__}")
    reply = replace(reply, tool_calls=_calls(reply.tool_calls), data=_plain(reply.data, "data"))
    if tokens_of(*astuple(reply.usage)) is None or not is_cost(reply.cost):
        return replace(reply, usage=Usage(), cost=NOTHING, lane=Lane.UNCERTAIN)
    if terms.price is None or reply.cost or reply.usage == Usage():
        return reply
    return replace(reply, cost=terms.price.cost(reply.usage))


def _shaped(reply: Reply, request: Request) -> Reply:
    """Give a reply with the data that was asked for; one without it has cost what it says."""
    try:
        return replace(reply, data=shaped(request, reply.stop, reply.text, reply.data))
    except BadOutput as error:
        known = None if reply.lane is Lane.UNCERTAIN else reply.cost
        raise BadOutput(error.message, cost=known, imputed=reply.lane is Lane.IMPUTED) from error


def _require_known(parts: Mapping[str, Any]) -> None:
    unknown = [name for name in parts if name not in PARTS]
    if unknown:
        raise BadOutput(
            f"the function returned a mapping with {unknown[0]!r} in it, which is not known",
            suggestions=(f"use {', '.join(PARTS)}",),
        )


def _counted(parts: Mapping[str, Any]) -> Counted:
    sent, wrote, cost = parts.get("input_tokens"), parts.get("output_tokens"), parts.get("cost_usd")
    counted = Counted(input=count_of(sent), output=count_of(wrote), cost=microdollars_of(cost))
    told = ((sent, counted.input), (wrote, counted.output), (cost, counted.cost))
    return replace(counted, wrong=any(value is not None and number is None for value, number in told))


def _calls(items: Any) -> tuple[ToolCall, ...]:
    calls = tool_calls_of(_plain(_spelled(items), "tool_calls"))
    if calls is None:
        raise BadOutput(
            "the function returned tool_calls that are no list of calls with a name each",
            suggestions=('write them like [{"name": "search", "arguments": {"query": "x"}}]',),
        )
    return calls


def _spelled(items: Any) -> Any:
    if not isinstance(items, Iterable) or isinstance(items, str | Mapping):
        return items
    return [asdict(item) if isinstance(item, ToolCall) else item for item in items]


def _text(parts: Mapping[str, Any], data: Json, called: bool) -> str:
    text = parts.get("text")
    if isinstance(text, str):
        return text
    if text is None and data is not None:
        return to_json(data).decode()
    if text is None and called:
        return ""
    raise BadOutput(
        f"the function returned a mapping whose text is {type(text).__name__}",
        suggestions=('return {"text": "…"}, or the text alone',),
    )


def _plain(value: Any, what: str) -> Json:
    try:
        return plain_json(value, what)
    except BadArgument as error:
        raise BadOutput(f"the function returned {error.message}") from error

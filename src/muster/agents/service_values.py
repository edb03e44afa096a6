"""Values that the user's own application hands over: tokens, dollars and tool calls, read with care. Pure."""

import json
from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import Any

from muster.agents.payload import arguments_of, to_json
from muster.domain.call import Request, Stop, ToolCall
from muster.domain.canonical import Json
from muster.domain.money import MOST_DOLLARS, Microdollars

_MOST_TOKENS = 10**12


def count_of(value: Json) -> int | None:
    """Read a number of tokens; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def microdollars_of(value: Any) -> Microdollars | None:
    """Read dollars, rounded up to a whole microdollar; None for what is no amount."""
    if not isinstance(value, int | float | str | Decimal):
        return None
    try:
        dollars = Decimal(str(value))  # refuses True and False
    except InvalidOperation:
        return None
    if not dollars.is_finite() or not 0 <= dollars <= MOST_DOLLARS:
        return None
    return Microdollars(int((dollars * 1_000_000).to_integral_value(ROUND_CEILING)))


def tool_calls_of(value: Json) -> tuple[ToolCall, ...] | None:
    """Read tool calls, flat or wrapped in "function" as OpenAI does; None when one of them names no tool."""
    if not isinstance(value, list):
        return None
    calls = [_tool_call(item, place) for place, item in enumerate(value)]
    return tuple(call for call in calls if call is not None) if None not in calls else None


def stop_of(request: Request, text: str, calls: Iterable[ToolCall]) -> Stop:
    """Say why it stopped: an application that uses its own tools is done, one that was given ours waits for them."""
    waits = any(call.result is None for call in calls)
    return Stop.TOOL_USE if waits and (request.tools or not text) else Stop.END


def data_of(request: Request, text: str) -> Json:
    """Read an answer that was asked for as data; None when it is none."""
    if request.schema is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _tool_call(item: Json, place: int) -> ToolCall | None:
    if not isinstance(item, dict):
        return None
    used = item["function"] if isinstance(item.get("function"), dict) else item
    name, result, given = used.get("name"), item.get("result"), item.get("id")
    if not isinstance(name, str) or not name:
        return None
    return ToolCall(
        id=given if isinstance(given, str) and given else f"call_{place}",
        name=name,
        arguments=arguments_of(used.get("arguments")),
        result=result if result is None or isinstance(result, str) else to_json(result).decode(),
        failed=item.get("failed") is True,
    )

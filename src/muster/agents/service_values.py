"""Values that the user's own application hands over: tool calls, and why it stopped. Pure."""

from collections.abc import Iterable

from muster.agents.payload import arguments_of, to_json
from muster.domain.call import Request, Stop, ToolCall
from muster.domain.canonical import Json


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

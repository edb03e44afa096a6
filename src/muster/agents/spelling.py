"""A request as JSON for programs and services that are no model: plain names, and nothing that is not set. Pure."""

from typing import Any

from muster.domain.call import Message, Request

_SAMPLING = ("max_tokens", "temperature", "top_p", "seed", "schema")


def spelled(request: Request) -> dict[str, Any]:
    """Give all that is set in a request, besides its context and what is volatile."""
    found: dict[str, Any] = {"messages": [spelled_message(message) for message in request.messages]}
    if request.system:
        found["system"] = request.system
    if request.tools:
        found["tools"] = [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
            for tool in request.tools
        ]
    if request.stop:
        found["stop"] = list(request.stop)
    sampling = {name: getattr(request, name) for name in _SAMPLING}
    return found | {name: value for name, value in sampling.items() if value is not None}


def spelled_message(message: Message) -> dict[str, Any]:
    """Give one turn."""
    found: dict[str, Any] = {"role": str(message.role), "content": message.text}
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        found["tool_call_id"] = message.tool_call_id
    return found

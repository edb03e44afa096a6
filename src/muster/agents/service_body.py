"""What is posted to the user's own service: a body of our own making, or a template of theirs. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.agents.payload import to_json
from muster.agents.tally import max_tokens_of
from muster.domain.call import Message, Request, ToolCall
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration

_MESSAGES = "{messages}"
_SLOT = re.compile(r"\{(prompt|system)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A body in which "{messages}" stands for the conversation, and "{prompt}" and "{system}" for texts."""

    body: Mapping[str, Json]
    has_system: bool  # without a place of its own, the system prompt opens the conversation

    def fill(self, request: Request) -> Json:
        """Give the body for a request; what is filled in is never looked at again."""
        texts = {"prompt": request.prompt, "system": request.system}
        messages = [_message(message) for message in request.messages]
        if request.system and not self.has_system:
            messages.insert(0, {"role": "system", "content": request.system})

        def fill(text: str) -> Json:
            return messages if text == _MESSAGES else _SLOT.sub(lambda slot: texts[slot[1]], text)

        return _mapped(self.body, fill)


def template_of(body: Mapping[str, Json], where: str) -> Template:
    """Read a template, or raise BadConfiguration when it would ask the same whatever is asked."""
    found: set[str] = set()

    def look(text: str) -> str:
        found.update([text] if text == _MESSAGES else _SLOT.findall(text))
        return text

    _mapped(body, look)
    if not found & {_MESSAGES, "prompt"}:
        raise BadConfiguration(
            f"{where} has no place for the question, so every call would post the same",
            suggestions=('write "{prompt}" or "{messages}" where the question belongs',),
        )
    return Template(body, "system" in found)


def encode(request: Request, template: Template | None) -> bytes:
    """Write a request as the body of a POST."""
    return to_json(_plain(request) if template is None else template.fill(request))


def _plain(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = {
        "messages": [_message(message) for message in request.messages],
        "prompt": request.prompt,
        "max_tokens": max_tokens_of(request),
    }
    if request.system:
        body["system"] = request.system
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools
        ]
    if request.stop:
        body["stop"] = request.stop
    optional = {name: getattr(request, name) for name in ("temperature", "top_p", "seed", "schema")}
    return body | {name: value for name, value in optional.items() if value is not None}


def _message(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {"role": message.role.value, "content": message.text}
    if message.tool_calls:
        found["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        found["tool_call_id"] = message.tool_call_id
    return found


def _tool_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def _mapped(value: Json, change: Callable[[str], Json]) -> Json:
    """Give a JSON value with every text in it changed; the names of fields stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _mapped(part, change) for name, part in value.items()}
    return [_mapped(part, change) for part in value] if isinstance(value, list | tuple) else value

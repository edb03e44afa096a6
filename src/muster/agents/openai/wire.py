"""Requests as OpenAI's chat completions take them. Pure; used by live calls and by batches."""

import re
from collections.abc import Iterator
from typing import Any

from muster.agents.payload import marked, to_json
from muster.domain.agent import DEFAULT_MAX_TOKENS
from muster.domain.call import Message, Request, Role, Tool, ToolCall
from muster.domain.canonical import Json, JsonObject
from muster.domain.effort import EFFORT, extra_fields
from muster.domain.media import Media, MediaKind
from muster.domain.provider import OPENAI, PROVIDERS, MaxTokens, Provider

__all__ = ["LimitSpelling", "MaxTokens", "encode", "params"]

_FIELDS = re.compile(r"\bmax_(?:completion_)?tokens\b")
_UNKNOWN = re.compile(
    r"unsupported|not supported|unrecogni[sz]ed|unknown|unexpected|not permitted|extra", re.IGNORECASE
)

_INSTEAD = re.compile(r"\b(?:instead|use)\b", re.IGNORECASE)


class LimitSpelling:
    """How one server spells `max_tokens` for one model: as it is set, or as it is guessed until the guess is refused.

    What was learned holds for all calls of the process; it costs no request again.
    """

    def __init__(self, field: MaxTokens, *, is_set: bool = False) -> None:
        self.field = self._guess = field
        self._is_set = is_set
        self._refused: set[MaxTokens] = set()

    def learn(self, sent: bytes, refusal: str) -> bool:
        """Take in why a request was refused; return whether it is worth a second try under the other name."""
        field = MaxTokens.NEW if b'"max_completion_tokens":' in sent else MaxTokens.OLD
        other = MaxTokens.OLD if field is MaxTokens.NEW else MaxTokens.NEW
        if self._is_set or not _refuses(refusal, field, other):
            return False
        self._refused.add(field)
        if other in self._refused:  # it takes neither, for now: what was guessed is tried again with the next call
            self.field = self._guess
            self._refused.clear()
            return False
        self.field = other
        return True


def _refuses(refusal: str, field: MaxTokens, other: MaxTokens) -> bool:
    """Return whether a refusal is about the name of the limit, and not about its size.

    It calls our name unknown, or tells us to use the other. One that is too large may be called by either name.
    """
    named = set(_FIELDS.findall(refusal))
    unknown = field in named and _UNKNOWN.search(refusal) is not None
    return unknown or (other in named and _INSTEAD.search(refusal) is not None)


def encode(
    request: Request,
    model: str,
    *,
    stream: bool = False,
    max_tokens: MaxTokens = MaxTokens.NEW,
    tier: str = "",
    provider: Provider = PROVIDERS[OPENAI],
) -> bytes:
    """Write a request as the body of a POST, in the dialect of a provider."""
    body = params(request, model, max_tokens=max_tokens)
    for name, other in provider.spelled.items():
        if name in body:
            body[other] = body.pop(name)
    if tier:
        body["service_tier"] = provider.tiers.get(tier, tier)
    if stream:
        body["stream"] = True
        if provider.stream_options:
            body["stream_options"] = {"include_usage": True}
    return to_json(body)


def params(request: Request, model: str, *, max_tokens: MaxTokens = MaxTokens.NEW) -> JsonObject:
    """Return a request as the provider's parameters; what the request leaves open is left out."""
    body: JsonObject = {
        "model": model,
        "messages": list(_turns(request)),
        max_tokens.value: DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens,
    }
    if request.tools:
        body["tools"] = [{"type": "function", "function": _function(tool)} for tool in request.tools]
    if request.stop:
        body["stop"] = request.stop
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.seed is not None:
        body["seed"] = request.seed
    if request.schema is not None:
        shape: JsonObject = {"name": "answer", "schema": dict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    if request.settings:
        if EFFORT in request.settings:
            body["reasoning_effort"] = request.settings[EFFORT]
        body.update(extra_fields(request.settings))
    return body  # `cache` needs no mark here: these servers find shared prefixes by themselves


def _turns(request: Request) -> Iterator[JsonObject]:
    if request.system:
        yield {"role": "system", "content": request.system}
    for message in request.messages:
        yield _turn(message)


def _turn(message: Message) -> JsonObject:
    if message.role is Role.TOOL:
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": message.text}
    if not message.tool_calls:
        return {"role": message.role.value, "content": _asked(message)}
    return {
        "role": message.role.value,
        "content": message.text or None,
        "tool_calls": [_tool_call(call) for call in message.tool_calls],
    }


def _asked(message: Message) -> Json:
    """Return what is said: a text, or parts where something is shown."""
    return [_part(part) for part in message.parts if part] if message.parts else message.text


def _part(part: str | Media) -> JsonObject:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    data: Any = marked(part, f"data:{part.type};base64,")
    if part.kind is MediaKind.IMAGE:  # left open, the server decides how closely it looks, and what that counts
        return {"type": "image_url", "image_url": {"url": data, "detail": "high"}}
    return {"type": "file", "file": {"filename": part.name or "document.pdf", "file_data": data}}


def _tool_call(call: ToolCall) -> JsonObject:
    arguments = to_json(dict(call.arguments)).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _function(tool: Tool) -> JsonObject:
    shown: JsonObject = {"name": tool.name, "parameters": dict(tool.parameters)}
    if tool.description:
        shown["description"] = tool.description
    return shown

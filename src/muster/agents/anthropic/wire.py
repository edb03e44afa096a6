"""Requests as Anthropic's Messages API takes them. Pure; used by live calls and by batches."""

from collections.abc import Iterator, Mapping
from typing import Any

from muster.agents.payload import marked, to_json
from muster.domain.agent import DEFAULT_MAX_TOKENS
from muster.domain.call import Message, Request, Role, Tool
from muster.domain.canonical import Json
from muster.domain.effort import EFFORT, OFF, SHOWS, THINKS, extra_fields
from muster.domain.media import Media, MediaKind
from muster.domain.price import ServiceTier

# How a request asks for a tier of service; others are not offered.
TIERS: Mapping[str, tuple[str, str]] = {
    ServiceTier.AUTO: ("service_tier", "auto"),
    ServiceTier.DEFAULT: ("service_tier", "standard_only"),
    ServiceTier.FAST: ("speed", "fast"),
}


def encode(
    request: Request, model: str, *, stream: bool = False, tier: str = "", geo: str = "", raw: str = ""
) -> bytes:
    """Write a request as the body of a POST; `raw` is the version for servers that have the model in the address."""
    body = params(request, model)
    if raw:
        body = {"anthropic_version": raw, **{name: value for name, value in body.items() if name != "model"}}
    if tier:
        name, word = TIERS[tier]
        body[name] = word
    if geo:
        body["inference_geo"] = geo
    if stream:
        body["stream"] = True
    return to_json(body)


# What counts: the rest of a request is refused where tokens are only counted.
_COUNTED = ("model", "messages", "system", "tools", "thinking", "output_config")


def encode_count(request: Request, model: str) -> bytes:
    """Write a request as the body of a POST that asks how many tokens go in with it."""
    return to_json({name: value for name, value in params(request, model).items() if name in _COUNTED})


def params(request: Request, model: str) -> dict[str, Json]:
    """Return a request as the provider's parameters; what the request leaves open is left out."""
    body: dict[str, Json] = {
        "model": model,
        "max_tokens": DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens,
        "messages": list(_turns(request.messages)),
    }
    if system := _system(request):
        body["system"] = system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.stop:
        body["stop_sequences"] = request.stop
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.schema is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
    if request.settings:
        _set_thinking(body, request.settings)
    if request.cache is not None:
        _mark(body, {"type": "ephemeral", "ttl": request.cache}, request.shared)
    return body


def _set_thinking(body: dict[str, Any], settings: Mapping[str, Json]) -> None:
    """Say how much the model is to think, and how."""
    effort, thinking = settings.get(EFFORT), settings.get(THINKS)
    if effort is not None:
        body.setdefault("output_config", {})["effort"] = effort
    if isinstance(thinking, int):
        body["thinking"] = {"type": "enabled", "budget_tokens": thinking}
    elif thinking is not None:
        body["thinking"] = {"type": "disabled" if thinking == OFF else thinking}
    if settings.get(SHOWS) is not None and "thinking" in body:
        body["thinking"]["display"] = settings[SHOWS]
    body.update(extra_fields(settings))


def _system(request: Request) -> str:
    """Join the system prompt with the system messages: this API takes them in one place only."""
    said = [message.text for message in request.messages if message.role is Role.SYSTEM]
    return "\n\n".join(text for text in (request.system, *said) if text) if said else request.system


def _turns(messages: tuple[Message, ...]) -> Iterator[dict[str, Json]]:
    results: list[dict[str, Json]] = []  # of one turn: the API wants all results of a turn in one message
    for message in messages:
        if message.role is Role.TOOL:
            results.append(_result(message))
        elif message.role is not Role.SYSTEM:
            if results:
                yield {"role": "user", "content": results}
                results = []
            if message.role is Role.USER:
                yield {"role": "user", "content": _asked(message)}
            elif message.text or message.tool_calls or message.blocks:  # an empty answer is refused
                yield {"role": "assistant", "content": _answered(message)}
    if results:
        yield {"role": "user", "content": results}


def _asked(message: Message) -> Any:
    """Return what a user said: a text, or blocks where something is shown; an empty block of text is refused."""
    return [_part(part) for part in message.parts if part] if message.parts else message.text


def _part(part: str | Media) -> dict[str, object]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    source = {"type": "base64", "media_type": part.type, "data": marked(part)}
    if part.kind is MediaKind.IMAGE:
        return {"type": "image", "source": source}
    block: dict[str, object] = {"type": "document", "source": source}
    return {**block, "title": part.name} if part.name else block


def _answered(message: Message) -> str | list[dict[str, Json]]:
    if message.blocks is not None:  # in an unbroken run, unchanged: the model goes on thinking where it was
        return [dict(block.raw) for block in message.blocks.blocks]
    if not message.tool_calls:
        return message.text
    blocks: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
    uses = ({"id": call.id, "name": call.name, "input": dict(call.arguments)} for call in message.tool_calls)
    return [*blocks, *({"type": "tool_use", **use} for use in uses)]


def _result(message: Message) -> dict[str, Json]:
    return {"type": "tool_result", "tool_use_id": message.tool_call_id or "", "content": message.text}


def _tool(tool: Tool) -> dict[str, Json]:
    shown: dict[str, Json] = {"name": tool.name, "input_schema": dict(tool.parameters)}
    if tool.description:
        shown["description"] = tool.description
    return shown


def _mark(body: dict[str, Any], control: dict[str, str], shared: int) -> None:
    """Mark the end of what many requests share: tools come before system, and system before messages."""
    if shared:
        _mark_part(body["messages"][0], control, shared)
    elif "system" in body:
        body["system"] = [{"type": "text", "text": body["system"], "cache_control": control}]
    elif "tools" in body:
        body["tools"][-1]["cache_control"] = control
    else:
        _mark_first(body["messages"], control)


def _mark_part(turn: dict[str, Any], control: dict[str, str], shared: int) -> None:
    """Mark the beginning of a message; the rest is a block only if there is one: an empty block is refused."""
    blocks = turn["content"] if isinstance(turn["content"], list) else [{"type": "text", "text": turn["content"]}]
    first, *rest = blocks
    text = first.get("text", "")
    kept = [{"type": "text", "text": text[shared:]}] if text[shared:] else []
    begun = {**first, "text": text[:shared]} if kept else first
    turn["content"] = [{**begun, "cache_control": control}, *kept, *rest]


def _mark_first(turns: list[Any], control: dict[str, str]) -> None:
    for turn in turns:
        content = turn["content"]
        if turn["role"] != "user" or not content:
            continue
        if isinstance(content, str):
            turn["content"] = [{"type": "text", "text": content, "cache_control": control}]
            return
        if content[-1]["type"] != "tool_result":
            content[-1]["cache_control"] = control
            return

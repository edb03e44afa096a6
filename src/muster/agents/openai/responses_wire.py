"""Requests as OpenAI's Responses API takes them. Pure; used by live calls and by batches."""

from collections.abc import Iterator, Mapping
from typing import Any

from muster.agents.payload import marked, to_json
from muster.domain.agent import DEFAULT_MAX_TOKENS
from muster.domain.call import Message, Request, Role, Tool
from muster.domain.canonical import Json, JsonObject
from muster.domain.content import AnswerBlocks
from muster.domain.effort import EFFORT, extra_fields
from muster.domain.media import Media, MediaKind

ENCRYPTED = "reasoning.encrypted_content"


def encode(request: Request, model: str, *, stream: bool = False, tier: str = "", reasons: bool = False) -> bytes:
    """Write a request as the body of a POST; `reasons` says that the model is known to reason."""
    body = params(request, model, reasons=reasons)
    if tier:
        body["service_tier"] = tier
    if stream:
        body["stream"] = True
    return to_json(body)


# What counts: the rest of a request is refused where tokens are only counted.
_COUNTED = (
    "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning", "truncation",
)  # fmt: skip


def encode_count(request: Request, model: str) -> bytes:
    """Write a request as the body of a POST that asks how many tokens go in with it."""
    return to_json({name: value for name, value in params(request, model).items() if name in _COUNTED})


def params(request: Request, model: str, *, reasons: bool = False) -> JsonObject:
    """Return a request as the provider's parameters; what the request leaves open is left out."""
    body: JsonObject = {
        "model": model,
        "input": list(_items(request.messages)),
        "max_output_tokens": DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens,
        "store": False,  # the conversation is ours to keep, and its reasoning comes to us
    }
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.schema is not None:
        body["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": dict(request.schema)}}
    _set_reasoning(body, request.settings or {}, reasons=reasons)
    return body


def _set_reasoning(body: JsonObject, settings: Mapping[str, Json], *, reasons: bool) -> None:
    """Write how much the model is to reason, that its reasoning is wanted, and what the section adds."""
    effort = settings.get(EFFORT)
    if effort is not None:
        body["reasoning"] = {"effort": effort}
    if reasons or effort not in (None, "none"):  # a model that does not reason refuses to be asked for it
        body["include"] = [ENCRYPTED]
    for name, value in extra_fields(settings).items():
        own = body.get(name)
        body[name] = {**value, **own} if isinstance(own, dict) and isinstance(value, dict) else value


def _items(messages: tuple[Message, ...]) -> Iterator[JsonObject]:
    for message in messages:
        if message.role is Role.TOOL:
            yield {"type": "function_call_output", "call_id": message.tool_call_id or "", "output": message.text}
        elif message.role is Role.ASSISTANT:
            yield from _answered(message)
        else:
            yield {"role": message.role.value, "content": _content(message)}


def _content(message: Message) -> Json:
    """Return what a person or the system says in one message: a text, or parts where something is shown."""
    return [_part(part) for part in message.parts if part] if message.parts else message.text


def _part(part: str | Media) -> JsonObject:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    data: Any = marked(part, f"data:{part.type};base64,")
    if part.kind is MediaKind.IMAGE:  # left open, the server decides how closely it looks, and what that counts
        return {"type": "input_image", "image_url": data, "detail": "high"}
    return {"type": "input_file", "filename": part.name or "document.pdf", "file_data": data}


def _answered(message: Message) -> Iterator[JsonObject]:
    """Yield an earlier answer: as it came where its reasoning is known, else made of its text and tool calls."""
    if message.blocks is not None and _holds_reasoning(message.blocks):
        yield from _returned(message.blocks)
        return
    if message.text:
        yield {"role": "assistant", "content": message.text}
    for call in message.tool_calls:
        arguments = to_json(dict(call.arguments)).decode()
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def _holds_reasoning(content: AnswerBlocks) -> bool:
    """Return whether reasoning came with its content; without it, it is a reference to what nobody stored."""
    items = [block.raw for block in content.blocks if block.raw.get("type") == "reasoning"]
    return all(item.get("encrypted_content") or item.get("content") for item in items)


def _returned(content: AnswerBlocks) -> list[JsonObject]:
    """Return the items of an answer unchanged; reasoning that nothing follows, as in a cut answer, is refused."""
    items = [dict(block.raw) for block in content.blocks]
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    return items


def _tool(tool: Tool) -> JsonObject:
    # Without a word about it functions would be strict here, which takes only some schemas.
    shown: JsonObject = {"type": "function", "name": tool.name, "parameters": dict(tool.parameters), "strict": False}
    if tool.description:
        shown["description"] = tool.description
    return shown

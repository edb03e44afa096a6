"""The Messages protocol of Anthropic: understands requests, spells answers, streams and errors."""

from collections.abc import Iterator, Mapping
from typing import Any

from muster.domain.call import Message, Role, Stop, ToolCall
from muster.domain.canonical import Json
from muster.sim.protocols.ask import (
    DEFAULT_TIER,
    FAST,
    GEOS,
    PRIORITY,
    Ask,
    SimAnswer,
    SimRefusal,
    ThinkingPlan,
    Thought,
    blocks_of,
    pieces,
    sent_tokens,
    text_in,
    text_of,
)
from muster.sim.protocols.cache import marks_of
from muster.sim.protocols.media import anthropic_tokens
from muster.sim.protocols.models import anthropic_model
from muster.sim.protocols.thinking_blocks import plan_of
from muster.text import typed

ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
STOPS = {
    Stop.END: "end_turn",
    Stop.SEQUENCE: "stop_sequence",
    Stop.TOOL_USE: "tool_use",
    Stop.MAX_TOKENS: "max_tokens",
    Stop.REFUSED: "refusal",
    Stop.OTHER: "pause_turn",
}
ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}

TIERS = (DEFAULT_TIER, PRIORITY, FAST)

_encode = typed.encode


class Anthropic:
    """Speaks the Messages protocol."""

    request_id_header = "request-id"
    wants_key = True

    def read(self, body: dict[str, Json]) -> Ask:
        """Understand a request to `/v1/messages`."""
        return Ask(
            model=_model(body),
            max_tokens=_max_tokens(body),
            messages=tuple(_messages(body)),
            system=text_in(body.get("system") or "", "system"),
            stop=_stop_sequences(body),
            stream=body.get("stream") is True,
            marks=marks_of(_with_tools(body)),
            media=_media(body),
            context=anthropic_model(_model(body)).context,
            tier=_tier(body),
            tiers=TIERS,
            fast=body.get("speed") == "fast",
            geo=_geo(body),
            has_geo=anthropic_model(_model(body)).has_geo,
        )

    def plan(self, body: dict[str, Json], *, batch: bool) -> ThinkingPlan:
        """Decide how a request is thought about, and look at the thinking blocks that it brings back."""
        return plan_of(body, batch=batch)

    def count(self, body: dict[str, Json]) -> bytes:
        """Spell how many tokens go in with a request to `/v1/messages/count_tokens`."""
        ask = self.read(body | {"max_tokens": 1})
        return _encode({"input_tokens": sent_tokens(ask)})

    def whole(self, said: SimAnswer) -> bytes:
        """Spell a message."""
        return _encode(_message(said, _content(said), _ending(said), _usage(said)))

    def events(self, said: SimAnswer) -> list[bytes]:
        """Spell a message as events."""
        return [_event(event) for event in _stream(said)]

    def error(self, refused: SimRefusal, request_id: str) -> bytes:
        """Spell an error in the envelope of this provider."""
        error = {"type": ERRORS.get(refused.status, "api_error"), "message": refused.message}
        return _encode({"type": "error", "error": error, "request_id": request_id})


def _model(body: dict[str, Json]) -> str:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise SimRefusal(400, _wrong("model", model, "string"))
    return model


def _max_tokens(body: dict[str, Json]) -> int:
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise SimRefusal(400, _wrong("max_tokens", limit, "integer"))
    if limit < 0:
        raise SimRefusal(400, "max_tokens: Input should be greater than or equal to 0")
    return limit


def _stop_sequences(body: dict[str, Json]) -> tuple[str, ...]:
    stop = body.get("stop_sequences") or []
    if not isinstance(stop, list) or not all(isinstance(item, str) and item.strip() for item in stop):
        raise SimRefusal(400, "stop_sequences: each stop sequence must be a string that contains non-whitespace")
    return tuple(stop)


def _media(body: Mapping[str, Any]) -> int:
    contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
    if not contents:
        return 0
    model = anthropic_model(body["model"])
    return sum(anthropic_tokens(content, model) for content in contents)


def _tier(body: dict[str, Json]) -> str | None:
    tier = body.get("service_tier")
    if tier not in (None, "auto", "standard_only"):
        raise SimRefusal(400, "service_tier: Input should be 'auto' or 'standard_only'")
    if body.get("speed") not in (None, "standard", "fast"):
        raise SimRefusal(400, "speed: Input should be 'standard' or 'fast'")
    return DEFAULT_TIER if tier == "standard_only" else None


def _geo(body: dict[str, Json]) -> str | None:
    geo = body.get("inference_geo")
    if geo is None:
        return None
    if geo not in GEOS:
        raise SimRefusal(400, "inference_geo: Input should be 'global' or 'us'")
    if not anthropic_model(_model(body)).has_geo:
        raise SimRefusal(400, f"inference_geo: is not supported by {body['model']}")
    return str(geo)


def _with_tools(body: dict[str, Json]) -> dict[str, Json]:
    tools = body.get("tools") or []
    if not isinstance(tools, list) or not all(isinstance(tool, dict) and "name" in tool for tool in tools):
        raise SimRefusal(400, "tools: Input should be a list of tools with a name")
    return body


def _messages(body: dict[str, Json]) -> Iterator[Message]:
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise SimRefusal(400, _wrong("messages", messages, "list"))
    if not messages:
        raise SimRefusal(400, "messages: at least one message is required")
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise SimRefusal(400, f"{where}.role: Input should be 'user' or 'assistant'")
        content = message.get("content")
        if not content and not (message["role"] == "assistant" and index == len(messages) - 1 and content is not None):
            raise SimRefusal(400, f"{where}: all messages must have non-empty content")
        if isinstance(content, str):
            yield Message(role=ROLES[message["role"]], text=content)
        else:
            yield from _turns(ROLES[message["role"]], blocks_of(content, f"{where}.content"), f"{where}.content")


def _turns(role: Role, blocks: list[dict[str, Json]], where: str) -> Iterator[Message]:
    # Results of tools are blocks of the user here and messages of their own in the domain; the rest is one message.
    texts, calls, results = [], [], 0
    for index, block in enumerate(blocks):
        text = text_of(block, f"{where}.{index}")
        if block["type"] == "tool_result":
            results += 1
            yield Message(role=Role.TOOL, text=text, tool_call_id=_string(block, "tool_use_id", f"{where}.{index}"))
        elif block["type"] == "tool_use":
            calls.append(_tool_call(block, f"{where}.{index}"))
        else:
            texts.append(text)
    if texts or calls or not results:
        yield Message(role=role, text="".join(texts), tool_calls=tuple(calls))


def _tool_call(block: Mapping[str, Any], where: str) -> ToolCall:
    if not isinstance(block.get("input"), dict):
        raise SimRefusal(400, f"{where}.input: Input should be a valid dictionary")
    return ToolCall(id=_string(block, "id", where), name=_string(block, "name", where), arguments=block["input"])


def _string(block: Mapping[str, Json], name: str, where: str) -> str:
    if not isinstance(block.get(name), str):
        raise SimRefusal(400, _wrong(f"{where}.{name}", block.get(name), "string"))
    return str(block[name])


def _wrong(name: str, value: Json, kind: str) -> str:
    return f"{name}: Field required" if value is None else f"{name}: Input should be a valid {kind}"


def _content(said: SimAnswer) -> list[dict[str, Json]]:
    texts: list[dict[str, Json]] = [{"type": "text", "text": said.line.text}] if said.line.text else []
    calls: list[dict[str, Json]] = [
        {"type": "tool_use", "id": call.id or f"toolu_{said.digest[:20]}_{index}", "name": call.name}
        | {"input": dict(call.arguments)}
        for index, call in enumerate(said.line.tool_calls)
    ]
    return [*_thinking(said.thought), *texts, *calls]


def _thinking(thought: Thought | None) -> list[dict[str, Json]]:
    if thought is None:
        return []
    if thought.redacted:
        return [{"type": "redacted_thinking", "data": thought.seal}]
    return [{"type": "thinking", "thinking": thought.text, "signature": thought.seal}]


def _ending(said: SimAnswer) -> dict[str, Json]:
    stop = Stop.TOOL_USE if said.line.tool_calls and said.line.stop is Stop.END else said.line.stop
    details = {"type": "refusal", "category": None, "explanation": None} if stop is Stop.REFUSED else None
    return {"stop_reason": STOPS[stop], "stop_sequence": said.stop_sequence, "stop_details": details}


def _message(
    said: SimAnswer, content: list[dict[str, Json]], ending: dict[str, Json], usage: dict[str, Json]
) -> dict[str, Json]:
    name = {"id": f"msg_sim_{said.number:08d}", "type": "message", "role": "assistant", "model": said.ask.model}
    return {**name, "content": content, **ending, "usage": usage}


def _usage(said: SimAnswer) -> dict[str, Json]:
    usage = said.usage
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write + usage.cache_write_1h,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
        },
        "output_tokens": usage.output,
        **({"output_tokens_details": {"thinking_tokens": said.thought.tokens}} if said.thought else {}),
        "service_tier": "batch" if said.batch else "priority" if said.tier == PRIORITY else "standard",
        **({"speed": "fast"} if said.ask.fast else {}),
        "inference_geo": said.geo,
    }


def _stream(said: SimAnswer) -> Iterator[dict[str, Json]]:
    nothing_yet: dict[str, Json] = {"stop_reason": None, "stop_sequence": None, "stop_details": None}
    usage = _usage(said)
    begun = {name: value for name, value in usage.items() if name != "output_tokens_details"} | {"output_tokens": 1}
    yield {"type": "message_start", "message": _message(said, [], nothing_yet, begun)}
    yield {"type": "ping"}
    for index, block in enumerate(_content(said)):
        yield from _block_events(index, block)
    counted = {
        name: count for name, count in usage.items() if isinstance(count, int) or name == "output_tokens_details"
    }
    yield {"type": "message_delta", "delta": _ending(said), "usage": counted}
    yield {"type": "message_stop"}


def _block_events(index: int, block: dict[str, Json]) -> Iterator[dict[str, Json]]:
    start, deltas = _opened(block)
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _opened(block: dict[str, Any]) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    """Return a block as it begins, and what is added to it."""
    kind = block["type"]
    if kind == "redacted_thinking":
        return block, []
    if kind == "thinking":
        thinking = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"]) or [""]]
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return block | {"thinking": "", "signature": ""}, [*thinking, signature]
    if kind == "text":
        return block | {"text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    text = _encode(block["input"]).decode()
    return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(text)]


def _event(event: Mapping[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), _encode(event))

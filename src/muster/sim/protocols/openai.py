"""The chat completions protocol of OpenAI and its kin: understands requests, spells answers, streams and errors."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from muster.domain.call import Message, Role, Stop, ToolCall
from muster.domain.canonical import Json
from muster.sim.protocols.ask import Ask, SimAnswer, SimRefusal, ThinkingPlan, pieces, reasoning_tokens, text_in
from muster.sim.protocols.media import openai_tokens
from muster.sim.protocols.models import openai_model
from muster.sim.protocols.reasoning import check_limit, effort_of, tier_of
from muster.text import typed

_REASONING = re.compile(r"(?:^|[-/])o\d")  # models that refuse the old name of the limit
CREATED = 1_767_225_600  # every answer has the same date, so that the same requests get the same bytes

ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
STOPS = {
    Stop.END: "stop",
    Stop.SEQUENCE: "stop",
    Stop.TOOL_USE: "tool_calls",
    Stop.MAX_TOKENS: "length",
    Stop.REFUSED: "content_filter",
    Stop.OTHER: "function_call",
}
TYPES = {429: "requests", 500: "server_error", 529: "server_error"}
CODES = {401: "invalid_api_key", 413: "request_too_large", 429: "rate_limit_exceeded", 529: "overloaded"}

_encode = typed.encode


class OpenAI:
    """Speaks the chat completions protocol."""

    request_id_header = "x-request-id"
    wants_key = True

    def read(self, body: dict[str, Json]) -> Ask:
        """Understand a request to `/v1/chat/completions`."""
        if body.get("n") not in (None, 1):
            raise invalid("n", "the rehearsal server gives one choice")
        options = body.get("stream_options")
        return Ask(
            model=model_of(body),
            messages=tuple(_messages(body)),
            max_tokens=_max_tokens(body),
            stop=_stop(body),
            stream=body.get("stream") is True,
            stream_usage=isinstance(options, dict) and options.get("include_usage") is True,
            media=_media(body),
            context=openai_model(model_of(body)).context,
            tier=tier_of(body),
            names_tier="service_tier" in body,
        )

    def plan(self, body: Mapping[str, Any], *, batch: bool) -> ThinkingPlan:
        """Decide how a request is reasoned about; chat completions never bring reasoning back."""
        for name in ("max_completion_tokens", "max_tokens"):
            check_limit(body.get(name), openai_model(body["model"]), name)
        return ThinkingPlan(effort=effort_of(body, body.get("reasoning_effort"), "reasoning_effort"))

    def whole(self, said: SimAnswer) -> bytes:
        """Spell a completion."""
        message = {"role": "assistant", **_text(said, said.line.text)}
        if said.line.tool_calls:
            message["tool_calls"] = list(_tool_calls(said))
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(said)}
        return _encode(_named(said, "chat.completion") | {"choices": [choice], "usage": _usage(said)})

    def events(self, said: SimAnswer) -> list[bytes]:
        """Spell a completion as chunks."""
        name = _named(said, "chat.completion.chunk") | ({"usage": None} if said.ask.stream_usage else {})
        chunks = [name | {"choices": [_choice(delta, None)]} for delta in _deltas(said)]
        chunks.append(name | {"choices": [_choice({}, _finish(said))]})
        if said.ask.stream_usage:
            chunks.append(name | {"choices": [], "usage": _usage(said)})
        return [b"data: %b\n\n" % _encode(chunk) for chunk in chunks] + [b"data: [DONE]\n\n"]

    def error(self, refused: SimRefusal, request_id: str) -> bytes:
        """Spell an error in the envelope of this provider."""
        kind = TYPES.get(refused.status, "invalid_request_error")
        code = refused.code or CODES.get(refused.status)
        return _encode({"error": {"message": refused.message, "type": kind, "param": refused.param, "code": code}})


def model_of(body: Mapping[str, Json]) -> str:
    """Return the model that is asked, or refuse a request without one."""
    model = body.get("model")
    if model is None:
        raise missing("model")
    if not isinstance(model, str) or not model:
        raise invalid("model", "expected a string")
    return model


def _max_tokens(body: dict[str, Json]) -> int:
    if "max_tokens" in body and _REASONING.search(str(body.get("model"))):
        raise SimRefusal(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            code="unsupported_parameter",
            param="max_tokens",
        )
    for name in ("max_completion_tokens", "max_tokens"):
        limit = body.get(name)
        if limit is None:
            continue
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise invalid(name, "expected an integer of at least 1")
        return limit
    return openai_model(model_of(body)).max_output


def _media(body: Mapping[str, Any]) -> int:
    contents = [message["content"] for message in body["messages"] if isinstance(message.get("content"), list)]
    return sum(openai_tokens(parts, openai_model(body["model"])) for parts in contents) if contents else 0


def _stop(body: dict[str, Json]) -> tuple[str, ...]:
    stop = body.get("stop") or []
    stop = [stop] if isinstance(stop, str) else stop
    if not isinstance(stop, list) or len(stop) > 4 or not all(isinstance(item, str) and item for item in stop):
        raise invalid("stop", "expected up to four strings")
    return tuple(stop)


def _messages(body: dict[str, Json]) -> Iterator[Message]:
    messages = body.get("messages")
    if messages is None:
        raise missing("messages")
    if not isinstance(messages, list) or not messages:
        raise SimRefusal(
            400, "Invalid 'messages': expected an array of at least one message.", code="empty_array", param="messages"
        )
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise invalid(f"{where}.role", f"supported values are {', '.join(map(repr, ROLES))}")
        yield _message(message, where)


def _message(message: Mapping[str, Any], where: str) -> Message:
    role, content, calls = ROLES[message["role"]], message.get("content"), message.get("tool_calls") or []
    if content is None and role is not Role.ASSISTANT:
        raise invalid(f"{where}.content", "expected a string or an array")
    if role is Role.TOOL and not isinstance(message.get("tool_call_id"), str):
        raise missing(f"{where}.tool_call_id")
    if not isinstance(calls, list):
        raise invalid(f"{where}.tool_calls", "expected an array")
    return Message(
        role=role,
        text=text_in(content or "", f"{where}.content"),
        tool_calls=tuple(_tool_call(call, f"{where}.tool_calls") for call in calls),
        tool_call_id=message.get("tool_call_id"),
    )


def _tool_call(call: Any, where: str) -> ToolCall:
    try:
        function = call["function"]
        return ToolCall(id=str(call["id"]), name=function["name"], arguments=typed.decode(function["arguments"]))
    except (KeyError, TypeError, typed.DecodeError):
        raise invalid(where, "expected an id, and a function with a name and arguments in JSON") from None


def missing(param: str) -> SimRefusal:
    """Make the refusal of a request that lacks a parameter."""
    return SimRefusal(400, f"Missing required parameter: '{param}'.", code="missing_required_parameter", param=param)


def invalid(param: str, why: str) -> SimRefusal:
    """Make the refusal of a parameter."""
    return SimRefusal(400, f"Invalid value for '{param}': {why}.", code="invalid_value", param=param)


def _named(said: SimAnswer, kind: str) -> dict[str, Json]:
    return {
        "id": f"chatcmpl-sim-{said.number:08d}",
        "object": kind,
        "created": CREATED,
        "model": said.ask.model,
        **({"service_tier": said.tier} if said.ask.names_tier else {}),
        "system_fingerprint": "fp_sim",
    }


def _finish(said: SimAnswer) -> str:
    # A refusal in words is a message of its own kind; one without words is the filter's.
    if said.line.stop is Stop.REFUSED and said.line.text:
        return "stop"
    if said.line.tool_calls and said.line.stop is Stop.END:
        return "tool_calls"
    return STOPS[said.line.stop]


def _text(said: SimAnswer, text: str) -> dict[str, Json]:
    if said.line.stop is Stop.REFUSED and text:
        return {"content": None, "refusal": text}
    return {"content": text if text or not said.line.tool_calls else None, "refusal": None}


def _tool_calls(said: SimAnswer) -> Iterator[Mapping[str, Any]]:
    for index, call in enumerate(said.line.tool_calls):
        function = {"name": call.name, "arguments": _encode(dict(call.arguments)).decode()}
        yield {"id": call.id or f"call_{said.digest[:20]}_{index}", "type": "function", "function": function}


def _usage(said: SimAnswer) -> dict[str, Json]:
    usage = said.usage
    return {
        "prompt_tokens": usage.all_input,
        "completion_tokens": usage.output,
        "total_tokens": usage.all_input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning_tokens(said), "audio_tokens": 0},
    }


def _choice(delta: dict[str, Json], finish: str | None) -> dict[str, Json]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _deltas(said: SimAnswer) -> Iterator[dict[str, Json]]:
    yield {"role": "assistant", "content": None if said.line.tool_calls else "", "refusal": None}
    field = "refusal" if said.line.stop is Stop.REFUSED else "content"
    for piece in pieces(said.line.text):
        yield {field: piece}
    for index, call in enumerate(_tool_calls(said)):
        arguments = call["function"]["arguments"]
        yield {"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]}
        for piece in pieces(arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

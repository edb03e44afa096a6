"""The Responses protocol of OpenAI: understands requests, spells answers, streams and errors."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.domain.call import Message, Role, Stop, ToolCall
from muster.domain.canonical import Json
from muster.sim.protocols.ask import (
    Ask,
    SimAnswer,
    SimRefusal,
    ThinkingPlan,
    Thought,
    pieces,
    reasoning_tokens,
    sent_tokens,
)
from muster.sim.protocols.media import openai_tokens
from muster.sim.protocols.models import UNKNOWN_MODEL, openai_model
from muster.sim.protocols.openai import CREATED, ROLES, OpenAI, invalid, missing, model_of
from muster.sim.protocols.reasoning import check_limit, effort_of, tier_of
from muster.sim.protocols.reasoning_items import ENCRYPTED, REASONING, ReturnedItems, item_id
from muster.sim.protocols.thinking_blocks import Block
from muster.text import typed

MIN_OUTPUT = 16
SUMMARIES = ("auto", "concise", "detailed")
CALL, OUTPUT = "function_call", "function_call_output"
INCOMPLETE = {Stop.MAX_TOKENS: "max_output_tokens", Stop.REFUSED: "content_filter", Stop.OTHER: "max_messages"}
QUEUED = "queued"
# What an answer repeats of its request, with what stands there when the request says nothing.
REPEATED: Mapping[str, Json] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
}
# What a request that only counts tokens may have.
COUNTED = frozenset(
    (
        "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning",
        "truncation", "conversation", "previous_response_id", "personality",
    )
)  # fmt: skip

_encode = typed.encode


class Responses:
    """Speaks the Responses protocol."""

    request_id_header = "x-request-id"
    wants_key = True

    def read(self, body: dict[str, Json]) -> Ask:
        """Understand a request to `/v1/responses`."""
        for name in ("previous_response_id", "conversation", "prompt"):
            if body.get(name) is not None:
                raise invalid(name, "the rehearsal server keeps no conversations")
        background = body.get("background") is True
        if background and body.get("store") is False:
            raise invalid("background", "background responses need store to be true")
        model, items = model_of(body), items_of(body)
        return Ask(
            model=model,
            messages=tuple(_messages(items)),
            max_tokens=_limit(body),
            system=_instructions(body),
            stream=body.get("stream") is True,
            media=_media(items, model),
            context=openai_model(model).context,
            tier=tier_of(body),
            names_tier="service_tier" in body,
            body=body,
        )

    def plan(self, body: Block, *, batch: bool) -> ThinkingPlan:
        """Decide how a request is reasoned about, and look at the items of reasoning that it brings back."""
        model, config = openai_model(body["model"]), body.get("reasoning") or {}
        if not isinstance(config, dict):
            raise invalid("reasoning", "expected an object")
        check_limit(body.get("max_output_tokens"), model, "max_output_tokens")
        effort = effort_of(body, config.get("effort"), "reasoning.effort")
        if ENCRYPTED in (body.get("include") or ()) and model is not UNKNOWN_MODEL and not model.thinks:
            raise SimRefusal(400, "Encrypted content is not supported with this model.", param="include")
        shown = config.get("summary") in SUMMARIES
        return ReturnedItems(body, items_of(body)).plan(effort=effort, shown=shown)

    def count(self, body: dict[str, Json]) -> bytes:
        """Spell how many tokens go in with a request to `/v1/responses/input_tokens`."""
        for name in sorted(body.keys() - COUNTED):
            raise SimRefusal(400, f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
        return _encode({"object": "response.input_tokens", "input_tokens": sent_tokens(self.read(body))})

    def whole(self, said: SimAnswer) -> bytes:
        """Spell a response; of one in the background, that it waits."""
        waits = said.ask.body.get("background") is True and not said.batch
        return _encode(_response(said, QUEUED) if waits else finished(said))

    def events(self, said: SimAnswer) -> list[bytes]:
        """Spell a response as events."""
        events = [event | {"sequence_number": number} for number, event in enumerate(_events(said))]
        return [b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), _encode(event)) for event in events]

    def error(self, refused: SimRefusal, request_id: str) -> bytes:
        """Spell an error in the envelope of this provider."""
        return OpenAI().error(refused, request_id)


def items_of(body: Mapping[str, Json]) -> list[dict[str, Json]]:
    """Return what goes in as items, or refuse it."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if given is None:
        raise missing("input")
    if not isinstance(given, list) or not given or not all(isinstance(item, dict) for item in given):
        raise invalid("input", "expected a text, or at least one item")
    return given


def _limit(body: Mapping[str, Json]) -> int:
    limit = body.get("max_output_tokens")
    if limit is None:
        return openai_model(model_of(body)).max_output
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < MIN_OUTPUT:
        raise SimRefusal(
            400,
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {MIN_OUTPUT}, but got "
            f"{limit} instead.",
            code="integer_below_min_value",
            param="max_output_tokens",
        )
    return limit


def _instructions(body: Mapping[str, Json]) -> str:
    given = body.get("instructions")
    if not isinstance(given, str | None):
        raise invalid("instructions", "expected a string")
    return given or ""


def _media(items: Sequence[Block], model: str) -> int:
    contents = [item["content"] for item in items if isinstance(item.get("content"), list)]
    return sum(openai_tokens(parts, openai_model(model)) for parts in contents)


def _messages(items: Sequence[dict[str, Json]]) -> Iterator[Message]:
    """Yield the messages that items stand for: what a model said and called in one turn is one message."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    for place, item in enumerate(items):
        where, kind, role = f"input[{place}]", item.get("type", "message"), item.get("role")
        if kind == CALL:
            calls.append(_call(item, where))
        elif kind == "message" and role == "assistant":
            texts.append(_text(item, where))
        elif kind != REASONING:
            if texts or calls:
                yield Message(role=Role.ASSISTANT, text="".join(texts), tool_calls=tuple(calls))
                texts, calls = [], []
            yield _message(item, str(kind), where)
    if texts or calls:
        yield Message(role=Role.ASSISTANT, text="".join(texts), tool_calls=tuple(calls))


def _message(item: dict[str, Json], kind: str, where: str) -> Message:
    if kind == OUTPUT:
        if not isinstance(item.get("call_id"), str):
            raise missing(f"{where}.call_id")
        output = item.get("output")
        text = output if isinstance(output, str) else _text({"content": output}, where)
        return Message(role=Role.TOOL, text=text, tool_call_id=str(item["call_id"]))
    if kind != "message" or item.get("role") not in ROLES or item["role"] == "tool":
        raise invalid(where, "expected a message, a function call or its output, or reasoning")
    return Message(role=ROLES[str(item["role"])], text=_text(item, where))


def _text(item: Mapping[str, Json], where: str) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise invalid(f"{where}.content", "expected a text or a list of parts")
    texts = [part.get("text", part.get("refusal")) for part in content if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _call(item: Block, where: str) -> ToolCall:
    try:
        return ToolCall(id=str(item["call_id"]), name=item["name"], arguments=typed.decode(item["arguments"]))
    except (KeyError, TypeError, typed.DecodeError):
        raise invalid(where, "expected a call_id, a name and arguments in JSON") from None


def finished(said: SimAnswer) -> dict[str, Json]:
    """Return a response that has ended."""
    reason = _reason(said)
    ended: dict[str, Json] = {"output": _output(said), "usage": _usage(said)}
    if reason is None:
        return _response(said, "completed") | ended | {"completed_at": CREATED}
    return _response(said, "incomplete") | ended | {"incomplete_details": {"reason": reason}}


def unfinished(said: SimAnswer, status: str) -> dict[str, Json]:
    """Return a response in the background that has not ended, or never will."""
    return _response(said, status)


def response_id(said: SimAnswer) -> str:
    """Return the id of a response."""
    return f"resp_sim_{said.number:08d}"


def _response(said: SimAnswer, status: str) -> dict[str, Json]:
    body = said.ask.body
    config = body.get("reasoning")
    reasoning = {"effort": None, "summary": None} | (config if isinstance(config, dict) else {})
    return {
        "id": response_id(said),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": said.ask.model,
        "output": [],
        "previous_response_id": None,
        "reasoning": reasoning,
        "store": body.get("store") is not False,
        "usage": None,
        **{name: usual if body.get(name) is None else body[name] for name, usual in REPEATED.items()},
        **({"service_tier": said.tier} if said.ask.names_tier else {}),
    }


def _reason(said: SimAnswer) -> str | None:
    """Return why an answer is incomplete; a refusal in words is complete."""
    return None if said.line.stop is Stop.REFUSED and said.line.text else INCOMPLETE.get(said.line.stop)


def _output(said: SimAnswer) -> list[Json]:
    items: list[Json] = [] if said.thought is None else [_reasoning(said.thought)]
    status = "completed" if _reason(said) is None else "incomplete"
    if said.line.text:
        items.append(_spoken(said, status, [_part(said, said.line.text)]))
    items += [
        {
            "type": CALL,
            "id": f"fc_{said.digest[:20]}_{index}",
            "call_id": call.id or f"call_{said.digest[:20]}_{index}",
            "name": call.name,
            "arguments": _encode(dict(call.arguments)).decode(),
            "status": "completed",
        }
        for index, call in enumerate(said.line.tool_calls)
    ]
    return items


def _reasoning(thought: Thought) -> Json:
    summary: list[Json] = [{"type": "summary_text", "text": thought.text}] if thought.text else []
    return {"id": item_id(thought.seal), "type": REASONING, "summary": summary, "encrypted_content": thought.seal}


def _spoken(said: SimAnswer, status: str, content: list[Json]) -> Json:
    name = {"type": "message", "id": f"msg_{said.digest[:20]}", "role": "assistant"}
    return {**name, "status": status, "content": content}


def _part(said: SimAnswer, text: str) -> Json:
    if said.line.stop is Stop.REFUSED:
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(said: SimAnswer) -> Json:
    usage = said.usage
    return {
        "input_tokens": usage.all_input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": reasoning_tokens(said)},
        "total_tokens": usage.all_input + usage.output,
    }


def _events(said: SimAnswer) -> Iterator[dict[str, Json]]:
    yield {"type": "response.created", "response": _response(said, "in_progress")}
    yield {"type": "response.in_progress", "response": _response(said, "in_progress")}
    for index, item in enumerate(_output(said)):
        place: dict[str, Json] = {"output_index": index}
        begun, steps = _growing(said, item)
        yield {"type": "response.output_item.added", "item": begun, **place}
        for step in steps:
            yield {"item_id": item["id"], **place, **step}  # type: ignore[call-overload, index]
        yield {"type": "response.output_item.done", "item": item, **place}
    ended = finished(said)
    yield {"type": f"response.{ended['status']}", "response": ended}


def _growing(said: SimAnswer, item: Any) -> tuple[Json, Iterator[dict[str, Json]]]:
    """Return an item as it begins, and the events in which it grows."""
    if item["type"] == REASONING:
        return item | {"summary": [], "encrypted_content": ""}, _summary_events(item)
    if item["type"] == CALL:
        return item | {"arguments": "", "status": "in_progress"}, _call_events(item)
    return item | {"content": [], "status": "in_progress"}, _text_events(said, item["content"][0])


def _summary_events(item: Block) -> Iterator[dict[str, Json]]:
    for index, part in enumerate(item["summary"]):
        place: dict[str, Json] = {"summary_index": index}
        kind = "response.reasoning_summary"
        yield {"type": f"{kind}_part.added", "part": part | {"text": ""}, **place}
        for piece in pieces(part["text"]):
            yield {"type": f"{kind}_text.delta", "delta": piece, **place}
        yield {"type": f"{kind}_text.done", "text": part["text"], **place}
        yield {"type": f"{kind}_part.done", "part": part, **place}


def _call_events(item: Block) -> Iterator[dict[str, Json]]:
    kind = "response.function_call_arguments"
    for piece in pieces(item["arguments"]):
        yield {"type": f"{kind}.delta", "delta": piece}
    yield {"type": f"{kind}.done", "arguments": item["arguments"], "name": item["name"]}


def _text_events(said: SimAnswer, part: Block) -> Iterator[dict[str, Json]]:
    field = "refusal" if part["type"] == "refusal" else "text"
    kind = "response.refusal" if field == "refusal" else "response.output_text"
    place: dict[str, Json] = {"content_index": 0}
    logprobs: dict[str, Json] = {} if field == "refusal" else {"logprobs": []}
    yield {"type": "response.content_part.added", "part": {**part, field: ""}, **place}
    for piece in pieces(said.line.text):
        yield {"type": f"{kind}.delta", "delta": piece, **place, **logprobs}
    yield {"type": f"{kind}.done", field: part[field], **place, **logprobs}
    yield {"type": "response.content_part.done", "part": dict(part), **place}

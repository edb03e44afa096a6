"""The whole answer of what came as a stream, for a client that asks again without one. Pure."""

from collections.abc import Iterable
from typing import Any

from muster.agents.http.sse import EventParser
from muster.agents.payload import decoded, joined
from muster.agents.upstream.dialects import AnswerForm
from muster.text import typed

Step = Any  # one event, as a provider wrote it
Part = dict[str, Any]  # of the whole that is made


def assembled(body: bytes, form: AnswerForm) -> bytes | None:
    """Return the answer in one piece; None for a stream that does not make one."""
    steps = [step for event in EventParser().feed(body) if isinstance(step := _read(event.data), dict)]
    whole = {
        AnswerForm.MESSAGES: _message,
        AnswerForm.CHAT: _completion,
        AnswerForm.RESPONSES: _response,
    }.get(form)
    try:
        found = None if whole is None else whole(steps)
    except (TypeError, AttributeError, IndexError, KeyError):  # not what a stream of this form has in it
        return None
    return None if found is None else typed.encode(found)


def _read(data: bytes) -> Any:
    try:
        return decoded(data)
    except ValueError:  # "[DONE]"
        return None


def _response(steps: Iterable[Step]) -> Step:
    last: Any = None
    for step in steps:
        if isinstance(step.get("response"), dict):
            last = step
    ended = last is not None and last.get("type") in ("response.completed", "response.incomplete", "response.failed")
    return last["response"] if ended else None


def _message(steps: Iterable[Step]) -> Step:
    message: Part | None = None
    blocks: dict[int, Part] = {}
    pieces: dict[int, list[str]] = {}  # of the input of a tool
    ended = False
    for step in steps:
        kind, index, delta = step.get("type"), step.get("index"), step.get("delta")
        if kind == "message_start" and isinstance(step.get("message"), dict):
            message = dict(step["message"])
        elif kind == "content_block_start" and isinstance(index, int) and isinstance(step.get("content_block"), dict):
            blocks[index] = dict(step["content_block"])
        elif kind == "content_block_delta" and index in blocks and isinstance(delta, dict):
            _grow(blocks[index], pieces.setdefault(index, []), delta)
        elif kind == "message_delta" and message is not None and isinstance(delta, dict):
            message |= delta
            if isinstance(step.get("usage"), dict):
                message["usage"] = {**(message.get("usage") or {}), **step["usage"]}
        ended = ended or kind == "message_stop"
    if message is None or not ended:
        return None
    for index, written in pieces.items():
        if written:
            blocks[index]["input"] = _read(joined(written).encode()) or {}
    message["content"] = [block for _, block in sorted(blocks.items())]
    return message


_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def _grow(block: Part, pieces: list[str], delta: Step) -> None:
    kind = delta.get("type")
    if kind == "input_json_delta":
        pieces.append(str(delta.get("partial_json") or ""))
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
    elif kind in _TEXTS:
        name = _TEXTS[kind]
        block[name] = f"{block.get(name) or ''}{delta.get(name) or ''}"


def _completion(steps: Iterable[Step]) -> Step:
    whole: Part = {}
    choices: dict[int, Part] = {}
    for step in steps:
        told = {name: value for name, value in step.items() if name not in ("choices", "object") and value is not None}
        whole |= told
        for part in step.get("choices") or ():
            _add(choices.setdefault(part.get("index") or 0, {}), part)
    if not choices or not all(choice.get("finish_reason") for choice in choices.values()):
        return None
    whole["object"] = "chat.completion"
    whole["choices"] = [{"index": index, **choice} for index, choice in sorted(choices.items())]
    return whole


def _add(choice: Part, part: Step) -> None:
    message = choice.setdefault("message", {"role": "assistant", "content": None, "refusal": None})
    choice["finish_reason"] = part.get("finish_reason") or choice.get("finish_reason")
    choice.setdefault("logprobs", part.get("logprobs"))
    for name, value in (part.get("delta") or {}).items():
        if name == "tool_calls":
            _add_calls(message.setdefault("tool_calls", []), value or ())
        elif isinstance(value, str) and name != "role":
            message[name] = f"{message.get(name) or ''}{value}"
        elif value is not None:
            message[name] = value


def _add_calls(calls: list[Part], parts: Iterable[Step]) -> None:
    for part in parts:
        index = part.get("index")
        while isinstance(index, int) and len(calls) <= index:
            calls.append({"type": "function", "function": {"name": "", "arguments": ""}})
        call = calls[index if isinstance(index, int) else -1]
        call["id"] = call.get("id") or part.get("id")
        for name, value in (part.get("function") or {}).items():
            call["function"][name] = f"{call['function'].get(name) or ''}{value or ''}"

"""What a request asks, without how: the same question is known again when a client repeats it in another form. Pure."""

import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from muster.agents.payload import decoded
from muster.domain.canonical import JsonObject, canonical

# How an answer is wanted, or who asks: a client that repeats a request may say these otherwise.
_HOW = frozenset(
    (
        *("stream", "stream_options", "max_tokens", "max_completion_tokens", "max_output_tokens"),
        *("metadata", "user", "safety_identifier", "prompt_cache_key", "service_tier", "context_management"),
    )
)
MAX_SHOWN = 3  # places at which two questions differ
MAX_VALUE = 80  # characters of what stands there
_BILLING = "x-anthropic-billing-header:"  # a block before the system prompt of Claude Code, which changes


def prompt_digest(body: bytes) -> str:
    """Return what names the question of a body."""
    return hashlib.sha256(canonical(_asked(body))).hexdigest()


def differences(before: bytes, now: bytes) -> tuple[str, ...]:
    """Return where the questions of two bodies differ, and how, the first places of them."""
    return tuple(islice(_differing(_asked(before), _asked(now), "$"), MAX_SHOWN))


def _asked(body: bytes) -> JsonObject:
    fields = decoded(body)
    asked: JsonObject = {name: _plain(value) for name, value in fields.items() if name not in _HOW}
    system = asked.get("system")
    if isinstance(system, list):
        asked["system"] = [block for block in system if not _is_billing(block)]
    return asked


def _differing(before: Any, now: Any, place: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in dict.fromkeys((*before, *now)):
            yield from _differing(before.get(name), now.get(name), f"{place}.{name}")
    elif isinstance(before, list) and isinstance(now, list):
        for index in range(max(len(before), len(now))):
            then, there = (one[index] if index < len(one) else None for one in (before, now))
            yield from _differing(then, there, f"{place}[{index}]")
    elif before != now:
        yield f"{place} was {_short(before)}, is {_short(now)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"


def _plain(value: Any) -> Any:
    """Return a value without marks for the cache, a text that is content as the one block that it is."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if not isinstance(value, dict):
        return value
    found = {name: _plain(part) for name, part in value.items() if name != "cache_control"}
    if isinstance(found.get("content"), str):
        found["content"] = [{"type": "text", "text": found["content"]}]
    return found


def _is_billing(block: Any) -> bool:
    text = block.get("text") if isinstance(block, dict) else None
    return isinstance(text, str) and text.startswith(_BILLING)

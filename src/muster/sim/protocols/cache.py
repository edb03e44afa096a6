"""The provider's prompt cache: which prefixes are marked, and which were seen before.

Nothing expires and no prefix is too short, so that the same requests always cost the same.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from muster.domain.call import Usage
from muster.domain.canonical import Json, canonical
from muster.domain.script import count_tokens
from muster.sim.protocols.ask import Mark, SimRefusal, blocks_of, text_of
from muster.sim.protocols.media import anthropic_tokens
from muster.sim.protocols.models import anthropic_model

MAX_MARKS = 4

Block = dict[str, Any]


def marks_of(body: Block) -> tuple[Mark, ...]:
    """Find the marked prefixes of an Anthropic request, in order."""
    if not _can_be_marked(body):
        return ()
    blocks = list(_blocks(body))
    if isinstance(body.get("cache_control"), dict) and blocks:
        blocks[-1] = (blocks[-1][0], blocks[-1][1] | {"cache_control": body["cache_control"]})
    count = sum(block.get("cache_control") is not None for _, block in blocks)
    if count > MAX_MARKS:
        raise SimRefusal(400, f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {count}.")
    return tuple(_marks(str(body.get("model")), blocks)) if count else ()


class PrefixCache:
    """Remembers the prefixes that were paid for."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()

    def split(self, usage: Usage, marks: tuple[Mark, ...]) -> Usage:
        """Split tokens into those read from the cache, those written to it and the rest, and remember them."""
        read = min(usage.input, max((mark.tokens for mark in marks if mark.prefix in self.seen), default=0))
        done, short, hour = read, 0, 0
        for mark in marks:
            more = max(0, min(usage.input, mark.tokens) - done)
            done += more
            short, hour = (short, hour + more) if mark.hour else (short + more, hour)
        self.seen.update(mark.prefix for mark in marks)
        return replace(usage, input=usage.input - done, cache_read=read, cache_write=short, cache_write_1h=hour)

    def clear(self) -> None:
        """Forget everything."""
        self.seen.clear()


def _can_be_marked(body: Block) -> bool:
    # A text cannot carry a mark, and most requests are texts only.
    return (
        "cache_control" in body
        or "tools" in body
        or not isinstance(body.get("system"), str | None)
        or not all(isinstance(message["content"], str) for message in body["messages"])
    )


def _blocks(body: Block) -> Iterator[tuple[str, Block]]:
    for tool in body.get("tools") or ():
        yield "tool", tool
    for block in blocks_of(body.get("system") or "", "system"):
        yield "system", block
    for index, message in enumerate(body["messages"]):
        for block in blocks_of(message["content"], f"messages.{index}.content"):
            yield message["role"], block


def _marks(model: str, blocks: list[tuple[str, Block]]) -> Iterator[Mark]:
    prefix, tokens, played = hashlib.sha256(model.encode()), 0, anthropic_model(model)
    for role, block in blocks:
        bare = {name: value for name, value in block.items() if name != "cache_control"}
        prefix.update(canonical([role, bare]))
        # Tools cost nothing here, as in `usage_of`.
        tokens += 0 if role == "tool" else count_tokens(text_of(block, role)) + anthropic_tokens([block], played)
        if block.get("cache_control") is not None:
            yield Mark(prefix=prefix.digest(), tokens=tokens, hour=_lasts_an_hour(block["cache_control"]))


def _lasts_an_hour(control: Json) -> bool:
    if (
        not isinstance(control, dict)
        or control.get("type") != "ephemeral"
        or control.get("ttl", "5m") not in ("5m", "1h")
    ):
        raise SimRefusal(400, 'cache_control: Input should be {"type": "ephemeral"} with a ttl of "5m" or "1h"')
    return control.get("ttl") == "1h"

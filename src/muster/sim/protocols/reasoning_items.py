"""Blocks of reasoning that come back with a request to Responses: each must be whole, and where it was made.

An item that was changed, or that nothing follows, is an error. One of another model, or from elsewhere, is left out
without a word, and counted: the provider does not say that it binds reasoning to a conversation.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from muster.domain.canonical import Json, canonical
from muster.domain.script import count_tokens
from muster.sim.protocols.ask import SimRefusal, ThinkingPlan
from muster.sim.protocols.thinking import Seal, follows, is_of, is_whole, open_seal
from muster.sim.protocols.thinking_blocks import Block

ENCRYPTED = "reasoning.encrypted_content"
REASONING = "reasoning"


def item_id(seal: str) -> str:
    """Return the id of the item of reasoning with a seal."""
    return f"rs_{hashlib.sha256(seal.encode()).hexdigest()[:32]}"


class ReturnedItems:
    """Walks through the input of a request and looks at each item of reasoning in it."""

    def __init__(self, body: Block, items: Sequence[Block]) -> None:
        self._body, self._items = body, items
        self._prefix = hashlib.sha256()
        self._previous = b""
        self._broken = False  # an item stood elsewhere, so those after it do too
        self._returned = self._mismatched = self._kept = 0
        self._refusal: SimRefusal | None = None

    def plan(self, *, effort: str | None, shown: bool) -> ThinkingPlan:
        """Return the plan for the request with all that was found in it."""
        self._pass(list(self._body.get("tools") or ()), self._body.get("instructions") or "")
        for place, item in enumerate(self._items):
            if item.get("type") == REASONING:
                self._look(item, f"input[{place}]", self._items[place + 1 :])
            else:
                self._pass(_bare(item))
        return ThinkingPlan(
            effort=effort,
            shown=shown,
            prefix=self._prefix.digest(),
            previous=self._previous,
            kept=self._kept,
            returned=self._returned,
            missing=0 if effort is None else _missing(self._items),
            mismatched=self._mismatched,
            refusal=self._refusal,
        )

    def _pass(self, *values: Json) -> None:
        self._prefix.update(canonical(values))

    def _look(self, item: Block, where: str, rest: Sequence[Block]) -> None:
        sealed, text = item.get("encrypted_content"), summary_of(item)
        found = open_seal(sealed)
        if found is None or not is_whole(found, text) or item.get("id") != item_id(str(sealed)):
            self._refuse(
                f"The encrypted content of the item {where} could not be verified. Reason: Encrypted content could "
                "not be decrypted or parsed.",
                "invalid_encrypted_content",
            )
        elif next((one.get("type") for one in rest), "message") == "function_call_output" or not rest:
            self._refuse(
                f"Block '{item.get('id')}' of type 'reasoning' was provided without its required following item.",
                "invalid_value",
            )
        elif not is_of(found, self._body["model"]) or self._stands_elsewhere(found):
            self._mismatched += 1
            self._broken = self._broken or is_of(found, self._body["model"])
            return
        else:
            self._returned += 1
            self._kept += count_tokens(text) + count_tokens(str(sealed))
        self._previous = found.name if found else self._previous

    def _stands_elsewhere(self, found: Seal) -> bool:
        return self._broken or not follows(found, self._prefix.digest(), self._previous)

    def _refuse(self, message: str, code: str) -> None:
        self._mismatched += 1
        if self._refusal is None:
            self._refusal = SimRefusal(400, message, code=code, param="input")


def summary_of(item: Block) -> str:
    """Return the summary of an item of reasoning as one text."""
    return "".join(str(part.get("text")) for part in item.get("summary") or () if isinstance(part, dict))


def _missing(items: Sequence[Block]) -> int:
    """Count the answers of the turn that is going on which called functions and have no reasoning before that."""
    missing, calling, reasoned = 0, False, False
    for item in _turn(items):
        kind = item.get("type")
        if kind == "function_call_output":
            missing += calling and not reasoned
            calling = reasoned = False
        elif kind == REASONING:
            reasoned = True
        elif kind == "function_call":
            calling = True
    return missing


def _turn(items: Sequence[Block]) -> Iterator[Block]:
    """Yield what came after the last thing that a person said."""
    asked = [place for place, item in enumerate(items) if item.get("role") == "user"]
    yield from items[asked[-1] + 1 if asked else 0 :]


def _bare(item: Block) -> dict[str, Json]:
    """Return an item as it binds reasoning: without its id and status, and with content as parts."""
    bare = {name: value for name, value in item.items() if name not in ("id", "status", "type")}
    content = bare.get("content")
    if isinstance(content, str):
        bare["content"] = [{"text": content}]
    elif isinstance(content, list):
        bare["content"] = [_part(part) for part in content]
    return bare


def _part(part: Any) -> Json:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return {"text": part["text"]}
    return part  # type: ignore[no-any-return]

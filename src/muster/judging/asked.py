"""Whether a recorded request is the one that is asked here, as far as it does not come from the section of an agent.

The fence around quoted material is a digest of it: where secrets were taken out of that, the recorded fence is another.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.domain.call import Reply, Request, request_json
from muster.domain.canonical import Json, JsonObject, plain_json
from muster.text.secrets.redaction import MARK

# What the section of an agent says where nobody else does; a limit of tokens it may lower too.
_OF_SECTION = frozenset({"system", "temperature", "seed", "max_tokens"})
_LIMIT = "max_tokens"
_FENCE = re.compile(r"fence token of [a-z ]+ is ([0-9a-f]{32})")
_SHARED = "shared"  # a number of characters, which is another where a secret was taken out of them
_REPAIR = "repair"  # in the context of a request for a repair: what is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One call as somebody recorded it."""

    agent: str
    request: Json
    reply: Reply | None
    error: Mapping[str, Json] | None = None


def request_flaw(asked: Request, recorded: Json, *, repairs: bool = False) -> str:
    """Return the first part of a recorded request that is another than what is asked; empty when it is the same.

    Of a request that `repairs` an answer the words that say what is wrong are left out: they are no part of a version.
    """
    if not isinstance(recorded, Mapping):
        return "request"
    wanted = _without_blocks(plain_json(request_json(asked), "the request"))
    found = _without_blocks(dict(recorded))
    if MARK in json.dumps(recorded):
        found = _refenced(recorded, wanted)
        wanted, found = _without(wanted, _SHARED), _without(found, _SHARED)
    if repairs:
        wanted, found = _without_complaint(wanted), _without_complaint(found)
    return next((name for name in sorted({*wanted, *found}) if _differs(name, wanted, found)), "")


def text_flaw(asked: str, recorded: str) -> str:
    """Return "text" when a recorded text is another than what is asked; empty when it is the same."""
    found = _with_fence(recorded, asked) if MARK in recorded else recorded
    return "" if found == asked else "text"


def _without_blocks(request: Mapping[str, Json]) -> dict[str, Json]:
    """Leave out what stands for the blocks of earlier answers, which records of replies do not have."""
    messages = request.get("messages")
    if not isinstance(messages, list):
        return dict(request)
    said = [{**one, "content": None} if isinstance(one, Mapping) and "content" in one else one for one in messages]
    kept = [{name: part for name, part in one.items() if part is not None} if "content" in one else one for one in said]
    return {**request, "messages": kept}


def _differs(name: str, wanted: Mapping[str, Json], found: Mapping[str, Json]) -> bool:
    left, right = wanted.get(name), found.get(name)
    if name in _OF_SECTION and left is None:
        return False
    if name == _LIMIT:
        return not isinstance(left, int) or not isinstance(right, int) or right > left
    return bool(left != right)


def _without(values: Mapping[str, Json], name: str) -> JsonObject:
    return {one: value for one, value in values.items() if one != name}


def _refenced(recorded: Mapping[str, Json], wanted: Mapping[str, Json]) -> JsonObject:
    """Return a recorded request with the fence that its material has without the secrets."""
    return dict(json.loads(_with_fence(json.dumps(recorded, sort_keys=True), json.dumps(wanted, sort_keys=True))))


def _with_fence(recorded: str, wanted: str) -> str:
    """Return a text with each of its fences as the one that is wanted in its place."""
    pairs = dict(zip(_FENCE.findall(recorded), _FENCE.findall(wanted), strict=False))
    return re.sub("|".join(pairs), lambda found: pairs[found[0]], recorded) if pairs else recorded


def _without_complaint(request: Mapping[str, Any]) -> JsonObject:
    """Return a request for a repair without what it says is wrong."""
    left, messages = dict(request), request.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[-1], Mapping):
        text = str(messages[-1].get("text"))
        before, _, _ = text.partition(":")
        left["messages"] = [*messages[:-1], {**messages[-1], "text": [before, text.rpartition("\n")[2]]}]
    if isinstance(request.get("context"), Mapping):
        left["context"] = _without(request["context"], _REPAIR)
    return left

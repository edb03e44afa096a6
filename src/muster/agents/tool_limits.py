"""How much is kept of the tools that an agent uses by itself: what they are given may be of any length. Pure."""

import json
from collections.abc import Mapping

from muster.domain.canonical import Json
from muster.shapes.json_limits import flaw_of

MOST_CALLS = 10_000  # of one call
MOST_RESULT = 2_000  # characters of what a tool gave
MOST_NAME = 200  # characters of a name or an id
MOST_SESSION = 1_000  # characters of the name of a session
MOST_TEXT = 2_000  # characters of a text in the arguments
MOST_ARGUMENTS = 32 * 1_024  # bytes of all arguments of one use, as JSON
TOO_MANY = f"used more than {MOST_CALLS:,} tools"

_CUT = "_cut"  # the one argument that stands for those that are too long
_MOST_VALUES = MOST_ARGUMENTS // 2  # each takes two characters at least, with the comma after it
_JSON = json.JSONEncoder(ensure_ascii=False)


def kept_arguments(arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Give the arguments of a use as they are kept: texts cut, and all of them when they are still too long."""
    if _holds_many(arguments) or flaw_of(arguments) is not None:
        return {_CUT: _beginning(arguments)}
    short: dict[str, Json] = _shortened(arguments)
    size = len(_JSON.encode(short).encode("utf-8", "surrogatepass"))
    return short if size <= MOST_ARGUMENTS else {_CUT: _beginning(short)}


def _holds_many(value: Json) -> bool:
    """Whether there are more values than have a place; found out without a look at all of them."""
    waiting, seen = [value], 0
    while waiting and seen <= _MOST_VALUES:
        item = waiting.pop()
        inside = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        seen += len(inside)
        if seen <= _MOST_VALUES:
            waiting.extend(inside)
    return seen > _MOST_VALUES


def _shortened(value: Json) -> Json:
    """Cut the texts of a value that is not nested too deep."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each) for each in value]
    return value


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def _beginning(value: Json) -> str:
    """Spell a value, only as far as it is kept."""
    spelled = ""
    try:
        for part in _JSON.iterencode(value):
            spelled += part
            if len(spelled) > MOST_TEXT:
                break
    except RecursionError:
        return "(nested too deep to be shown)"
    return _cut(spelled)

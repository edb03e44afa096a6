"""How much is kept of the tools that an agent uses by itself: what they are given may be of any length. Pure."""

import json
from collections.abc import Mapping

from muster.agents.json_limits import flaw_of
from muster.domain.canonical import Json

MOST_CALLS = 10_000  # of one call
MOST_RESULT = 2_000  # characters of what a tool gave
MOST_NAME = 200  # characters of a name or an id
MOST_SESSION = 1_000  # characters of the name of a session
MOST_TEXT = 2_000  # characters of a text in the arguments
MOST_ARGUMENTS = 32 * 1_024  # bytes of all arguments of one use, as JSON
TOO_MANY = f"used more than {MOST_CALLS:,} tools"

_CUT = "_cut"  # the one argument that stands for those that are too long


def kept_arguments(arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Give the arguments of a use as they are kept: texts cut, and all of them when they are still too long."""
    if flaw_of(arguments) is not None:
        return {_CUT: _cut(_spelled(arguments))}
    short: dict[str, Json] = _shortened(arguments)
    spelled = _spelled(short)
    if len(spelled.encode("utf-8", "surrogatepass")) > MOST_ARGUMENTS:
        return {_CUT: _cut(spelled)}
    return short


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


def _spelled(value: Json) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deep to be shown)"

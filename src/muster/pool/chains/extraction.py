"""Values out of the JSON of an output: dotted paths with indexes, and a JSON Schema for the whole."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput
from muster.text.json_documents import find_value
from muster.text.schemas.json_schema import fitting

WHOLE = "$"
MAX_PATH = 300

_STEP = re.compile(r"(?:^|\.)([^.\[\]\s][^.\[\]]*)|\[([0-9]{1,9})\]")
ValuePath = tuple[str | int, ...]


@lru_cache(maxsize=1024)
def parse_path(text: str) -> ValuePath:
    """Read a path such as `items[0].title`, or `$` for everything; raises BadArgument for any other text."""
    if text == WHOLE:
        return ()
    steps: list[str | int] = []
    end = 0
    while end < len(text) <= MAX_PATH:
        step = _STEP.match(text, end)
        if step is None or (step[1] is not None and end and text[end] != "."):
            break
        steps.append(step[1] if step[1] is not None else int(step[2]))
        end = step.end()
    if end < len(text) or not steps:
        raise BadArgument(f"{text[:60]!r} is not a path; write it like items[0].title, or $ for everything")
    return tuple(steps)


def value_at(value: Any, path: ValuePath) -> Any:
    """Return what is at a path; raises BadOutput with the place at which there is nothing."""
    for number, step in enumerate(path):
        if isinstance(step, int):
            found = isinstance(value, list) and step < len(value)
        else:
            found = isinstance(value, dict) and step in value
        if not found:
            raise BadOutput(f"there is nothing at {spelled_path(path[: number + 1])}, which is {_kind(value)}")
        value = value[step]
    return value


def spelled_path(path: ValuePath) -> str:
    """Return a path as it is written."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".") or WHOLE


def extracted(output: str, wanted: Mapping[str, str], schema: Mapping[str, Json] | None) -> dict[str, Json]:
    """Return the variables of an output; raises BadOutput when its JSON is missing, does not fit, or lacks a path."""
    if not wanted and schema is None:
        return {}
    found = find_value(output, schema or {})
    if schema is not None:
        found = fitting(found, schema)
    return {name: _variable(name, found, path) for name, path in wanted.items()}


def _variable(name: str, value: Json, path: str) -> Any:
    try:
        return value_at(value, parse_path(path))
    except BadOutput as error:
        raise BadOutput(f"extract {name} ({path}): {error.message}") from None


def _kind(value: Json) -> str:
    if isinstance(value, dict):
        return f"missing in an object with {', '.join(map(repr, list(value)[:10])) or 'no keys'}"
    if isinstance(value, list):
        return f"missing in a list of {len(value)}"
    return "inside of a value that is neither an object nor a list"

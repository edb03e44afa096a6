"""Where in an answer a check looks: the whole text, or places in the JSON that it holds."""

import json
from functools import lru_cache

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput
from muster.shapes.json_search import find_value
from muster.shapes.paths import JsonPath, compile_path

MOST_PLACES = 1_000


def places(answer: str, field: str | None) -> list[Json]:
    """Give what stands at a field of an answer; without a field the answer itself.

    Raises BadOutput when the answer is no JSON or has no such field, and BadArgument for too wide a path.
    """
    if field is None:
        return [answer]
    found = at(find_value(answer, _kind(field)), field)
    if not found:
        raise BadOutput(f"there is no {field} in the answer")
    if len(found) > MOST_PLACES:
        raise BadArgument(f"{field} finds {len(found)} places; name at most {MOST_PLACES}")
    return found


def at(value: Json, field: str) -> list[Json]:
    """Give what stands at a field of a JSON value: a JSONPath, a JSON pointer or a top-level key."""
    if _is_path(field):
        return path(field).all(value)
    if field == "" or field.startswith("/"):
        return _point(value, field)
    return [value[field]] if isinstance(value, dict) and field in value else []


@lru_cache(maxsize=1024)
def path(text: str) -> JsonPath:
    """Read a JSONPath once."""
    return compile_path(text, "json_path")


def text_of(value: Json) -> str:
    """Give what stands at a place as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_path(field: str) -> bool:
    return field == "$" or field.startswith(("$.", "$["))


def _point(value: Json, pointer: str) -> list[Json]:
    """Follow a JSON pointer (RFC 6901)."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _is_index(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return []
    return [value]


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 10 and (name == "0" or name[0] != "0")


def _kind(field: str) -> dict[str, Json]:
    """Tell an object from a list by the first step into it: prose around an answer may hold both."""
    if not _is_path(field):
        step = field.split("/")[1] if field.startswith("/") else field
        return {} if _is_index(step) or not field else {"type": "object"}
    if field.startswith(("$['", '$["')) or (field.startswith("$.") and not field.startswith(("$..", "$.*"))):
        return {"type": "object"}
    return {"type": "array"} if field[2:3].isdigit() else {}

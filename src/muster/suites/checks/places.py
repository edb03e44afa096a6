"""Places in an answer that is JSON: its document, and what stands at a JSONPath, a JSON pointer or a top-level key."""

from functools import lru_cache
from typing import Any

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput
from muster.suites.values.case import CheckKind
from muster.suites.values.rules import ScoringRules
from muster.text.json_documents import find_value, only_document, whole_document
from muster.text.json_in_prose import sole_document
from muster.text.json_paths import JsonPath, compile_path

MAX_PLACES = 1_000
_WHOLE = (CheckKind.IS_JSON, CheckKind.JSON_SCHEMA)  # of the whole answer; others find JSON in a fence or in prose too


def places(answer: str, field: str | None, rules: ScoringRules, kind: CheckKind) -> list[Json]:
    """Return what stands at a field of an answer; without a field the answer itself.

    Raises BadOutput when the answer is no JSON or has no such field, and BadArgument for too wide a path.
    """
    if field is None:
        return [answer]
    found = at(document(answer, _kind(field), rules, kind), field)
    if not found:
        raise BadOutput(f"{field} was not found in the answer")
    if len(found) > MAX_PLACES:
        raise BadArgument(f"{field} matches {len(found)} values; the maximum is {MAX_PLACES}")
    return found


def document(answer: str, wanted: dict[str, Json], rules: ScoringRules, kind: CheckKind) -> Any:
    """Return the JSON of an answer as a check of this kind reads it; raises BadOutput when there is none."""
    if not rules.strict_json:
        return find_value(answer, wanted)
    if kind in _WHOLE:
        return whole_document(answer, fenced=kind is not CheckKind.IS_JSON)
    if not rules.complete_json:
        return only_document(answer, wanted)
    return sole_document(answer, references=not rules.no_references)


def at(value: Json, field: str) -> list[Json]:
    """Return what stands at a field of a JSON value: a JSONPath, a JSON pointer or a top-level key."""
    if _is_path(field):
        return path(field).all(value)
    if field == "" or field.startswith("/"):
        return _point(value, field)
    return [value[field]] if isinstance(value, dict) and field in value else []


@lru_cache(maxsize=1024)
def path(text: str) -> JsonPath:
    """Read a JSONPath once."""
    return compile_path(text, "json_path")


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
    """Return "object" or "array" by the first step of the path: prose around an answer may contain both."""
    if not _is_path(field):
        step = field.split("/")[1] if field.startswith("/") else field
        return {} if _is_index(step) or not field else {"type": "object"}
    if field.startswith(("$['", '$["')) or (field.startswith("$.") and not field.startswith(("$..", "$.*"))):
        return {"type": "object"}
    return {"type": "array"} if field[2:3].isdigit() else {}


def kind_at(field: str, rules: ScoringRules) -> dict[str, Json]:
    """Return the kind of document that a path without a field is looked for in."""
    return _kind(field) if rules.strict_json else {}

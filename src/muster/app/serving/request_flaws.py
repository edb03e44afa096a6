"""What is wrong with the fields of a request, of a call of a tool or of a job: pydantic's errors, as data of our own.

Never what was sent, which may be a secret.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from muster.domain.flaw import FieldFlaw, FlawCode
from muster.text.words import nearest

MAX_TOLD = 5  # things that one sentence names
MAX_FLAWS = 100
MAX_NAME = 100  # characters of a name that nobody knows
_WORDS = {  # our own for each kind of error; what has none "is not valid"
    "json_invalid": "is not valid JSON",
    "extra_forbidden": "unknown field",
    "missing": "missing",
    **dict.fromkeys(("model_attributes_type", "model_type", "dict_type", "mapping_type"), "must be a JSON object"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    "string_type": "must be a string",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries, not {actual_length}",
    "too_long": "must have at most {max_length} entries",
    "string_pattern_mismatch": "must match {pattern}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "none_required": "must be null",
}
_OWN = frozenset({"place", "goes_with"})  # kinds of errors that checks of ours raise, with a sentence
_CODES = {"extra_forbidden": FlawCode.UNKNOWN, "missing": FlawCode.MISSING}
_BOUNDS = re.compile(r"(greater|less)_than.*|.*too_(short|long)|finite_number")
_FIELD = re.compile(r"[a-z_]\w*", re.ASCII)
_TYPES = frozenset({"str", "int", "float", "bool", "dict", "list"})  # which stand within places too


def request_flaws(errors: Iterable[Mapping[str, Any]], known: Collection[str] = ()) -> list[FieldFlaw]:
    """Return what is wrong with each field; `known` are the names that fields of the whole have."""
    return list(dict.fromkeys(_flaw(error, known) for error in errors))[:MAX_FLAWS]


def flaws_sentence(flaws: Sequence[FieldFlaw], place: str = "") -> str:
    """Return in words what is wrong, and how much more there is; `place` says where all the fields are."""
    told = []
    for flaw in flaws[:MAX_TOLD]:
        where = " ".join(filter(None, (place, flaw.path)))
        message = "; ".join(filter(None, (flaw.message, flaw.suggestion)))
        told.append(f"{where}: {message}" if where else message)
    left = len(flaws) - len(told)
    return "; ".join(told) + (f"; and {left} more" if left else "")


def _flaw(error: Mapping[str, Any], known: Collection[str]) -> FieldFlaw:
    place = error["loc"]
    unknown = error["type"] == "extra_forbidden"
    return FieldFlaw(
        path="" if error["type"] == "json_invalid" else _path(place),  # the offset of a flaw in JSON helps nobody
        message=_message(error),
        code=_code(error["type"]),
        suggestion=_nearest(str(place[0]), known) if unknown and len(place) == 1 else "",
    )


def _path(place: Sequence[str | int]) -> str:
    """Return a path like `goals[0].persona`, without the types that pydantic tries in turn."""
    first, rest = place[:1], place[1:]
    parts = [str(one)[:MAX_NAME] for one in first]
    for one in rest:
        if isinstance(one, int):
            parts.append(f"[{one}]")
        elif _FIELD.fullmatch(one) and one not in _TYPES:
            parts.append(f".{one[:MAX_NAME]}")
    return "".join(parts)


def _message(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if "wrong" in context:  # what a bound of our own says of it
        return str(context["wrong"])
    if kind == "value_error":
        return str(context["error"])
    if kind in _OWN:
        message = str(error["msg"])
        return message[:1].lower() + message[1:]
    if kind in ("string_too_short", "too_short") and context["min_length"] == 1:
        return "is empty"
    numbers = {name: _plain(value) for name, value in context.items()}
    return _WORDS[kind].format(**numbers) if kind in _WORDS else "is not valid"


def _plain(value: Any) -> Any:
    """Return a bound as people write it: 25, not 25.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _code(kind: str) -> FlawCode:
    return _CODES.get(kind) or (FlawCode.OUT_OF_BOUNDS if _BOUNDS.fullmatch(kind) else FlawCode.INVALID)


def _nearest(name: str, known: Collection[str]) -> str:
    near = nearest(name, known)
    return f"did you mean {near}?" if near else ""

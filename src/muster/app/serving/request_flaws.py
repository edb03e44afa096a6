"""What is wrong with the fields of a request, of a call of a tool or of a job: pydantic's errors, as data of our own.

Never what was sent, which may be a secret.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from muster.domain.flaw import FieldFlaw, FlawCode

MAX_TOLD = 5  # things that one sentence names
MAX_FLAWS = 100
MAX_NAME = 100  # characters of a name that nobody knows
_WORDS = {  # for pydantic's words about its own classes
    "json_invalid": "is not valid JSON",
    "extra_forbidden": "unknown field",
    "missing": "missing",
    "model_attributes_type": "must be a JSON object",
    "model_type": "must be a JSON object",
}
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
    if error["type"] in _WORDS:
        return _WORDS[error["type"]]
    message = str(error.get("msg", "is not valid")).removeprefix("Value error, ")
    if message.startswith("Input should "):
        return f"must {message.removeprefix('Input should ')}"
    return message[:1].lower() + message[1:]


def _code(kind: str) -> FlawCode:
    return _CODES.get(kind) or (FlawCode.OUT_OF_BOUNDS if _BOUNDS.fullmatch(kind) else FlawCode.INVALID)


def _nearest(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else ""

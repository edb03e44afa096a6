"""What is wrong with the fields of a request, of a call of a tool or of a job: pydantic's errors, as data of our own.

Never what was sent, which may be a secret.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from muster.app.parts.library import Library
from muster.app.serving.order_models import CONTRADICTION, OrderModel
from muster.domain.flaw import FieldFlaw, FlawCode, choice_flaw, missing_flaw, renamed_path, unknown_flaw

MAX_TOLD = 5  # things that one sentence names
MAX_FLAWS = 100
MAX_NAME = 100  # characters of a name that nobody knows
_WORDS = {  # those of `domain/order.py` for each kind of error; what has none "is not valid"
    "json_invalid": "is not valid JSON",
    **dict.fromkeys(("model_attributes_type", "model_type", "dict_type", "mapping_type"), "must be an object"),
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
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "none_required": "must be null",
}
_OWN = frozenset({"place", "goes_with"})  # kinds of errors that checks of ours raise, with a sentence
_BOUNDS = re.compile(r"(greater|less)_than.*|.*too_(short|long)|finite_number")
_FIELD = re.compile(r"[a-z_]\w*", re.ASCII)
_TYPES = frozenset({"str", "int", "float", "bool", "dict", "list"})  # which stand within places too
_MUST_BE = "must be "
_UNKNOWN = "extra_forbidden"  # the kind of an error about a field that there is not


def request_flaws(errors: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> list[FieldFlaw]:
    """Return what is wrong with each field; `names` are those of fields at the door, by their own."""
    errors = list(errors)
    known = _names_by_place(names) if any(error["type"] == _UNKNOWN for error in errors) else {}
    return _joined(dict.fromkeys(_flaw(error, known) for error in errors))[:MAX_FLAWS]


def order_flaws(
    library: Library, model: type[OrderModel], errors: Iterable[Mapping[str, Any]], given: Any
) -> list[FieldFlaw]:
    """Return what is wrong with an order that was sent: with its form, and with what it names."""
    flaws = request_flaws(errors, model.names())
    told = {flaw.path for flaw in flaws}
    return [*flaws, *(flaw for flaw in library.flaws(model.named_in(given)) if flaw.path not in told)][:MAX_FLAWS]


def _names_by_place(names: Mapping[str, str]) -> Mapping[str, list[str]]:
    """Return the names of fields at a door by where they stand: `goals.persona` stands in `goals`."""
    known: dict[str, list[str]] = {}
    for own, name in names.items():
        known.setdefault(renamed_path(own.rpartition(".")[0], names), []).append(name)
    return known


def _joined(flaws: Iterable[FieldFlaw]) -> list[FieldFlaw]:
    """Return the flaws with one for each value that is of none of the types which it may have."""
    found: dict[str, FieldFlaw] = {}
    for number, flaw in enumerate(flaws):
        is_type = flaw.code is FlawCode.INVALID and flaw.message.startswith(_MUST_BE)
        place = flaw.path if is_type else f"{flaw.path} {number}"
        before = found.get(place)
        message = f"{before.message} or {flaw.message.removeprefix(_MUST_BE)}" if before else flaw.message
        found[place] = replace(flaw, message=message)
    return [flaw for place, flaw in found.items() if place != flaw.path or not _is_told_within(flaw.path, found)]


def _is_told_within(path: str, found: Mapping[str, FieldFlaw]) -> bool:
    """Return whether a value is of one of its types and has another flaw."""
    return any(other.startswith((f"{path} ", f"{path}.", f"{path}[")) for other in found if path)


def flaws_sentence(flaws: Sequence[FieldFlaw], place: str = "") -> str:
    """Return in words what is wrong, and how much more there is; `place` says where all the fields are."""
    told = []
    for flaw in flaws[:MAX_TOLD]:
        where = " ".join(filter(None, (place, flaw.path)))
        message = "; ".join(filter(None, (flaw.message, flaw.suggestion)))
        told.append(f"{where}: {message}" if where else message)
    left = len(flaws) - len(told)
    return "; ".join(told) + (f"; and {left} more" if left else "")


def _flaw(error: Mapping[str, Any], known: Mapping[str, Sequence[str]]) -> FieldFlaw:
    kind, place = error["type"], error["loc"]
    path = "" if kind == "json_invalid" else _path(place)  # the offset of a flaw in JSON helps nobody
    if kind == "missing":
        return missing_flaw(path)
    if kind == CONTRADICTION:
        return FieldFlaw(path=error["ctx"]["field"], message=error["msg"], code=FlawCode.CONFLICT)
    if kind == _UNKNOWN:
        return unknown_flaw(path, known.get(re.sub(r"\[\d+\]", "", path.rpartition(".")[0]), ()))
    if kind in ("literal_error", "enum"):
        choices = re.findall(r"'([^']*)'", error["ctx"]["expected"])
        return replace(choice_flaw(path, choices, error.get("input")), given="")
    code = FlawCode.OUT_OF_BOUNDS if _BOUNDS.fullmatch(kind) else FlawCode.INVALID
    return FieldFlaw(path=path, message=_message(error), code=code)


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
    if kind == "string_pattern_mismatch":
        return f"must match {context['pattern'].removeprefix('^').removesuffix('$')}"
    numbers = {name: _plain(value) for name, value in context.items()}
    return _WORDS[kind].format(**numbers) if kind in _WORDS else "is not valid"


def _plain(value: Any) -> Any:
    """Return a bound as people write it: 25, not 25.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value

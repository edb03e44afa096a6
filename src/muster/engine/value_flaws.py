"""Everything that keeps a value from being of a type: of an object what is wrong with each of its fields."""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import (
    Any,
    NamedTuple,
    NotRequired,
    Protocol,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from muster.domain.canonical import Json
from muster.domain.errors import did_you_mean
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.text import typed

# How msgspec begins and ends its sentences: with what it expected, and with the place.
_EXPECTED = re.compile(r"Expected `(.+?)`(.*?)(, got .+)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.+)`")
_PLACE = re.compile(r" - at `(?:key` in `)?\$?(.*)`$", re.DOTALL)
_MODEL_CODES = {"missing": FlawCode.MISSING, "extra_forbidden": FlawCode.UNKNOWN}


class Reader(Protocol):
    """Reads a value as one of a type."""

    def __call__(self, stored: Json, kind: Any) -> object:
        """Return the value; raises TypeError or ValueError for one of another type."""


class _Field(NamedTuple):
    kind: Any
    required: bool


def flaws_of(kind: Any, stored: Json, read: Reader) -> Sequence[FieldFlaw]:
    """Return what keeps a stored value from being of a type; nothing when it is."""
    try:
        read(stored, kind)
    except (TypeError, ValueError) as error:
        return tuple(_parts(kind, stored, read, "")) or (_flaw(error, ""),)
    return ()


def _parts(kind: Any, stored: Json, read: Reader, path: str) -> Iterator[FieldFlaw]:
    fields, inner = fields_of(kind), _inner(kind)
    if fields is not None and isinstance(stored, Mapping):
        for name, field in fields.items():
            place = f"{path}.{name}".removeprefix(".")
            if name in stored:
                yield from _parts(field.kind, stored[name], read, place)
            elif field.required:
                yield FieldFlaw(path=place, message="is missing", code=FlawCode.MISSING)
    elif inner is not None and isinstance(stored, list):
        for number, item in enumerate(stored):
            yield from _parts(inner, item, read, f"{path}[{number}]")
    elif inner is not None and isinstance(stored, Mapping):
        for name, item in stored.items():
            yield from _parts(inner, item, read, f"{path}.{name}".removeprefix("."))
    else:
        yield from _of_one(kind, stored, read, path)


def unknown_fields(kind: Any, stored: Json, path: str = "") -> Iterator[FieldFlaw]:
    """Yield the fields of a stored dataclass or TypedDict that its type does not have; a model decides for itself."""
    kinds = [one for one in get_args(kind) if one is not type(None)] if get_origin(kind) in (Union, UnionType) else []
    kind = kinds[0] if len(kinds) == 1 else kind
    is_struct = isinstance(kind, type) and issubclass(kind, typed.Struct)  # it says itself what it forbids
    fields, inner = None if is_struct else fields_of(kind), _inner(kind)
    if fields is not None and isinstance(stored, Mapping):
        for name in stored:
            place = f"{path}.{name}".removeprefix(".")
            if name in fields:
                yield from unknown_fields(fields[name].kind, stored[name], place)
            else:
                near = did_you_mean(get_close_matches(name, fields, n=1))
                suggestion = near[0] if near else f"known: {', '.join(fields)}"
                yield FieldFlaw(path=place, message="is unknown", code=FlawCode.UNKNOWN, suggestion=suggestion)
    elif inner is not None and isinstance(stored, list):
        for number, item in enumerate(stored):
            yield from unknown_fields(inner, item, f"{path}[{number}]")
    elif inner is not None and isinstance(stored, Mapping):
        for name, item in stored.items():
            yield from unknown_fields(inner, item, f"{path}.{name}".removeprefix("."))


def _of_one(kind: Any, stored: Json, read: Reader, path: str) -> Iterator[FieldFlaw]:
    try:
        read(stored, kind)
    except (TypeError, ValueError) as error:
        details = getattr(error, "errors", getattr(error.__cause__, "errors", None))  # of Pydantic
        if details is None:
            yield _flaw(error, path)
            return
        for detail in details():
            message = "is missing" if detail["type"] == "missing" else f"is not valid: {detail['msg']}"
            code = _MODEL_CODES.get(detail["type"], FlawCode.INVALID)
            yield FieldFlaw(path=path + _place(detail["loc"], path), message=message, code=code)


def _place(steps: Sequence[int | str], path: str) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text if path else text.removeprefix(".")


def _flaw(error: Exception, path: str) -> FieldFlaw:
    text = str(error)
    place = _PLACE.search(text)
    text = _PLACE.sub("", text)
    where = (path + (place[1] if place else "")).removeprefix(".")
    if unknown := _UNKNOWN.fullmatch(text):
        return FieldFlaw(path=f"{where}.{unknown[1]}".removeprefix("."), message="is unknown", code=FlawCode.UNKNOWN)
    expected = _EXPECTED.fullmatch(text)
    message = f"is not valid: {text}"
    if expected:
        message = f"must be {expected[1]}{expected[2]}{(expected[3] or '').replace(', got ', ', not ', 1)}"
    return FieldFlaw(path=where, message=message.replace("`", ""))


def is_validated(kind: Any) -> bool:
    """Return whether a type is a dataclass of Pydantic, which decides itself what it takes."""
    return dataclasses.is_dataclass(kind) and "__pydantic_validator__" in vars(kind)


def fields_of(kind: Any) -> Mapping[str, _Field] | None:
    """Return the fields of a type by their names in JSON; None for a type that has none."""
    if not isinstance(kind, type) or is_validated(kind):
        return None
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        required = vars(kind)["__required_keys__"]
        return {name: _Field(_bare(hint), name in required) for name, hint in hints.items()}
    if issubclass(kind, typed.Struct):
        return {one.encode_name: _Field(one.type, one.required) for one in typed.struct_fields(kind)}
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {one.name: _Field(hints[one.name], _is_required(one)) for one in dataclasses.fields(kind)}
    return None


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) in (Required, NotRequired) else hint


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _inner(kind: Any) -> Any:
    """Return the type of the items of a list, or of the values of a mapping; None for all other types."""
    origin, parts = get_origin(kind), get_args(kind)
    if not isinstance(origin, type) or not parts:
        return None
    if issubclass(origin, tuple):
        return parts[0] if parts[1:] == (...,) else None
    return parts[-1] if issubclass(origin, Sequence | Mapping) else None

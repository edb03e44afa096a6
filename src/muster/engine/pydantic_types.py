"""Types that only Pydantic reads: unions of several objects, dataclasses that it validates, and what has them in it."""

import dataclasses
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from muster.engine.value_flaws import fields_of, is_validated
from muster.text import typed

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MAX_TYPES = 1000  # of which it is remembered: a program may make types as it goes


@lru_cache(MAX_TYPES)
def adapter_of(kind: Any) -> "TypeAdapter[Any] | None":
    """Return what reads and writes values of a type with Pydantic; None for one that does not need it.

    Raises TypeError for a union that nothing can tell apart.
    """
    unreadable = _unreadable(kind)
    parts = set(_parts(kind, set()))
    if not (any(map(is_validated, parts)) or (unreadable and any(map(_is_union, parts)))):
        return None
    import pydantic  # which takes a while

    try:
        return pydantic.TypeAdapter(kind)
    except pydantic.PydanticUserError as error:
        why = unreadable or str(error).partition("\n")[0]
        raise TypeError(f"{why}; make all types of it dataclasses or Pydantic models") from error


def altered(value: object, again: object) -> Iterator[tuple[type, type]]:
    """Yield the types of each part of a value before and after, where it was read again as another one."""
    if isinstance(value, Mapping):
        pairs = [(value[key], again[key]) for key in value if key in again] if isinstance(again, Mapping) else []
    elif isinstance(value, list | tuple):
        pairs = [*zip(value, again, strict=False)] if isinstance(again, list | tuple) else []
    elif isinstance(value, (int, float, type(again))):
        own, others = _attributes(value), _attributes(again)
        pairs = [(own[name], others[name]) for name in own.keys() & others.keys()]
    else:
        yield type(value), type(again)
        return
    for one, other in pairs:
        yield from altered(one, other)


def _attributes(value: object) -> Mapping[str, object]:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return getattr(value, "__dict__", {})


def _unreadable(kind: Any) -> str:
    """Return why msgspec does not read a type; nothing when it does."""
    try:
        typed.prepare(kind)
    except TypeError as error:
        return str(error)
    return ""


def _parts(kind: Any, seen: set[Any]) -> Iterator[Any]:
    """Yield a type and all types in it; those in a Pydantic model are its own affair."""
    if kind in seen:
        return
    seen.add(kind)
    yield kind
    fields = fields_of(kind) or {}
    for part in (*get_args(kind), *(field.kind for field in fields.values())):
        yield from _parts(part, seen)


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)

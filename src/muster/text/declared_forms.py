"""Forms of files made from declared fields: names, bounds, defaults and descriptions are those of the declaration."""

from collections.abc import Iterable
from dataclasses import MISSING
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, create_model
from pydantic_core import PydanticCustomError

from muster.domain.order import DeclaredField, ValueBounds, element_of, is_many, order_fields
from muster.text import forms as v
from muster.text.forms import Form

F = TypeVar("F", bound=Form)
_NUMBERS: dict[Any, Any] = {int: v.Whole, float: v.Number, bool: v.Truth}


def declared_form(kind: Any, base: type[F], *, name: str, without: Iterable[str] = ()) -> type[F]:
    """Return the form of a part of a file whose keys are the fields of a class; `base` may have more of them."""
    left_out = set(without)
    fields: dict[str, Any] = {one.name: _key(one) for one in order_fields(kind) if one.name not in left_out}
    made: type[F] = create_model(name, __base__=base, __doc__=kind.__doc__, **fields)
    return made


def _key(one: DeclaredField) -> tuple[Any, Any]:
    read = _read(one.kind, one.declared)
    if one.default is MISSING:
        return read, Field(description=one.declared.help)
    return read | None, Field(None, description=one.declared.help)


def _read(kind: Any, bounds: ValueBounds) -> Any:
    """Return the type of a value as a file spells it."""
    inner, own = element_of(kind)
    element = bounded(_value(inner, own or bounds), own)
    return bounded(list[element] if is_many(kind) else element, bounds)  # type: ignore[valid-type]


def _value(kind: Any, bounds: ValueBounds) -> Any:
    if kind is str:
        return v.String if bounds.min_length else v.Text
    return kind if isinstance(kind, type) and issubclass(kind, StrEnum) else _NUMBERS[kind]


def bounded(kind: Any, bounds: ValueBounds | None) -> Any:
    """Return a type of pydantic with declared bounds."""
    if bounds is None:
        return kind
    given: dict[str, Any] = {
        "ge": bounds.min,
        "le": bounds.max,
        "gt": bounds.above,
        "min_length": bounds.min_length,
        "max_length": bounds.max_length,
        "pattern": f"^{bounds.pattern}$" if bounds.pattern else None,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    kind = Annotated[kind, Field(**chosen)] if chosen else kind
    has_own = bounds.max_json is not None or bounds.min_length
    return Annotated[kind, AfterValidator(partial(_require_fitting, bounds))] if has_own else kind


def _require_fitting(bounds: ValueBounds, value: Any) -> Any:
    """Raise for what types of pydantic do not know: an object that is long as JSON, a text of nothing but blanks."""
    if wrong := bounds.flaw(value):
        kind = "too_short" if bounds.max_json is None else "too_long"
        raise PydanticCustomError(kind, "It {wrong}", {"wrong": wrong.message, "min_length": 1})
    return value

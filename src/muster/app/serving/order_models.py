"""Models of pydantic for orders that strangers send, made from the declaration of the order: strict, in its names.

A field that an order may leave out may be null, which is the same, as is an empty text where the default is one. No
field of a form that only people at this machine may use is part of any model.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, is_dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType, UnionType
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from muster.domain.canonical import JsonObject
from muster.domain.doors import Door
from muster.domain.order import (
    DeclaredField,
    FieldForm,
    ValueBounds,
    given_fields,
    is_many,
    order_fields,
    without_none,
)
from muster.text.declared_forms import bounded

CONTRADICTION = "contradiction"  # the kind of an error about a field that says otherwise than another one
T = TypeVar("T")


class StrictModel(BaseModel):
    """A model in which nothing may be misspelled."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class OrderModel(StrictModel):
    """What was sent, by the names of an order."""

    order_kind: ClassVar[Any]

    @model_validator(mode="after")
    def _says_things_once(self) -> Self:
        """Refuse different values under several names of one field."""
        for target, names in _other_names(self.order_kind).items():
            values = {name: value for name in (target, *names) if (value := getattr(self, name, None)) is not None}
            first = next(iter(values), "")
            other = next((name for name, value in values.items() if value != values[first]), None)
            if other is not None:
                said = {"field": self.names()[other], "other": self.names()[first]}
                raise PydanticCustomError(CONTRADICTION, "must be the same as {other}", said)
        return self

    @classmethod
    def names(cls) -> Mapping[str, str]:
        """Return the names of the fields at the door, by their own; `goals.persona` is a field within another one."""
        return _names_of(cls)

    @classmethod
    def named_in(cls, given: Any) -> Iterator[tuple[FieldForm, str, str]]:
        """Yield what is named in what was sent, whatever else is wrong with that: the form, the path and the name."""
        yield from _named_in(cls.order_kind, given, cls.names(), "", "")

    def order(self) -> Any:
        """Return the order; what a door has besides its fields is about the call, and no part of it."""
        known = {one.name for one in order_fields(self.order_kind)}
        given = {name: _inner(value) for name, value in self if name in known}
        return self.order_kind(**given_fields(self.order_kind, given))


@dataclass(frozen=True, slots=True)
class OrderBody(Generic[T]):
    """An order that came over HTTP, and what was asked for, spelled in one way: equal requests have equal values."""

    order: T
    asked_for: JsonObject
    names: Mapping[str, str]  # of fields at the door
    chosen_id: str | None = None  # of the run; None: the server chooses
    asked_before: JsonObject | None = None  # as older programs understood it

    def asked(self) -> JsonObject:
        """Return what is asked for; what is left out, null or as usual does not count."""
        return self.asked_for

    def earlier(self) -> Sequence[JsonObject]:
        """Return what older programs understood, whose digests are stored."""
        return () if self.asked_before is None else (self.asked_before,)


@cache
def order_model(
    kind: Any, door: Door, *, name: str, camel: bool = False, base: type[StrictModel] = OrderModel
) -> type[Any]:
    """Return the model of an order at a door; `camel` writes the names of fields as battles have had them."""
    fields: dict[str, Any] = {
        one.name: (_field_type(one, door, camel), _info(one, door, camel)) for one in order_fields(kind) if one.at(door)
    }
    made = create_model(name, __base__=base, __doc__=kind.__doc__, **fields)
    if issubclass(made, OrderModel):
        made.order_kind = kind
    return made


def _field_type(one: DeclaredField, door: Door, camel: bool) -> Any:
    is_optional = not one.required(door)
    kind = _wire(one.kind, one.declared, door, camel, optional=is_optional)
    may_be_empty = is_optional and one.default == "" and one.declared.min_length
    return Annotated[kind, BeforeValidator(_left_out)] if may_be_empty else kind


def _left_out(given: Any) -> Any:
    """Return null for an empty text: it is what the field is anyway."""
    return None if given == "" else given


def _info(one: DeclaredField, door: Door, camel: bool) -> Any:
    words = _tool_words(one) if door is Door.TOOL else one.declared.help
    alias = None if door is Door.TOOL else one.declared.alias or (to_camel(one.name) if camel else None)
    default = one.usual
    if isinstance(default, StrEnum):
        default = str(default)
    elif isinstance(default, tuple):
        default = list(default)
    given: dict[str, Any] = {"description": words}
    if door is Door.REQUEST:
        given["json_schema_extra"] = _form_notes(one)
    if alias is not None:
        given["alias"] = alias
    return Field(**given) if one.required(door) else Field(default, **given)


def _tool_words(one: DeclaredField) -> str:
    """Return what a model is told of a field, with a default that its schema does not say."""
    is_hidden = one.usual is None and one.default and one.default is not MISSING
    return f"{one.declared.tool} Default: {one.declared.shown}." if is_hidden else one.declared.tool


def _form_notes(one: DeclaredField) -> dict[str, Any]:
    """Return what a form needs of a field besides its type, its bounds and its help."""
    form = "" if one.declared.form is FieldForm.VALUE else str(one.declared.form)
    notes = {"x-form": form, "x-heading": one.declared.heading, "x-shown": one.declared.shown}
    return {name: words for name, words in notes.items() if words}


def _wire(kind: Any, bounds: ValueBounds | None, door: Door, camel: bool, *, optional: bool = False) -> Any:
    """Return the type of a field as it stands in JSON."""
    inner = without_none(kind)
    found = bounded(_plain(inner, door, camel), bounds)
    return found | None if optional else found


def _plain(kind: Any, door: Door, camel: bool) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounds = next((one for one in arguments[1:] if isinstance(one, ValueBounds)), None)
        return bounded(_plain(arguments[0], door, camel), bounds)
    if origin is tuple:
        return list[_plain(arguments[0], door, camel)]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return Union[tuple(_plain(one, door, camel) for one in arguments)]  # noqa: UP007 - made of a tuple
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, Any]
    if isinstance(kind, type) and is_dataclass(kind):
        return order_model(kind, door, name=f"{kind.__name__}Body", camel=camel)
    words = tuple(map(str, kind)) if isinstance(kind, type) and issubclass(kind, StrEnum) else ()
    words = words or (arguments if origin is Literal else ())
    # The words themselves, in their order: typing takes two choices of the same words for one type, with or without
    # None, and gives that of which somebody else has made first.
    return Annotated[Literal[words], words] if words else kind


def _named_in(
    kind: Any, given: Any, names: Mapping[str, str], own: str, path: str
) -> Iterator[tuple[FieldForm, str, str]]:
    for one in order_fields(kind) if isinstance(given, Mapping) else ():
        name = names.get(f"{own}{one.name}", "")
        value = given.get(name)
        for place, each in enumerate(value) if is_many(one.kind) and isinstance(value, list) else ((None, value),):
            where = f"{path}{name}" if place is None else f"{path}{name}[{place}]"
            if isinstance(each, str) and each and one.declared.form in _NAMED:
                yield one.declared.form, where, each
            for inner in _dataclasses_in(one.kind):
                yield from _named_in(inner, each, names, f"{own}{one.name}.", f"{where}.")


_NAMED = frozenset({FieldForm.AGENT, FieldForm.SUITE, FieldForm.CHAIN, FieldForm.COUNCIL})


def _dataclasses_in(kind: Any) -> Iterator[Any]:
    """Yield the dataclasses within the type of a field."""
    if isinstance(kind, type) and is_dataclass(kind):
        yield kind
    for argument in get_args(kind):
        yield from _dataclasses_in(argument)


@cache  # every request and every error asks for them
def _names_of(model: type[OrderModel]) -> Mapping[str, str]:
    found = {name: field.alias or name for name, field in model.model_fields.items()}
    for name, field in model.model_fields.items():
        for inner in _models_in(field.annotation):
            found |= {f"{name}.{own}": door for own, door in inner.names().items()}
    return MappingProxyType(found)


def _models_in(annotation: Any) -> Iterator[type[OrderModel]]:
    """Yield the models of orders within the type of a field."""
    if isinstance(annotation, type) and issubclass(annotation, OrderModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _inner(value: Any) -> Any:
    """Return a value of a model as an order has it."""
    if isinstance(value, OrderModel):
        return value.order()
    return tuple(_inner(one) for one in value) if isinstance(value, list) else value


def order_body(model: OrderModel) -> OrderBody[Any]:
    """Return the order of a body, and what it asks for by the names of its door."""
    order, spelled = model.order(), _spelled(model)
    asked = {name: value for name, value in spelled.items() if name not in usual_names(model, order)}
    return OrderBody(order, asked, model.names(), order.id, None if asked == spelled else spelled)


def usual_names(model: OrderModel, order: Any) -> frozenset[str]:
    """Return the names at its door of what a model says that would be the same if it did not say it."""
    fields, names = order_fields(model.order_kind), model.names()
    return frozenset(names[one.name] for one in fields if one.name in names and getattr(order, one.name) == one.default)


def _spelled(model: OrderModel) -> JsonObject:
    """Return what a body says, without what is left out or null; a default stays where help tells it in words."""
    dumped = model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    names = model.names()
    meant = {names[other]: names[target] for target, all_ in _other_names(model.order_kind).items() for other in all_}
    return {meant.get(name, name): value for name, value in dumped.items() if value is not None}


@cache
def _other_names(kind: Any) -> Mapping[str, tuple[str, ...]]:
    """Return the fields that have other names, and these."""
    found: dict[str, tuple[str, ...]] = {}
    for one in order_fields(kind):
        if one.declared.same_as and one.at(Door.REQUEST):
            found[one.declared.same_as] = (*found.get(one.declared.same_as, ()), one.name)
    return found

"""Values of a program's own types in the journal: written as plain JSON, and read back as what they were.

The types are dataclasses, msgspec Structs, TypedDicts, Pydantic models, and what is made of them: `list[Ticket]`,
`Ticket | None`.
"""

import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Any,
    Never,
    NoReturn,
    Protocol,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

from muster.domain.canonical import Json, noun_of, plain_json
from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw
from muster.engine.pydantic_types import MAX_TYPES, adapter_of, altered
from muster.engine.value_flaws import flaws_of, unknown_fields
from muster.text import typed

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_OPEN = (None, Any, object)
_PLAIN = (str, int, float, bool, type(None), dict, list)  # whose values are JSON: stored and given back as they are


@runtime_checkable
class Model(Protocol):
    """A Pydantic model, as far as it is needed here."""

    def model_json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the model."""

    def model_validate_json(self, data: bytes) -> object:
        """Return an instance, or raise ValueError."""


@runtime_checkable
class ModelInstance(Protocol):
    """An instance of a Pydantic model."""

    def model_dump(self, *, mode: str, by_alias: bool, round_trip: bool) -> Mapping[str, Json]:
        """Return its fields as plain values."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """A type whose values are stored as JSON; without a type they are plain JSON, and stay what they are."""

    kind: Any = None

    @property
    def is_plain(self) -> bool:
        """Return whether values are stored and given back as they are."""
        return any(self.kind is plain for plain in (*_OPEN, *_PLAIN))

    @property
    def is_open(self) -> bool:
        """Return whether any JSON is of this type."""
        return any(self.kind is open_ for open_ in _OPEN)

    def check(self, stored: Any, what: str) -> None:
        """Raise BadArgument, with all its flaws, for stored JSON that is of another type or has unknown fields."""
        if self.is_open:
            return
        flaws = (*flaws_of(self.kind, stored, _read), *unknown_fields(self.kind, stored))
        if flaws:
            raise self._misfit(flaws, what)

    def write(self, value: object, what: str, way: str = "") -> Any:
        """Return a value as plain JSON; raises BadArgument for one that is none, and for one of another type."""
        if self.is_plain:
            stored = _plain(value, what, way)
            self.read(stored, what)  # what cannot be read again must not be stored
            return stored
        adapter = adapter_of(self.kind)
        stored = json_of(value, what, adapter)
        again = self.read(stored, what)
        for own, other in () if adapter is None else altered(value, again):
            raise BadArgument(
                f"{what} has a {type_name(own)} that would be read again as a {type_name(other)}",
                suggestions=(f'give each a field that tells them apart, such as kind: Literal["{own.__name__}"]',),
            )
        return stored

    def require_storable(self, what: str) -> None:
        """Raise BadArgument for a type whose values could not be stored, before any is made."""
        if not self.is_plain and (flaw := _flaw_of(self.kind)):
            raise BadArgument(f"{what} cannot be stored: {flaw}")

    def read(self, stored: Json, what: str) -> Any:
        """Return the value that was stored; raises BadArgument, with all its flaws, for one that is of another type."""
        if self.is_open or (self.is_plain and isinstance(stored, float | int if self.kind is float else self.kind)):
            return stored
        try:
            return _read(stored, self.kind)
        except (TypeError, ValueError) as error:
            raise self.misfit(stored, what) from error

    def misfit(self, stored: Json, what: str) -> BadArgument:
        """Return the error for a value that is of another type."""
        return self._misfit(flaws_of(self.kind, stored, _read), what)

    def _misfit(self, flaws: Sequence[FieldFlaw], what: str) -> BadArgument:
        ways = tuple(dict.fromkeys(flaw.suggestion for flaw in flaws if flaw.suggestion))
        return BadArgument.of(flaws, about=f"{what} is not a {type_name(self.kind)}", suggestions=ways)


PLAIN = ValueType()


def _read(stored: Json, kind: Any) -> Any:
    if adapter := adapter_of(kind):
        return adapter.validate_json(typed.encode(stored))  # as JSON: in which dates are texts
    return typed.convert(stored, kind, dec_hook=_validate, str_keys=True)  # those of JSON are texts


def _plain(value: object, what: str, way: str) -> Any:
    if isinstance(value, ModelInstance) or (hasattr(value, "__dataclass_fields__") and not isinstance(value, type)):
        raise BadArgument(
            f"{what} is {noun_of(value)}, and nothing says so to whoever reads it again",
            suggestions=(way or f"annotate the function: -> {type(value).__name__}",),
        )
    return plain_json(value, what)


def json_of(value: object, what: str, adapter: "TypeAdapter[Any] | None" = None) -> Any:
    """Return a value as JSON, with all instances of types in it; raises BadArgument for one that cannot be."""
    try:
        if adapter is None:
            return plain_json(typed.to_builtins(_whole(value), enc_hook=_dump), what)
        dumped = adapter.dump_python(value, mode="json", by_alias=True, round_trip=True, warnings=False)
        return plain_json(dumped, what)
    except (TypeError, ValueError) as error:
        raise BadArgument(f"{what} cannot be stored as JSON: {error}") from error


def _whole(value: Any) -> Any:
    """Return a value whose dataclasses are mappings of all their fields: some stand in the class only."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _whole(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list | tuple | set | frozenset) else value


def _dump(value: Any) -> Any:
    if isinstance(value, ModelInstance):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    if hasattr(value, "__await__"):
        raise TypeError("it was not awaited; write await before the call")
    raise TypeError(f"{noun_of(value)} is not JSON")


def _validate(kind: Any, stored: Any) -> Any:
    if kind is object:
        return stored
    if isinstance(kind, Model):
        return kind.model_validate_json(typed.encode(stored))  # as JSON: a strict model takes no text for a date else
    raise TypeError(f"a {type_name(kind)} cannot be read from JSON")


def type_name(kind: Any) -> str:
    """Return what a type is called."""
    if kind is type(None):
        return "None"
    return kind.__name__ if isinstance(kind, type) and get_origin(kind) is None else str(kind).replace("typing.", "")


def returned(function: Callable[..., Any]) -> ValueType:
    """Return the type that a function says it returns, also as an awaitable; of one that says nothing, plain JSON."""
    while isinstance(function, partial):
        function = function.func
    try:
        found = hinted(function, "return")
    except (NameError, TypeError):  # a name that only type checkers know
        return ValueType()
    awaited = get_origin(found.kind) in (Awaitable, Coroutine)
    return ValueType(get_args(found.kind)[-1]) if awaited else found


def hinted(function: Callable[..., Any], name: str) -> ValueType:
    """Return the type of a parameter, or of what is returned; raises NameError or TypeError for one without meaning."""
    hints = getattr(function, "__annotations__", {})
    if name not in hints:
        return ValueType()
    own = SimpleNamespace(__annotations__={name: hints[name]})  # of the others names may be known to type checkers only
    return ValueType(get_type_hints(own, getattr(function, "__globals__", None), include_extras=True)[name])


@lru_cache(MAX_TYPES)
def _flaw_of(kind: Any) -> str:
    """Return why values of a type have no form in JSON; nothing when they have one, or there are none."""
    if isinstance(kind, Model) or kind in (NoReturn, Never):
        return ""
    unknown: list[str] = []

    def note(part: Any) -> dict[str, Json]:
        if not isinstance(part, Model) and part is not object:
            unknown.append(f"{type_name(part)} has no form in JSON")
        return {}

    try:
        if adapter_of(kind) is None:
            typed.prepare(kind)
            with suppress(TypeError):  # of a default, which says nothing about the type
                typed.schema_components((kind,), schema_hook=note)
    except (NameError, TypeError) as error:
        return str(error)
    return " and ".join(unknown)


def schema_of(kind: Any) -> dict[str, Json]:
    """Return the JSON Schema of a type, with everything that it refers to in `$defs`; raises TypeError without one."""
    if isinstance(kind, Model):
        return kind.model_json_schema()
    if adapter := adapter_of(kind):
        return adapter.json_schema()
    nested: dict[str, Json] = {}

    def describe(model: Any) -> dict[str, Json]:
        if model is object:
            return {}
        if not isinstance(model, Model):
            raise TypeError(f"{type_name(model)} has no form in JSON")
        found = dict(model.model_json_schema())
        nested.update(found.pop("$defs", {}))
        return found

    (top,), defs = typed.schema_components((kind,), ref_template="#/$defs/{name}", schema_hook=describe)
    defs.update(nested)
    schema = top
    if "$ref" in top:
        name = str(top["$ref"]).rpartition("/")[2]
        schema = defs[name]
        if f'"{top["$ref"]}"' not in json.dumps(defs):  # else it contains itself
            del defs[name]
    schema = {word: value for word, value in schema.items() if word != "title"}
    return {**schema, "$defs": defs} if defs else schema

"""Values of a program's own types in the journal: written as plain JSON, and read back as what they were."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, get_args, get_origin, get_type_hints, runtime_checkable

from muster.domain.canonical import Json, plain_json
from muster.domain.errors import BadArgument
from muster.text import typed

_PLAIN = (None, Any, object, str, int, float, bool, type(None), dict, list)  # stored and given back as they are


@runtime_checkable
class ModelInstance(Protocol):
    """An instance of a Pydantic model."""

    def model_dump(self, *, mode: str) -> Mapping[str, Any]:
        """Return its fields as plain values."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """A type whose values are stored as JSON; without a type they are plain JSON, and stay what they are."""

    kind: Any = None

    @property
    def is_plain(self) -> bool:
        """Return whether values are stored and given back as they are."""
        return any(self.kind is plain for plain in _PLAIN)

    def write(self, value: object, what: str) -> Json:
        """Return a value as plain JSON; raises BadArgument for one that is none, and for one of another type."""
        if self.is_plain:
            return _plain(value, what)
        try:
            stored = typed.to_builtins(value, enc_hook=_dump)
        except (TypeError, ValueError) as error:
            raise BadArgument(f"{what} cannot be stored as JSON: {error}") from error
        self.read(stored, what)  # what cannot be read again must not be stored
        return plain_json(stored, what)

    def read(self, stored: Json, what: str) -> Any:
        """Return the value that was stored; raises BadArgument for one that does not fit the type."""
        if self.is_plain:
            return stored
        try:
            return typed.convert(stored, self.kind, dec_hook=_validate)
        except (TypeError, ValueError) as error:
            raise BadArgument(f"{what} is not a {_name(self.kind)}: {error}") from error


def _plain(value: object, what: str) -> Json:
    if isinstance(value, ModelInstance) or (hasattr(value, "__dataclass_fields__") and not isinstance(value, type)):
        raise BadArgument(
            f"{what} is a {type(value).__name__}, and nothing says so to whoever reads it again",
            suggestions=(f"annotate the function: -> {type(value).__name__}",),
        )
    return plain_json(value, what)


def _dump(value: Any) -> Any:
    if isinstance(value, ModelInstance):
        return value.model_dump(mode="json")
    raise TypeError(f"a {type(value).__name__} is not JSON")


def _validate(kind: Any, stored: Any) -> Any:
    if hasattr(kind, "model_validate"):
        return kind.model_validate(stored)
    raise TypeError(f"a {_name(kind)} cannot be read from JSON")


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(kind)


def returned(function: Callable[..., Any]) -> ValueType:
    """Return the type that a function says it returns, also as an awaitable; of one that says nothing, plain JSON."""
    while isinstance(function, partial):
        function = function.func
    if "return" not in getattr(function, "__annotations__", ()):
        return ValueType()
    try:
        kind = get_type_hints(function)["return"]
    except (NameError, TypeError):  # a name that only type checkers know
        return ValueType()
    return ValueType(get_args(kind)[-1] if get_origin(kind) in (Awaitable, Coroutine) else kind)


def schema_of(kind: Any) -> dict[str, Json]:
    """Return the JSON Schema of a type whose values are objects, with everything that it refers to in `$defs`."""
    nested: dict[str, Json] = {}

    def describe(model: Any) -> dict[str, Json]:
        found = dict(model.model_json_schema())
        nested.update(found.pop("$defs", {}))
        return found

    (top,), defs = typed.schema_components((kind,), ref_template="#/$defs/{name}", schema_hook=describe)
    defs.update(nested)
    schema = defs.pop(str(top["$ref"]).rpartition("/")[2]) if "$ref" in top else top
    schema.pop("title", None)
    return {**schema, "$defs": defs} if defs else schema

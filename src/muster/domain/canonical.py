"""One spelling for every JSON value, so that equal things have equal digests."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from muster.domain.errors import BadArgument

Json = Any
if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
    DataT_co = DefaultTypeVar("DataT_co", default=JsonValue, covariant=True)
else:  # a type that contains itself, and a variable with a default, are for type checkers only
    JsonValue = Any
    DataT_co = TypeVar("DataT_co", covariant=True)
JsonObject: TypeAlias = dict[str, JsonValue]  # what we write: made of values whose types are known

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: Json) -> bytes:
    """Spell a JSON value in its one canonical form: sorted keys, no spaces, UTF-8."""
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def plain_json(value: Json, what: str) -> Json:
    """Return a value as the store would return it, or raise for one that is not JSON."""
    if type(value) is str:  # long ones are kept as steps, and need not be spelled and read for nothing
        return value
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadArgument(f"{what} is not plain JSON: {error}") from error


def digest(value: Json) -> str:
    """Name a JSON value by the SHA-256 of its canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()

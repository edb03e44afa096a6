"""One spelling for every JSON value, so that equal things have equal digests."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from muster.domain.errors import BadArgument

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
    DataT_co = DefaultTypeVar("DataT_co", default=Json, covariant=True)
else:  # a type that contains itself, and a variable with a default, are for type checkers only
    Json = Any
    DataT_co = TypeVar("DataT_co", covariant=True)
JsonObject: TypeAlias = dict[str, Json]  # what we write: made of values whose types are known

MAX_DEPTH = 100  # that is searched for what is no JSON
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: Any) -> bytes:
    """Spell a JSON value in its one canonical form: sorted keys, no spaces, UTF-8."""
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def plain_json(value: Any, what: str) -> Any:
    """Return a value as the store would return it, or raise for one that is not JSON."""
    if type(value) is str:  # long ones are kept as steps, and need not be spelled and read for nothing
        return value
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        place, why, way = _unplain(value) or ("", str(error), "")
        where = f" at {place}" if place else ""
        raise BadArgument(f"{what} is not plain JSON{where}: {why}", suggestions=(way,) if way else ()) from error


def _unplain(value: Json, place: str = "", depth: int = 0) -> tuple[str, str, str] | None:
    """Return the place of the first value that is no JSON, what is wrong with it, and what to do; None for none."""
    if depth > MAX_DEPTH or value is None or isinstance(value, str | bool | int):
        return None
    if isinstance(value, float):
        odd = value != value or value in (float("inf"), float("-inf"))
        return (place, f"it is {value}", "use None where there is no number") if odd else None
    parts: Iterable[tuple[Any, Json]] = ()
    if isinstance(value, dict):
        parts = ((f".{name}", part) for name, part in value.items())
    elif isinstance(value, list | tuple):
        parts = ((f"[{number}]", part) for number, part in enumerate(value))
    elif hasattr(value, "__await__"):
        return place, "it was not awaited", "write await before the call"
    else:
        known = (
            "write list(…)" if isinstance(value, set | frozenset) else "declare its type, or write its fields as a dict"
        )
        return place, f"it is {noun_of(value)}", known
    found = (_unplain(part, f"{place}{step}".removeprefix("."), depth + 1) for step, part in parts)
    return next(filter(None, found), None)


def noun_of(value: object) -> str:
    """Return what a value is, with its article: an int, a list."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


def digest(value: Json) -> str:
    """Name a JSON value by the SHA-256 of its canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()

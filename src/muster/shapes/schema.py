"""JSON Schema: whether an answer has the shape that was asked for. The library behind it is loaded when needed."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from muster.domain.call import Request, Stop
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput, InvalidRequest
from muster.shapes.json_limits import flaw_of
from muster.shapes.json_search import find_value
from muster.shapes.patterns import search

LONGEST = 300  # characters of a message: it may quote the whole answer

_NO_ANSWER = (Stop.TOOL_USE, Stop.REFUSED, Stop.MAX_TOKENS)  # not yet, not at all, or not all of it


def require_schema(request: Request) -> None:
    """Refuse a request whose schema is none, before anything is spent on it."""
    wrong = None if request.schema is None else schema_flaw(request.schema)
    if wrong is not None:
        raise InvalidRequest(f"the schema of the request is no JSON Schema: {wrong}")


def schema_flaw(schema: Mapping[str, Json]) -> str | None:
    """Say why a mapping is no JSON Schema; None when it is one."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    try:
        validator_for(dict(schema), default=Draft202012Validator).check_schema(dict(schema))
    except (SchemaError, RecursionError) as error:
        return str(getattr(error, "message", error))[:LONGEST]
    return None


def shaped(request: Request, stop: Stop, text: str, data: Json = None) -> Json:
    """Give the data of an answer that fits the schema of a request: what it gave as such, else what is in its text.

    Raises BadOutput when there is none, or it does not fit. Without a schema nothing is asked of it.
    """
    if request.schema is None or stop in _NO_ANSWER:
        return data
    return fitting(find_value(text, request.schema) if data is None else data, request.schema)


def fitting(value: Json, schema: Mapping[str, Json]) -> Json:
    """Give a value that can be kept and fits a schema; raises BadOutput for any other."""
    if wrong := flaw_of(value) or flaw(value, schema):
        raise BadOutput(f"its answer does not fit the schema: {wrong}")
    return value


def flaw(value: Json, given: Mapping[str, Json]) -> str | None:
    """Say what in a value does not fit a schema; None when all of it does."""
    from jsonschema.exceptions import best_match
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    schema = dict(given)
    kind = _bounded(validator_for(schema, default=Draft202012Validator))
    try:
        # A registry of our own: else a reference in a schema would be fetched from the network.
        error = best_match(kind(schema, registry=Registry()).iter_errors(value))
    except Unresolvable as unresolvable:
        return f"the schema refers to something that is not in it: {unresolvable}"
    except BadArgument as endless:
        return endless.message
    return None if error is None else f"{error.json_path}: {error.message[:LONGEST]}"


@lru_cache
def _bounded(kind: Any) -> Any:
    """Give a validator whose patterns cannot hang on a hostile answer."""
    from jsonschema.validators import extend

    return extend(kind, {"pattern": _pattern, "patternProperties": _pattern_properties})  # type: ignore[no-untyped-call]


def _pattern(validator: Any, pattern: str, value: Json, schema: Json) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and search(pattern, value) is None:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, properties: Json, value: Json, schema: Json) -> Iterator[Any]:
    for pattern, inner in properties.items() if isinstance(value, dict) else ():
        for name, item in value.items():
            if search(pattern, name) is not None:
                yield from validator.descend(item, inner, path=name, schema_path=pattern)

"""JSON Schema: whether an answer has the shape that was asked for. The library behind it is loaded when needed."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from muster.domain.call import Reply, Request, Stop
from muster.domain.canonical import Json, canonical
from muster.domain.errors import BadArgument, BadOutput, InvalidRequest
from muster.text.json_documents import find_value, flaw_of
from muster.text.patterns import search

LONGEST = 300  # characters of a message: it may quote the whole answer

_NO_ANSWER = (Stop.TOOL_USE, Stop.REFUSED, Stop.MAX_TOKENS)  # not yet, not at all, or not all of it


class JsonSchemas:
    """JSON Schemas as the engine uses them."""

    def require(self, schema: Mapping[str, Json]) -> None:
        """Raise InvalidRequest for a mapping that is not a JSON Schema."""
        wrong = schema_flaw(schema)
        if wrong is not None:
            raise InvalidRequest(f"the schema of the request is not a JSON Schema: {wrong}")

    def parse(self, reply: Reply, schema: Mapping[str, Json]) -> Reply:
        """Return the reply with its answer as data, or with the reason why that does not fit the schema."""
        if reply.data is not None or reply.stop in _NO_ANSWER:  # an agent that checks its answers has set it
            return reply
        try:
            return replace(reply, data=fitting(find_value(reply.text, schema), schema), data_error="")
        except BadOutput as error:
            return replace(reply, data_error=error.message)


def require_schema(request: Request) -> None:
    """Raise InvalidRequest for a request whose schema is not a JSON Schema, before anything is spent on it."""
    if request.schema is not None:
        JsonSchemas().require(request.schema)


def schema_flaw(schema: Mapping[str, Json]) -> str | None:
    """Return why a mapping is not a JSON Schema; None when it is one."""
    try:
        return _schema_flaw(canonical(schema))
    except (TypeError, ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"


@lru_cache(maxsize=64)  # a run asks for the same shape again and again
def _schema_flaw(text: bytes) -> str | None:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    schema = json.loads(text)
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except (SchemaError, RecursionError) as error:
        return str(getattr(error, "message", error))[:LONGEST]
    return None


def shaped(request: Request, stop: Stop, text: str, data: Json = None) -> Json:
    """Return the data of an answer that fits the schema of a request: what it gave as such, else what is in its text.

    Raises BadOutput when there is none, or it does not fit. Without a schema nothing is asked of it.
    """
    if request.schema is None or stop in _NO_ANSWER:
        return data
    return fitting(find_value(text, request.schema) if data is None else data, request.schema)


def fitting(value: Json, schema: Mapping[str, Json]) -> Json:
    """Return a value that can be kept and fits a schema; raises BadOutput for any other."""
    if wrong := flaw_of(value) or flaw(value, schema):
        raise BadOutput(f"its answer does not fit the schema: {wrong}")
    return value


def flaw(value: Json, schema: Mapping[str, Json]) -> str | None:
    """Return what in a value does not fit a schema; None when all of it does."""
    from jsonschema.exceptions import best_match
    from referencing.exceptions import Unresolvable

    try:
        error = best_match(_validator(canonical(schema)).iter_errors(value))
    except Unresolvable as unresolvable:
        return f"the schema refers to something that is not in it: {unresolvable}"
    except BadArgument as endless:
        return endless.message
    return None if error is None else f"{error.json_path}: {error.message[:LONGEST]}"


@lru_cache(maxsize=64)
def _validator(text: bytes) -> Any:
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    schema = json.loads(text)
    kind = _bounded(validator_for(schema, default=Draft202012Validator))
    # A registry of our own: else a reference in a schema would be fetched from the network.
    return kind(schema, registry=Registry())


@lru_cache
def _bounded(kind: Any) -> Any:
    """Return a validator whose patterns cannot hang on a hostile answer."""
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

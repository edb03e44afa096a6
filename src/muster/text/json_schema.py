"""JSON Schema: whether an answer has the shape that was asked for. The library behind it is loaded when needed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from muster.domain.call import Reply, Request, Stop
from muster.domain.canonical import Json, canonical
from muster.domain.errors import BadArgument, BadOutput, InvalidRequest
from muster.text.json_documents import find_value, flaw_of

_NO_ANSWER = (Stop.TOOL_USE, Stop.REFUSED, Stop.MAX_TOKENS)  # not yet, not at all, or not all of it


class SchemaLibrary(Protocol):
    """What is asked of the library, once it is loaded."""

    def schema_flaw_of(self, text: bytes) -> str | None:
        """Return why a JSON text is not a JSON Schema; None when it is one."""

    def flaw_in(self, value: Json, schema: bytes) -> str | None:
        """Return what in a value does not fit a schema, given as JSON text; None when all of it does."""


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
        return _library().schema_flaw_of(canonical(schema))
    except (TypeError, ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"


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
    """Return what in a value does not fit a schema, or why that cannot be known; None when all of it fits."""
    try:
        return evaluate(value, schema)
    except BadArgument as error:
        return error.message


def evaluate(value: Json, schema: Mapping[str, Json]) -> str | None:
    """Return what in a value does not fit a schema; raises BadArgument when the schema cannot be evaluated on it."""
    return _library().flaw_in(value, canonical(schema))


def _library() -> SchemaLibrary:
    from muster.text import schema_library  # here, because it takes a fifth of a second

    return schema_library

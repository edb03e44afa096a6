"""JSON Schema: whether an answer has the shape that was asked for. The library behind it is loaded when needed."""

from collections.abc import Mapping

from muster.domain.call import Request, Stop
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput, InvalidRequest
from muster.shapes.json_limits import flaw_of
from muster.shapes.json_search import find_value

LONGEST = 300  # characters of a message: it may quote the whole answer

_NO_ANSWER = (Stop.TOOL_USE, Stop.REFUSED, Stop.MAX_TOKENS)  # not yet, not at all, or not all of it


def require_schema(request: Request) -> None:
    """Refuse a request whose schema is none, before anything is spent on it."""
    if request.schema is None:
        return
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    schema = dict(request.schema)
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise InvalidRequest(f"the schema of the request is no JSON Schema: {error.message[:LONGEST]}") from error


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
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        # A registry of our own: else a reference in a schema would be fetched from the network.
        error = best_match(kind(schema, registry=Registry()).iter_errors(value))
    except Unresolvable as unresolvable:
        return f"the schema refers to something that is not in it: {unresolvable}"
    return None if error is None else f"{error.json_path}: {error.message[:LONGEST]}"

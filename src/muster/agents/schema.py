"""JSON Schema: whether an answer has the shape that was asked for. The library behind it is loaded when needed."""

from collections.abc import Mapping

from muster.domain.call import Request
from muster.domain.canonical import Json
from muster.domain.errors import InvalidRequest

LONGEST = 300  # characters of a message: it may quote the whole answer


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

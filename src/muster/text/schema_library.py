"""The JSON Schema library, bounded: nothing can hang, and it fetches nothing. Slow to load: see json_schema."""

import json
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.text.patterns import SECONDS, search

LONGEST = 300  # characters of a message: it may quote the whole answer
MOST_REFERENCES = 20_000  # that are followed for one value: a short schema can lead to more of them than atoms exist
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_FOLLOWED: ContextVar[Iterator[int]] = ContextVar("references followed for the value at hand")
_SEARCHED: ContextVar[float] = ContextVar("seconds of all searches for patterns in the value at hand")


@lru_cache(maxsize=64)  # a run asks for the same shape again and again
def schema_flaw_of(text: bytes) -> str | None:
    """Return why a JSON text is not a JSON Schema; None when it is one."""
    schema = json.loads(text)
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except (SchemaError, RecursionError) as error:
        return str(getattr(error, "message", error))[:LONGEST]
    return None


def flaw_in(value: Json, schema: bytes) -> str | None:
    """Return what in a value does not fit a schema, given as JSON text; None when all of it does.

    Raises BadArgument when the schema cannot be evaluated on it, so that nobody knows.
    """
    _FOLLOWED.set(iter(range(MOST_REFERENCES)))
    _SEARCHED.set(0.0)
    try:
        error = best_match(_validator(schema).iter_errors(value))
    except RecursionError:
        raise BadArgument("the schema refers to itself without end, or the value is nested too deeply") from None
    except Unresolvable as unresolvable:
        raise BadArgument(f"the schema refers to something that is not in it: {unresolvable}") from None
    return None if error is None else f"{error.json_path}: {error.message[:LONGEST]}"


@lru_cache(maxsize=64)
def _validator(text: bytes) -> Any:
    schema = json.loads(text)
    kind = _bounded(validator_for(schema, default=Draft202012Validator))
    # A registry of our own: else a reference in a schema would be fetched from the network.
    return kind(schema, registry=Registry())


@lru_cache
def _bounded(kind: Any) -> Any:
    """Return a validator that cannot hang on a hostile answer or schema."""
    references = {name: _counted(kind.VALIDATORS[name]) for name in REFERENCES if name in kind.VALIDATORS}
    return extend(kind, {"pattern": _pattern, "patternProperties": _pattern_properties, **references})  # type: ignore[no-untyped-call]


def _counted(follow: Callable[..., Iterator[Any] | None]) -> Callable[..., Iterator[Any]]:
    """Return what follows a reference, as long as not too many were followed."""

    def check(validator: Any, reference: str, value: Json, schema: Json) -> Iterator[Any]:
        if next(_FOLLOWED.get(), None) is None:
            raise BadArgument(f"the schema leads to more than {MOST_REFERENCES:,} references; make it simpler")
        yield from follow(validator, reference, value, schema) or ()

    return check


def _found(pattern: str, text: str) -> bool:
    """Return whether a pattern is found; all patterns of a schema share the time that one has elsewhere."""
    left = SECONDS - _SEARCHED.get()
    if left <= 0:
        raise BadArgument("the patterns of the schema take too long on this answer")
    began = time.monotonic()
    try:
        return search(pattern, text, left) is not None
    finally:
        _SEARCHED.set(_SEARCHED.get() + time.monotonic() - began)


def _pattern(validator: Any, pattern: str, value: Json, schema: Json) -> Iterator[Any]:
    if isinstance(value, str) and not _found(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, properties: Json, value: Json, schema: Json) -> Iterator[Any]:
    for pattern, inner in properties.items() if isinstance(value, dict) else ():
        for name, item in value.items():
            if _found(pattern, name):
                yield from validator.descend(item, inner, path=name, schema_path=pattern)

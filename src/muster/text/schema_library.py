"""The JSON Schema library, bounded: whatever it is given takes a few seconds of CPU at most, and it fetches nothing.

Slow to load: see json_schema.
"""

import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.text.cpu_limit import CpuAllowance, CpuSpent
from muster.text.patterns import SECONDS as SEARCH_SECONDS
from muster.text.patterns import TooSlow, search

CHECK_SECONDS = 2.0  # of CPU, for one schema
LONGEST = 300  # characters of a message: it may quote the whole answer
MOST_NESTED = 150  # references inside each other: values have at most 100 levels
MOST_ERRORS = 10_000  # that are found in one value: all branches of a choice keep theirs
MOST_REFERENCES = 20_000  # that are followed for one value: a short schema can lead to more of them than atoms exist
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
ENDLESS = "the schema refers to itself without end, or the value is nested too deeply"
_FOLLOWED: ContextVar[Iterator[int]] = ContextVar("references followed for the value at hand")
_ERRORS: ContextVar[Iterator[int]] = ContextVar("errors found in the value at hand")
_NESTED: ContextVar[int] = ContextVar("references inside each other that are being followed")
_ALLOWANCE: ContextVar[CpuAllowance] = ContextVar("CPU that the value at hand may use")
MOST_NAMED = 5  # properties in one message
LEAST_SECONDS = 0.001  # of a search: none at all would be no limit


@lru_cache(maxsize=64)  # a run asks for the same shape again and again
def schema_flaw_of(text: bytes) -> str | None:
    """Return why a JSON text is not a JSON Schema that can be used; None when it is one."""
    schema = json.loads(text)
    named = schema.get("$schema", "") if isinstance(schema, dict) else ""
    if not isinstance(named, str):
        return "$schema: must be a string"
    try:
        with CpuAllowance(CHECK_SECONDS).spending():
            kind = validator_for(schema, default=Draft202012Validator)
            kind.check_schema(schema)
            return _missing_target(schema, kind) or _unbounded_keywords(text)
    except CpuSpent:
        return "it takes too long to check; make it simpler"
    except SchemaError as error:
        return error.message[:LONGEST]
    except Exception as error:  # of a library that was given something strange
        return f"it cannot be checked: {type(error).__name__}: {error}"[:LONGEST]


def flaw_in(value: Json, schema: bytes, seconds: float) -> str | None:
    """Return what in a value does not fit a schema, given as JSON text; None when all of it does.

    Raises TooSlow when that takes more CPU than the seconds, BadArgument when the schema cannot be evaluated on
    it for another reason, so that nobody knows.
    """
    _FOLLOWED.set(iter(range(MOST_REFERENCES)))
    _ERRORS.set(iter(range(MOST_ERRORS)))
    _NESTED.set(0)
    allowance = CpuAllowance(seconds)
    _ALLOWANCE.set(allowance)
    try:
        with allowance.spending():
            error = best_match(_validator(schema).iter_errors(value))
    except CpuSpent:
        raise TooSlow("the schema takes too long on this answer") from None
    except BadArgument:
        raise
    except RecursionError:
        raise BadArgument(ENDLESS) from None
    except Unresolvable as unresolvable:
        raise BadArgument(f"the schema refers to something that is not in it: {unresolvable}") from None
    except Exception as failed:  # of a library that was given something strange
        raise BadArgument(f"the schema cannot be evaluated: {type(failed).__name__}: {failed}"[:LONGEST]) from failed
    except BaseException as failed:
        if type(failed).__name__ != "PanicException":
            raise
        # Of compiled code of the library, when the stack ends in the middle of it; no other name leads to its class.
        raise BadArgument(ENDLESS) from None
    return None if error is None else f"{error.json_path}: {error.message[:LONGEST]}"


def _missing_target(schema: Json, kind: Any) -> str | None:
    """Return what is wrong with a reference: that the schema does not hold what it leads to."""
    specification = specification_with(kind.META_SCHEMA["$schema"])
    whole = specification.create_resource(schema)
    base = whole.id() or ""
    registry: Registry[Any] = Registry().with_resource(base, whole).crawl()
    waiting = [(whole, registry.resolver(base))]
    while waiting:
        resource, resolver = waiting.pop()
        contents = resource.contents if isinstance(resource.contents, dict) else {}
        for target in (contents[name] for name in REFERENCES if isinstance(contents.get(name), str)):
            try:
                found = resolver.lookup(target).contents
            except Unresolvable:
                return f"it refers to {target!r}, which is not in it"[:LONGEST]
            if not isinstance(found, dict | bool):
                return f"it refers to {target!r}, which is not a schema"[:LONGEST]
        waiting += [(inner, resolver.in_subresource(inner)) for inner in resource.subresources()]
    return None


def _unbounded_keywords(text: bytes) -> str | None:
    """Return which keywords cannot be used together: the library searches for their patterns without a limit."""
    if b'"unevaluatedProperties":' in text and b'"patternProperties":' in text:
        return "unevaluatedProperties and patternProperties cannot be used together; use additionalProperties"
    return None


@lru_cache(maxsize=64)
def _validator(text: bytes) -> Any:
    schema = json.loads(text)
    kind = _bounded(validator_for(schema, default=Draft202012Validator))
    # A registry of our own: else a reference in a schema would be fetched from the network.
    return kind(schema, registry=Registry())


@lru_cache
def _bounded(kind: Any) -> Any:
    """Return a validator that cannot hang on a hostile answer or schema."""
    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        **{name: _counted(kind.VALIDATORS[name]) for name in REFERENCES if name in kind.VALIDATORS},
    }
    known = {**kind.VALIDATORS, **{name: check for name, check in own.items() if name in kind.VALIDATORS}}
    return extend(kind, {name: _short(check) for name, check in known.items()})  # type: ignore[no-untyped-call]


def _short(check: Callable[..., Iterator[Any] | None]) -> Callable[..., Iterator[Any]]:
    """Return what checks a keyword with short messages, as long as there are not too many: each may quote all of it."""

    def checked(validator: Any, wanted: Json, value: Json, schema: Json) -> Iterator[Any]:
        for error in check(validator, wanted, value, schema) or ():
            if next(_ERRORS.get(), None) is None:
                raise BadArgument(f"the answer has more than {MOST_ERRORS:,} errors by this schema")
            error.message = error.message[:LONGEST]
            error.args = (error.message, *error.args[1:])  # which has the whole message too
            yield error

    return checked


def _counted(follow: Callable[..., Iterator[Any] | None]) -> Callable[..., Iterator[Any]]:
    """Return what follows a reference, as long as not too many were followed."""

    def check(validator: Any, reference: str, value: Json, schema: Json) -> Iterator[Any]:
        if next(_FOLLOWED.get(), None) is None:
            raise BadArgument(f"the schema leads to more than {MOST_REFERENCES:,} references; make it simpler")
        depth = _NESTED.get()
        if depth == MOST_NESTED:
            raise BadArgument(ENDLESS)
        _NESTED.set(depth + 1)
        try:
            yield from follow(validator, reference, value, schema) or ()
        finally:
            _NESTED.set(depth)

    return check


def _found(pattern: str, text: str) -> bool:
    """Return whether a pattern is found; a search is not Python code, so it has what is left as its own limit."""
    return search(pattern, text, min(max(_ALLOWANCE.get().left, LEAST_SECONDS), SEARCH_SECONDS)) is not None


def _pattern(validator: Any, pattern: str, value: Json, schema: Json) -> Iterator[Any]:
    if isinstance(value, str) and not _found(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, properties: Json, value: Json, schema: Json) -> Iterator[Any]:
    for pattern, inner in properties.items() if isinstance(value, dict) else ():
        for name, item in value.items():
            if _found(pattern, name):
                yield from validator.descend(item, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, wanted: Json, value: Json, schema: Json) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    more = [name for name in value if name not in known and not any(_found(pattern, name) for pattern in patterns)]
    if isinstance(wanted, dict):
        for name in more:
            yield from validator.descend(value[name], wanted, path=name)
    elif not wanted and more:
        told = ", ".join(repr(name[:LONGEST]) for name in more[:MOST_NAMED])
        were = "was" if len(more) == 1 else "were"
        yield ValidationError(f"Additional properties are not allowed ({told} {were} unexpected)")

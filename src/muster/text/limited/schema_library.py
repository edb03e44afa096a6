"""The JSON Schema library: it fetches nothing, and its messages are short. Slow to load, and without a limit of time.

Used for plain schemas, whose evaluation takes as long as they are large, and by the process that evaluates all others:
see muster.text.limited.process.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.text.limited.allowance import ENDLESS_SCHEMA
from muster.text.limited.schema_vocabulary import format_checker, unknown_word

MAX_MESSAGE = 300  # characters of a message, and of the place in it: both may quote the whole answer
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def schema_flaw_of(text: bytes) -> str | None:
    """Return why a JSON text is not a JSON Schema that can be used; None when it is one."""
    schema = json.loads(text)
    named = schema.get("$schema", "") if isinstance(schema, dict) else ""
    if not isinstance(named, str):
        return "$schema: must be a string"
    try:
        kind = validator_for(schema, default=Draft202012Validator)
        kind.check_schema(schema)
        return _missing_target(schema, kind)
    except SchemaError as error:
        return error.message[:MAX_MESSAGE]
    except MemoryError:
        return "it takes too much memory to check; make it simpler"
    except Exception as error:  # of a library that was given something strange
        return f"it cannot be checked: {type(error).__name__}: {error}"[:MAX_MESSAGE]


def unknown_word_in(schema: Mapping[str, Json]) -> str | None:
    """Return the first keyword or format of a sound schema that is not known; None when all of them are."""
    return unknown_word(schema)


def flaw_in(value: Json, schema: bytes, formats: bool = False, most: int = 1) -> str | None:
    """Return what in a value does not fit a schema, given as JSON text; None when all of it does.

    One flaw is the most telling one, several are the first. Raises BadArgument when the schema cannot be evaluated on
    it, so that nobody knows.
    """
    try:
        found = _validator(schema, formats).iter_errors(value)
        errors = [best_match(found)] if most == 1 else [best_match([error]) for error in islice(found, most)]
    except RecursionError:
        raise BadArgument(ENDLESS_SCHEMA) from None
    except MemoryError:
        raise BadArgument("the schema takes too much memory on this answer") from None
    except Unresolvable as unresolvable:
        raise BadArgument(f"the schema refers to something that is not in it: {unresolvable}"[:MAX_MESSAGE]) from None
    except Exception as failed:  # of a library that was given something strange
        raise BadArgument(
            f"the schema cannot be evaluated: {type(failed).__name__}: {failed}"[:MAX_MESSAGE]
        ) from failed
    told = [f"{error.json_path[:MAX_MESSAGE]}: {error.message[:MAX_MESSAGE]}" for error in errors if error is not None]
    return "; ".join(told) or None


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
        known = [name for name in REFERENCES if name in kind.VALIDATORS]  # others mean nothing in an older draft
        for target in (contents[name] for name in known if isinstance(contents.get(name), str)):
            try:
                found = resolver.lookup(target).contents
            except Unresolvable:
                return f"it refers to {target!r}, which is not in it"[:MAX_MESSAGE]
            if not isinstance(found, dict | bool):
                return f"it refers to {target!r}, which is not a schema"[:MAX_MESSAGE]
        waiting += [(inner, resolver.in_subresource(inner)) for inner in resource.subresources()]
    return None


@lru_cache(maxsize=64)
def _validator(text: bytes, formats: bool) -> Any:
    schema = json.loads(text)
    kind = validator_for(schema, default=Draft202012Validator)
    # A registry of our own: else a reference in a schema would be fetched from the network.
    return kind(schema, registry=Registry(), format_checker=format_checker() if formats else None)

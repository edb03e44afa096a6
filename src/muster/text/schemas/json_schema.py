"""JSON Schema: whether an answer has the shape that was asked for. The library behind it is loaded when needed."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from muster.domain.call import Request, Stop
from muster.domain.canonical import Json, canonical
from muster.domain.errors import BadArgument, BadOutput, InvalidRequest
from muster.text.json_documents import find_value, flaw_of
from muster.text.limited.allowance import CpuAllowance
from muster.text.limited.process import TooSlow
from muster.text.limited.schema_loading import schema_library
from muster.text.schemas.guard import (
    MAX_PLAIN_SCHEMA,
    MAX_STEPS,
    guarded_flaw,
    guarded_schema_flaw,
    is_plain,
)

MAX_SCHEMA = 100_000  # bytes of JSON, of one that comes over a network
MAX_FLAWS = 10  # that are told of one answer
SECONDS = 5.0  # of CPU, for one value
CHECK_SECONDS = 2.0  # of CPU, for one schema
MAX_CACHED_RESULTS = 10_000  # schemas of which it is known what is wrong with them
_FOUND: dict[bytes, str | None] = {}  # by the digest of a schema: a run asks for the same shape again and again
NO_ANSWER = (Stop.TOOL_USE, Stop.REFUSED, Stop.MAX_TOKENS)  # not yet, not at all, or not all of it


def require_schema(request: Request) -> None:
    """Raise InvalidRequest for a request whose schema is not a JSON Schema, before anything is spent on it."""
    if request.schema is not None and (wrong := schema_flaw(request.schema)):
        raise InvalidRequest(f"the schema of the request is not a JSON Schema: {wrong}")


def schema_flaw(schema: Mapping[str, Any], allowance: CpuAllowance | None = None) -> str | None:
    """Return why a mapping is not a JSON Schema; None when it is one. What was found is remembered."""
    try:
        text = canonical(schema)
    except (TypeError, ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"
    digest = sha256(text).digest()
    if digest not in _FOUND:
        try:
            wrong = _checked(schema, text, allowance or CpuAllowance(CHECK_SECONDS))
        except TooSlow:
            return "it takes too long to check; make it simpler"
        except BadArgument as error:
            return error.message
        if len(_FOUND) >= MAX_CACHED_RESULTS:
            _FOUND.clear()
        _FOUND[digest] = wrong
    return _FOUND[digest]


def _checked(schema: Mapping[str, Json], text: bytes, allowance: CpuAllowance) -> str | None:
    if not _is_quick(schema, text, 1):
        return guarded_schema_flaw(text, allowance)
    with allowance.spending():
        return schema_library().schema_flaw_of(text)


def bounded_schema_flaw(schema: Mapping[str, Json], allowance: CpuAllowance | None = None) -> str | None:
    """Return why a mapping is not a JSON Schema, or that it is too large for one that may come over a network."""
    try:
        size = len(canonical(schema))
    except (TypeError, ValueError, RecursionError) as error:
        return f"is not JSON: {error}"
    if size > MAX_SCHEMA:
        return f"has {size:,} bytes; the maximum is {MAX_SCHEMA:,}"
    wrong = schema_flaw(schema, allowance)
    return None if wrong is None else f"is not a JSON Schema: {wrong}"


def shaped(request: Request, stop: Stop, text: str, data: Json = None) -> Any:
    """Return the data of an answer that fits the schema of a request: what it gave as such, else what is in its text.

    Raises BadOutput when there is none, or it does not fit. Without a schema nothing is asked of it.
    """
    if request.schema is None or stop in NO_ANSWER:
        return data
    try:
        return fitting(find_value(text, request.schema) if data is None else data, request.schema, most=MAX_FLAWS)
    except BadOutput as error:
        error.flaw, error.answer = error.message, text
        raise


def fitting(value: Json, schema: Mapping[str, Json], *, most: int = 1) -> Any:
    """Return a value that can be kept and fits a schema; raises BadOutput for any other, with so many of its flaws."""
    if wrong := flaw_of(value) or flaw(value, schema, most=most):
        raise BadOutput(misfit(wrong))
    return value


def misfit(wrong: str) -> str:
    """Return what is wrong with an answer in a sentence about it."""
    return f"its answer does not fit the schema: {wrong}"


def flaw(value: Any, schema: Mapping[str, Any], *, formats: bool = False, most: int = 1) -> str | None:
    """Return what in a value does not fit a schema, or why that cannot be known; None when all of it fits."""
    try:
        return evaluate(value, schema, formats=formats, most=most)
    except BadArgument as error:
        return error.message


def evaluate(
    value: Json,
    schema: Mapping[str, Any],
    allowance: CpuAllowance | None = None,
    *,
    formats: bool = False,
    most: int = 1,
) -> str | None:
    """Return what in a value does not fit a schema; raises BadArgument when the schema cannot be evaluated on it.

    TooSlow, which is one, when that would take more CPU than is allowed. `formats` must fit only if it is said.
    """
    allowance = allowance or CpuAllowance(SECONDS)
    text = canonical(schema)
    if not _is_quick(schema, text, _size(value)):
        return guarded_flaw(value, text, allowance, formats=formats, most=most)
    with allowance.spending():
        return schema_library().flaw_in(value, text, formats, most)


def unknown_word(schema: Mapping[str, Json]) -> str | None:
    """Return the first keyword or format of a sound schema that would be ignored; None when there is none."""
    return schema_library().unknown_word_in(schema)


def is_quick(text: str, schema: Mapping[str, Json]) -> bool:
    """Return whether a schema is evaluated on an answer at once, and not in another process."""
    return _is_quick(schema, canonical(schema), len(text))


def _is_quick(schema: Json, text: bytes, size: int) -> bool:
    return len(text) <= MAX_PLAIN_SCHEMA and len(text) * size <= MAX_STEPS and is_plain(schema)


def _size(value: Json) -> int:
    """Return how large a value is, as JSON."""
    return len(json.dumps(value, ensure_ascii=False))

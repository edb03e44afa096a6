"""The shape that an agent is asked for, narrow enough for providers to hold a model to it. What is read is wider."""

from collections.abc import Iterable, Mapping
from typing import Any

from muster.checks.findings.shape import COUNTS, extra_names, measures_of
from muster.domain.canonical import Json
from muster.domain.finding import Severity
from muster.domain.verification import Verifier

# Providers hold models to a schema only when every object names its keys and allows no other. They refuse bounds of
# numbers: those are checked when the reply is read. What may be null may be left out too: programs and CLI agents are
# held to this very shape, and theirs are plain replies.


def _object(properties: Mapping[str, Json], required: Iterable[str] | None = None) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def _or_null(kind: str) -> dict[str, Json]:
    return {"type": [kind, "null"]}


_FINDING = _object(
    {
        "file": {"type": "string"},
        "line": {"type": "integer"},
        "end_line": _or_null("integer"),
        "severity": {"type": "string", "enum": [str(severity) for severity in Severity]},
        "finding": {"type": "string"},
        "fix": _or_null("string"),
        "cwe": _or_null("string"),
        "confidence": _or_null("number"),
        "rule": _or_null("string"),
        "replacement": _or_null("string"),
    },
    ("file", "line", "severity", "finding"),
)
_SUMMARY = _object({name: {"type": "integer"} for name in COUNTS})
OPTIONAL = ("summary", "parts")
_PART = _object({"name": {"type": "string"}, "score": {"type": "number"}})
_MEASURES: dict[str, dict[str, Json]] = {
    "score": {"type": "number"},
    "parts": {"anyOf": [{"type": "array", "items": _PART}, {"type": "null"}]},
    "coverage": {"type": "number"},
}


def asked_schema(verifier: Verifier) -> dict[str, Json]:
    """Give the schema that is sent with a request, with the keys of the user's own schema beside ours."""
    ours: dict[str, Any] = {
        "findings": {"type": "array", "items": _FINDING},
        "summary": {"anyOf": [_SUMMARY, {"type": "null"}]},
        **{name: _MEASURES[name] for name in measures_of(verifier.shape)},
    }
    wanted = {**ours, **_extra(verifier.schema, ours)}
    return _object(wanted, [name for name in wanted if name not in OPTIONAL])


def _extra(own: Mapping[str, Json] | None, ours: Mapping[str, Json]) -> dict[str, Json]:
    """Give the keys that only the user's own schema has."""
    properties = (own or {}).get("properties")
    given: Mapping[str, Json] = properties if isinstance(properties, Mapping) else {}
    return {name: given.get(name, _MEASURES.get(name, {})) for name in extra_names(own) if name not in ours}

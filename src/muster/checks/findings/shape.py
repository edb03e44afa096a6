"""The shape of a reply that is accepted; it is wider than the one that is asked for. What is null counts as absent."""

from collections.abc import Mapping
from typing import Any

from muster.domain.canonical import Json
from muster.domain.verification import Shape

MOST_PARTS = 50

_TEXT: dict[str, Json] = {"type": "string"}
_NUMBER: dict[str, Json] = {"type": "number"}
_INTEGER: dict[str, Json] = {"type": "integer"}

FINDING: dict[str, Json] = {
    "type": "object",
    "properties": {
        "file": _TEXT,
        "line": _INTEGER,
        "end_line": _INTEGER,
        "severity": _TEXT,
        "finding": {"type": "string", "pattern": r"\S"},
        "fix": _TEXT,
        "cwe": {"type": ["string", "integer"]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "rule": _TEXT,
        "replacement": _TEXT,
    },
    "required": ["file", "line", "severity", "finding"],
    "additionalProperties": False,
}
COUNTS = ("total", "critical", "high", "medium", "low")
SUMMARY: dict[str, Json] = {
    "type": ["object", "string"],
    "properties": {name: {"type": ["integer", "null"]} for name in COUNTS},
    "additionalProperties": False,
}
_TEN: dict[str, Json] = {"type": "number", "minimum": 0, "maximum": 10}
MEASURES: dict[str, dict[str, Json]] = {
    "score": _TEN,
    # With names as keys, or as a list: a strict schema knows no object whose keys are not named in it.
    "parts": {
        "type": ["object", "array"],
        "additionalProperties": {"type": ["number", "null"], "minimum": 0, "maximum": 10},
        "maxProperties": MOST_PARTS,
        "items": {
            "type": "object",
            "properties": {"name": {"type": "string", "pattern": r"\S"}, "score": _TEN},
            "required": ["name", "score"],
            "additionalProperties": False,
        },
        "maxItems": MOST_PARTS,
    },
    "coverage": {"type": "number", "minimum": 0, "maximum": 100},
}
_OF_SHAPE: dict[Shape, tuple[str, ...]] = {
    Shape.FINDINGS: (),
    Shape.REVIEW: ("score", "parts"),
    Shape.TESTS: ("coverage",),
}
_REQUIRED = {Shape.FINDINGS: (), Shape.REVIEW: ("score",), Shape.TESTS: ("coverage",)}


def measures_of(shape: Shape) -> tuple[str, ...]:
    """Name what is given besides findings."""
    return _OF_SHAPE[shape]


def accepted(shape: Shape | None, own: Mapping[str, Json] | None = None) -> dict[str, Json]:
    """Give the schema that a reply must fit; None: of a checker, which may give every measure and must give none."""
    extra = extra_names(own)
    allowed = MEASURES if shape is None or _is_open(own) else (*_OF_SHAPE[shape], *extra)
    required = () if shape is None else _REQUIRED[shape]
    ours: dict[str, Any] = {"findings": {"type": "array", "items": FINDING}, "summary": SUMMARY}
    # What counts is checked by us, whoever allowed it.
    ours |= {name: schema for name, schema in MEASURES.items() if name in allowed}
    return {
        "type": "object",
        "properties": {**dict.fromkeys(extra, True), **ours},
        "required": ["findings", *required],
        "additionalProperties": _is_open(own),
    }


def extra_names(own: Mapping[str, Json] | None) -> tuple[str, ...]:
    """Name the keys that the user's own schema speaks of."""
    given = own or {}
    properties, required = given.get("properties"), given.get("required")
    named = list(properties) if isinstance(properties, Mapping) else []
    named += required if isinstance(required, list) else []
    return tuple(dict.fromkeys(str(name) for name in named))


def _is_open(own: Mapping[str, Json] | None) -> bool:
    """Whether the user's own schema says outright that there may be other keys; silence does not count."""
    extra = (own or {}).get("additionalProperties", False)
    return extra is True or isinstance(extra, Mapping)

"""JSON as it goes over the wire: written fast, read from strangers with care."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from muster.domain.canonical import Json

MALFORMED = "_malformed"  # holds the arguments of a tool call that are not a JSON object, as they came

_encode = msgspec.json.Encoder().encode


def to_json(value: dict[str, Any]) -> bytes:
    """Write a body; a text that is not Unicode goes out escaped, for the provider to judge."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def arguments_of(text: Any) -> Mapping[str, Json]:
    """Read the arguments of a tool call, which a model wrote and may have got wrong."""
    if isinstance(text, dict):
        return text
    try:
        found = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, TypeError, UnicodeError):
        found = None
    return found if isinstance(found, dict) else {MALFORMED: text}

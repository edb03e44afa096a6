"""The form of what leaves a use case for a door: frozen values, from which JSON and its schema come.

A part of a value that not every answer has is UNSET where it is missing, and is left out of JSON; null is told where
a part has no value. Values are Structs and no dataclasses, since names in JSON can differ from those in Python.
"""

import json
from datetime import UTC, datetime
from typing import Any, TypeAlias, dataclass_transform

from muster.text import typed
from muster.text.typed import UNSET, UnsetType, asdict, field, replace

__all__ = [
    "UNSET",
    "Document",
    "UnsetType",
    "View",
    "asdict",
    "field",
    "instant",
    "json_bytes",
    "moment",
    "plain",
    "replace",
]

Document: TypeAlias = dict[str, Any]  # JSON of an answer that a door takes apart, cuts or puts together


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class View(typed.Struct, frozen=True):
    """What doors tell about something; its own parts come before those of bases that are declared with `kw_only`."""

    def builtins(self) -> Document:
        """Return it as a dict of plain values."""
        shown: Document = typed.to_builtins(self)
        return shown


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON; half a surrogate pair, which UTF-8 does not have, is escaped."""
    try:
        return typed.encode(value)
    except UnicodeEncodeError:
        return json.dumps(typed.to_builtins(value)).encode()


def plain(view: View) -> Document:
    """Return a view as the JSON that doors send, for those that show only parts of it."""
    shown: Document = json.loads(json_bytes(view))
    return shown


def moment(at: float | None) -> str | None:
    """Return a time in UTC, as ISO 8601."""
    return None if at is None else instant(at)


def instant(at: float) -> str:
    """Return a time that is known in UTC, as ISO 8601."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")

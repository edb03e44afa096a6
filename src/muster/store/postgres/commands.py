"""Statements whose rows nobody reads, sent straight to libpq: a cursor of psycopg takes twice the CPU for them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import errors, pq

_DONE = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)
_CHANGING = (b"INSERT", b"UPDATE", b"DELETE")
_LAST_WORDS = ("FATAL", "PANIC")  # severities after which the server ends the session

_UNKNOWN, _BOOL, _BYTES, _INT8, _FLOAT8 = 0, 16, 17, 20, 701  # numbers of PostgreSQL's types

Encoding = tuple[int, Callable[[Any], bytes | None]]


def _encode_text(value: str) -> bytes:
    found = value.encode()
    if b"\0" in found:  # libpq would end the text there
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return found


# One type for all whole numbers: else the server would prepare a statement for every combination of sizes.
_ENCODINGS: Mapping[type, Encoding] = {
    str: (_UNKNOWN, _encode_text),
    int: (_INT8, lambda value: b"%d" % value),
    float: (_FLOAT8, lambda value: repr(value).encode()),
    bool: (_BOOL, lambda value: b"t" if value else b"f"),
    bytes: (_BYTES, lambda value: value),
    type(None): (_UNKNOWN, lambda value: None),
}


def _encoding_of(kind: type) -> Encoding:
    """Return how values of a class are sent, such as those of an enum of words."""
    for known, encoding in _ENCODINGS.items():
        if issubclass(kind, known):
            return encoding
    raise psycopg.ProgrammingError(f"a parameter is of the type {kind.__name__}, which no query has")


class Commands:
    """Runs statements on a session, one at a time; raises what psycopg raises."""

    def __init__(self, raw: "psycopg.Connection[Any]") -> None:
        self._raw, self._libpq = raw, raw.pgconn
        self._prepared: dict[tuple[bytes, tuple[int, ...]], bytes] = {}

    def run(self, text: bytes, values: Sequence[Any] = (), *, prepare: bool = False) -> int:
        """Run a statement and return how many rows it changed; one that is prepared is kept by the server."""
        encodings = [_ENCODINGS.get(type(value)) or _encoding_of(type(value)) for value in values]
        encoded = [encode(value) for (_, encode), value in zip(encodings, values, strict=True)]
        types = tuple(kind for kind, _ in encodings)
        formats = [int(kind == _BYTES) for kind in types] if _BYTES in types else None
        if prepare:
            result = self._libpq.exec_prepared(self._name(text, types), encoded, formats)  # type: ignore[arg-type]
        elif values:
            result = self._libpq.exec_params(text, encoded, types, formats)
        else:
            result = self._libpq.exec_(text)  # which may hold several statements
        self._require_done(result)
        changes = (result.command_status or b"").startswith(_CHANGING)
        return result.command_tuples or 0 if changes else 0

    def _name(self, text: bytes, types: tuple[int, ...]) -> bytes:
        """Return the name under which the server has a statement for values of these types."""
        name = self._prepared.get((text, types))
        if name is None:
            name = b"muster_%d" % len(self._prepared)
            self._require_done(self._libpq.prepare(name, text, types))
            self._prepared[text, types] = name
        return name

    def _require_done(self, result: "pq.abc.PGresult") -> None:
        if result.status in _DONE:
            return
        error = errors.error_from_result(result)
        # Without a code it is libpq that says so: there is no server any more, which it may notice only later.
        if error.sqlstate is None or error.diag.severity_nonlocalized in _LAST_WORDS:
            self._raw.close()
        raise error

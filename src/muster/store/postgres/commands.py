"""Statements sent straight to libpq, in a pipeline: those whose results nobody waits for go out with the next one.

A round trip for each statement would cost the writing thread far more than the statements do: after every one it has
to get the interpreter lock back from the event loop.
"""

import select
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Transformer

_DONE = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)
_CHANGING = (b"INSERT", b"UPDATE", b"DELETE")
_LAST_WORDS = ("FATAL", "PANIC")  # severities after which the server ends the session

_UNKNOWN, _BOOL, _BYTES, _INT8, _FLOAT8 = 0, 16, 17, 20, 701  # numbers of PostgreSQL's types

Encoding = tuple[int, Callable[[Any], bytes | None]]
Result = pq.abc.PGresult
Expectation = tuple[int, Callable[[], Exception]]  # how many rows a statement must change, and what if it does not


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


def changed_by(result: Result) -> int:
    """Return how many rows a statement changed."""
    changes = (result.command_status or b"").startswith(_CHANGING)
    return result.command_tuples or 0 if changes else 0


class Commands:
    """Sends statements to the server of a session and receives their results; raises what psycopg raises."""

    def __init__(self, raw: "psycopg.Connection[Any]", changes: int = 0) -> None:
        self._raw, self._libpq = raw, raw.pgconn
        self.changes = changes  # rows changed so far
        self._rows = Transformer(raw)
        self._sending, self._receiving = select.poll(), select.poll()
        self._sending.register(self._libpq.socket, select.POLLIN | select.POLLOUT)
        self._receiving.register(self._libpq.socket, select.POLLIN)
        self._used: set[tuple[bytes, tuple[int, ...]]] = set()
        self._prepared: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._awaited: list[Expectation | None] = []  # of what was sent

    def send(
        self, text: bytes, values: Sequence[Any] = (), *, keep: bool = False, must: Expectation | None = None
    ) -> None:
        """Send a statement with the next one that is waited for; with `keep` the server prepares it at its second use.

        If it then has not changed as many rows as it `must`, that error is raised.
        """
        encodings = [_ENCODINGS.get(type(value)) or _encoding_of(type(value)) for value in values]
        encoded = [encode(value) for (_, encode), value in zip(encodings, values, strict=True)]
        types = tuple(kind for kind, _ in encodings)
        formats = [int(kind == _BYTES) for kind in types] if _BYTES in types else None
        name = self._name(text, types) if keep else None
        try:
            if not self._awaited:
                self._libpq.enter_pipeline_mode()
            if name is None:
                self._libpq.send_query_params(text, encoded, types, formats)
            else:
                self._libpq.send_query_prepared(name, encoded, formats)
        except psycopg.Error:
            self._raw.close()  # there is no server any more: nothing else can fail here
            raise
        self._awaited.append(must)

    def flush(self) -> Sequence[Result]:
        """Wait for everything that was sent and return its results; raises the first error."""
        if not self._awaited:
            return ()
        awaited, self._awaited = self._awaited, []
        results = self._receive()
        for result, must in zip(results, awaited, strict=False):  # the server skips what follows an error
            self._require_done(result)
            changed = changed_by(result)
            self.changes += changed
            if must is not None and changed != must[0]:
                raise must[1]()
        return results

    def _receive(self) -> Sequence[Result]:
        """Receive the results of a pipeline, and leave it."""
        results: list[Result] = []
        ended = False  # the results of one statement end with None
        try:
            self._libpq.pipeline_sync()
            while True:
                self._await_result()
                result = self._libpq.get_result()
                if result is None and ended:  # which libpq may not know yet
                    raise psycopg.OperationalError("the server ended the connection")
                ended = result is None
                if result is not None and result.status == pq.ExecStatus.PIPELINE_SYNC:
                    self._libpq.exit_pipeline_mode()
                    return results
                if result is not None:
                    results.append(result)
        except BaseException as error:
            self._raw.close()  # also when it is interrupted: what is still to come would be taken for another's results
            for result in results if isinstance(error, psycopg.Error) else ():
                self._require_done(result)  # the server's last words say more than that it is gone
            raise

    def _await_result(self) -> None:
        """Wait until there is a result: here, since libpq would keep the interpreter lock meanwhile."""
        while self._libpq.flush():
            self._sending.poll()
            self._libpq.consume_input()
        while self._libpq.is_busy():
            self._receiving.poll()
            self._libpq.consume_input()

    def rows(self, result: Result) -> Sequence[tuple[Any, ...]]:
        """Read the rows of a result."""
        self._rows.set_pgresult(result)
        return self._rows.load_rows(0, result.ntuples, tuple)

    def script(self, text: bytes) -> None:
        """Run a text that may hold several statements, and no values."""
        self.flush()
        self._require_done(self._libpq.exec_(text))

    def _name(self, text: bytes, types: tuple[int, ...]) -> bytes | None:
        """Return the name under which the server has a statement for values of these types."""
        spelled = text, types
        name = self._prepared.get(spelled)
        if name is None and spelled in self._used:
            self.flush()
            name = b"muster_%d" % len(self._prepared)
            self._require_done(self._libpq.prepare(name, text, types))
            self._prepared[spelled] = name
        self._used.add(spelled)
        return name

    def _require_done(self, result: Result) -> None:
        if result.status in _DONE:
            return
        error = errors.error_from_result(result)
        # Without a code it is libpq that says so: there is no server any more, which it may notice only later.
        if error.sqlstate is None or error.diag.severity_nonlocalized in _LAST_WORDS:
            self._raw.close()
        raise error

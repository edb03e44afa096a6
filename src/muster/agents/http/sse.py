"""Server-sent events: bytes in any pieces go in, whole events come out. Pure; knows no provider."""

import re
from typing import NamedTuple

from muster.domain.errors import OutcomeUnknown

MAX_EVENT_BYTES = 16 * 1024 * 1024
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """One event: its name, its data lines joined, and its own id if it has one."""

    name: str
    data: bytes
    id: str | None = None


class EventParser:
    """Remembers what has arrived of the event that is not whole yet."""

    def __init__(self, *, most_bytes: int = MAX_EVENT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._line: list[bytes] = []  # pieces of the unfinished line
        self._line_size = 0
        self._data: list[bytes] = []  # lines of the unfinished event
        self._data_size = 0
        self._name = b""
        self._id: bytes | None = None
        self._after_return = False  # the last byte was "\r": a "\n" that follows belongs to it
        self._at_start = True

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take some bytes and give the events that they finish."""
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_return = False
        if not chunk:
            return []
        self._after_return = chunk.endswith(b"\r")
        first, *others = _LINE_END.split(chunk)
        self._hold(first)
        return self._finish_lines(others) if others else []

    def _hold(self, piece: bytes) -> None:
        self._line.append(piece)
        self._line_size += len(piece)
        if self._line_size + self._data_size > self._most_bytes:
            raise OutcomeUnknown(f"the stream sent an event longer than {self._most_bytes} bytes")

    def _finish_lines(self, others: list[bytes]) -> list[ServerSentEvent]:
        lines = [b"".join(self._line), *others[:-1]]
        self._line, self._line_size = [], 0
        events = [event for line in lines if (event := self._take(line)) is not None]
        self._hold(others[-1])
        return events

    def _take(self, line: bytes) -> ServerSentEvent | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._data_size += len(value)
        elif field == b"event":
            self._name = value
        elif field == b"id" and b"\0" not in value:
            self._id = value
        return None  # comments and `retry` say nothing about an answer

    def _dispatch(self) -> ServerSentEvent | None:
        name, data, id_ = self._name, self._data, self._id
        self._name, self._data, self._data_size, self._id = b"", [], 0, None
        if not data:
            return None
        own = None if id_ is None else id_.decode("utf-8", "replace")
        return ServerSentEvent(name.decode("utf-8", "replace") or "message", b"\n".join(data), own)

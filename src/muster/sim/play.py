"""What goes back over the wire: bytes and waits, decided beforehand and then only played."""

from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache
from http import HTTPStatus
from typing import NamedTuple

JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"
LINES = "application/x-jsonl"
LAST_CHUNK = b"0\r\n\r\n"
SOON = 1e-9  # seconds: just long enough for others to be served first

Headers = Iterable[tuple[str, str]]
Part = tuple[float, bytes]


class Ending(Enum):
    """What happens to the connection after the last byte."""

    KEEP = "keep"  # it serves the next request
    CUT = "cut"  # it is closed in the middle
    HANG = "hang"  # nothing more comes, until the client goes away


def _nothing() -> None:
    pass


class Play(NamedTuple):  # made for every request, and a tuple is made fastest
    """Bytes to write, each after so many seconds, and how it ends; the parts may be made as they are written."""

    parts: Iterable[Part]
    ending: Ending = Ending.KEEP
    ended: Callable[[], None] = _nothing  # called once: played to its end, or the client went away


def say(status: int, body: bytes, headers: Headers = (), kind: str = JSON) -> bytes:
    """Spell a whole answer."""
    return b"%b\r\ncontent-length: %d\r\n\r\n%b" % (_head(status, kind, headers), len(body), body)


def open_stream(headers: Headers = (), kind: str = EVENTS) -> bytes:
    """Spell the head of an answer that comes in chunks."""
    return _head(200, kind, headers) + b"\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Spell one chunk of a stream."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def at_once(data: bytes) -> Play:
    """Play an answer without waiting."""
    return Play(parts=((0.0, data),))


def _head(status: int, kind: str, headers: Headers) -> bytes:
    more = "".join(f"\r\n{name}: {value}" for name, value in headers)
    return f"{_first_line(status)}\r\ncontent-type: {kind}{more}".encode("latin-1")


@cache
def _first_line(status: int) -> str:
    # 529 is a provider's own.
    phrase = HTTPStatus(status).phrase if status in HTTPStatus.__members__.values() else "Overloaded"
    return f"HTTP/1.1 {status} {phrase}"

"""HTTP/1.1 responses as bytes, for servers that write to a connection themselves. Requests are read elsewhere."""

from collections.abc import Iterable
from functools import cache
from http import HTTPStatus

JSON = "application/json"

Headers = Iterable[tuple[str, str]]


def whole_response(status: int, body: bytes, headers: Headers = (), kind: str = JSON) -> bytes:
    """Return a response with its whole body."""
    return b"%b\r\ncontent-length: %d\r\n\r\n%b" % (response_head(status, kind, headers), len(body), body)


def response_head(status: int, kind: str, headers: Headers = ()) -> bytes:
    """Return the status line and headers; without the line that ends them, as the length of the body follows."""
    more = "".join(f"\r\n{name}: {value}" for name, value in headers)
    return f"{_status_line(status)}\r\ncontent-type: {kind}{more}".encode("latin-1")


@cache
def _status_line(status: int) -> str:
    # 529 is a provider's own.
    phrase = HTTPStatus(status).phrase if status in HTTPStatus.__members__.values() else "Overloaded"
    return f"HTTP/1.1 {status} {phrase}"

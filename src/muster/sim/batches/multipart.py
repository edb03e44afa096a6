"""Forms with files in them, as browsers and SDKs upload them (RFC 7578)."""

from collections.abc import Iterator
from email.message import Message
from email.parser import BytesHeaderParser
from typing import NamedTuple

from muster.sim.http import HttpRequest
from muster.sim.protocols.ask import SimRefusal

FORM = "multipart/form-data"


class Field(NamedTuple):
    """One field of a form; a file has a filename."""

    name: str
    filename: str | None
    content: bytes


def fields_of(request: HttpRequest) -> dict[str, Field]:
    """Read the form of a request, or refuse it."""
    boundary = _boundary(request)
    if boundary is None:
        raise SimRefusal(400, f"the content type is not {FORM} with a boundary")
    return {field.name: field for field in _fields(request.body, boundary)}


def without_boundary(request: HttpRequest) -> bytes:
    """Return a body without the boundary, which differs every time the same form is sent."""
    boundary = _boundary(request)
    return request.body if boundary is None else request.body.replace(boundary, b"")


def _boundary(request: HttpRequest) -> bytes | None:
    head = Message()
    head["content-type"] = request.headers.get(b"content-type", b"").decode("latin-1")
    boundary = head.get_boundary()
    return boundary.encode("latin-1") if boundary and head.get_content_type() == FORM else None


def _fields(body: bytes, boundary: bytes) -> Iterator[Field]:
    # A boundary counts only at the beginning of a line; the first line has none before it.
    mark = b"\r\n--" + boundary
    start = len(mark) - 2 if body.startswith(mark[2:]) else _after(body, mark, 0)
    while not body.startswith(b"--", start):
        end = body.find(mark, start)
        if end < 0:
            raise SimRefusal(400, "the form ends without its last boundary")
        yield _field(body, start, end)
        start = end + len(mark)


def _after(body: bytes, mark: bytes, start: int) -> int:
    found = body.find(mark, start)
    if found < 0:
        raise SimRefusal(400, "the form does not have its boundary")
    return found + len(mark)


def _field(body: bytes, start: int, end: int) -> Field:
    blank = body.find(b"\r\n\r\n", start, end)
    if blank < 0:
        raise SimRefusal(400, "a field of the form has no head")
    head = BytesHeaderParser().parsebytes(body[start:blank].strip())
    name = head.get_param("name", header="content-disposition")
    if not isinstance(name, str):
        raise SimRefusal(400, "a field of the form has no name")
    return Field(name, head.get_filename(), body[blank + 4 : end])

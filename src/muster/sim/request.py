"""What is read of a request before its protocol: its key, its size, its JSON, and forms with files (RFC 7578)."""

import hashlib
from collections.abc import Iterator
from email.message import Message
from email.parser import BytesHeaderParser
from typing import NamedTuple

from muster.domain.canonical import Json
from muster.sim.http import HttpRequest
from muster.sim.protocols.ask import SimRefusal
from muster.text import typed

_decode = typed.decode


def check_key(request: HttpRequest, wanted: str | None) -> bytes:
    """Return the key of a request, or refuse one without a key or with another than the one that is wanted."""
    given = request.headers.get(b"x-api-key", b"").strip()
    if not given:
        scheme, _, given = request.headers.get(b"authorization", b"").strip().partition(b" ")
        given = given.strip() if scheme.lower() == b"bearer" else b""
    if not given:
        raise SimRefusal(401, "no key was sent: use x-api-key or Authorization: Bearer")
    if wanted is not None and given != wanted.encode():
        raise SimRefusal(401, "this key is not the one that is wanted")
    return given


def account_of(key: bytes) -> str:
    """Name an account without giving its key away."""
    return hashlib.sha256(b"muster.sim:" + key).hexdigest()[:12]


def body_of(request: HttpRequest) -> dict[str, Json]:
    """Return the body of a request, or refuse it as too large or malformed."""
    if request.oversized:
        raise SimRefusal(413, "the request is larger than this server takes")
    return read_body(request.body)


def read_body(data: bytes | typed.Raw) -> dict[str, Json]:
    """Read a JSON object, or refuse it as malformed."""
    try:
        body = _decode(data)
    except (typed.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SimRefusal(400, f"the request body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise SimRefusal(400, "the request body is not a JSON object")
    return body


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

"""What is checked at the door, before a request is understood: its key, its size, its JSON."""

import hashlib

import msgspec

from muster.domain.canonical import Json
from muster.sim.http import HttpRequest
from muster.sim.protocols.ask import SimRefusal

_decode = msgspec.json.Decoder().decode


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


def read_body(data: bytes | msgspec.Raw) -> dict[str, Json]:
    """Read a JSON object, or refuse it as malformed."""
    try:
        body = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SimRefusal(400, f"the request body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise SimRefusal(400, "the request body is not a JSON object")
    return body

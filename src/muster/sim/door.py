"""What is checked at the door, before a request is understood: its key, its size, its JSON."""

import msgspec

from muster.domain.canonical import Json
from muster.sim.ask import Refused
from muster.sim.http import HttpRequest

_decode = msgspec.json.Decoder().decode


def check_key(request: HttpRequest, wanted: str | None) -> None:
    """Refuse a request without a key, or with another than the one that is wanted."""
    given = request.headers.get(b"x-api-key", b"").strip()
    if not given:
        scheme, _, given = request.headers.get(b"authorization", b"").strip().partition(b" ")
        given = given.strip() if scheme.lower() == b"bearer" else b""
    if not given:
        raise Refused(401, "no key was sent: use x-api-key or Authorization: Bearer")
    if wanted is not None and given != wanted.encode():
        raise Refused(401, "this key is not the one that is wanted")


def body_of(request: HttpRequest) -> dict[str, Json]:
    """Give the body of a request, or refuse it as too large or malformed."""
    if request.oversized:
        raise Refused(413, "the request is larger than this server takes")
    try:
        body = _decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, f"the request body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refused(400, "the request body is not a JSON object")
    return body

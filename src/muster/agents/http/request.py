"""Requests: the address, the origin, and a head that is spelled once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from muster import __version__
from muster.agents.http.encoding import ACCEPTED
from muster.domain.errors import BadConfiguration
from muster.domain.network import Proxy

_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9._~:%-]+")  # a name, or an address of numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOrigin:
    """One server; requests to the same one share connections."""

    place: str  # "https://api.example.org:8443", for messages; equal for equal origins
    host: str  # without brackets
    port: int
    secure: bool

    @property
    def authority(self) -> str:
        """Return what a Host header says."""
        return self.place.partition("://")[2]


def split_url(url: str) -> tuple[HttpOrigin, SplitResult]:
    """Take an address apart, or raise BadConfiguration when nothing can be sent there."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        port = _DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    except (ValueError, KeyError):
        raise _refused(url) from None
    if "@" in parts.netloc or not _HOST.fullmatch(host):
        raise _refused(url)
    return HttpOrigin(
        place=_place(parts.scheme, host, port), host=host, port=port, secure=parts.scheme == "https"
    ), parts


def _place(scheme: str, host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}" if port == _DEFAULT_PORTS[scheme] else f"{scheme}://{shown}:{port}"


def _refused(url: str) -> BadConfiguration:
    shown = url.rpartition("@")[2]  # what stands before it may be a password
    return BadConfiguration(
        f"{shown!r} is not an address to send a request to", suggestions=("write it like https://host",)
    )


_DEFAULTS = {"user-agent": f"muster/{__version__}", "accept": "*/*"}

# They say where a message ends, what becomes of the connection, and what we can decode.
_OURS = {"accept-encoding", "connection", "content-length", "expect", "te", "trailer", "transfer-encoding", "upgrade"}

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_BAD_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # a line break would begin a header of its own
_AS_IT_IS = "/%:@!$&'()*+,;=~?"


class RequestHead(NamedTuple):
    """All of a request but its body."""

    origin: HttpOrigin
    text: bytes  # every line but the length of the body
    proxy: Proxy | None = None  # that reads it; one that leads a tunnel sees nothing of it

    def __repr__(self) -> str:
        return f"RequestHead({self.origin.place!r})"  # the text holds keys

    def through(self, proxy: Proxy) -> "RequestHead":
        """Return the head for a proxy that passes the request on: the whole address, and who asks for it."""
        method, _, rest = self.text.partition(b" ")
        own = f"proxy-authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
        text = b"%b %b%b%b" % (method, self.origin.place.encode(), rest, own.encode())
        return RequestHead(self.origin, text, proxy)

    def request(self, body: bytes) -> bytes:
        """Spell the whole request."""
        return b"%bcontent-length: %d\r\n\r\n%b" % (self.text, len(body), body)

    def before(self, size: int) -> bytes:
        """Spell what goes out before a body of so many bytes."""
        return b"%bcontent-length: %d\r\n\r\n" % (self.text, size)

    def alone(self) -> bytes:
        """Spell a request that has no body."""
        return self.text + b"\r\n"


@lru_cache(maxsize=256)
def head_of(url: str, headers: tuple[tuple[str, str], ...], method: str = "POST") -> RequestHead:
    """Spell the head of a request, or raise BadConfiguration when an address or a header cannot be sent."""
    origin, parts = split_url(url)
    given = {name.lower(): _checked(name, value) for name, value in headers}
    fields = {"host": origin.authority, **_DEFAULTS, **given, "accept-encoding": ACCEPTED}
    lines = [f"{method} {_target(parts)} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    try:
        return RequestHead(origin, "\r\n".join([*lines, ""]).encode())
    except UnicodeEncodeError:
        raise BadConfiguration(f"a header for {origin.place} is not Unicode") from None


def _target(parts: SplitResult) -> str:
    query = f"?{parts.query}" if parts.query else ""
    return quote((parts.path or "/") + query, safe=_AS_IT_IS)


def _checked(name: str, value: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadConfiguration(f"{name!r} cannot be the name of a header")
    if name.lower() in _OURS:
        raise BadConfiguration(f"the header {name!r} cannot be set: the connection needs its own")
    if _BAD_VALUE.search(value):  # not shown: it may be a key
        raise BadConfiguration(f"the header {name!r} has a line break or another control character in it")
    return value


# Names that only a private network can resolve: a container's neighbour, this machine, the local domain.
_PRIVATE_ENDINGS = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


def lowered(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return headers by their names in small letters, so that one of the user's takes the place of ours."""
    return {name.lower(): value for name, value in (headers or {}).items()}


def with_query(url: str, query: Mapping[str, str] | None) -> str:
    """Return an address with a query."""
    return f"{url}?{urlencode(query)}" if query else url


def join(base_url: str, path: str) -> str:
    """Return the full address, or raise BadConfiguration when the base is no place to send a key to."""
    try:
        parts = urlsplit(base_url)
        host = parts.hostname
        _ = parts.port  # raises when it is no number
    except ValueError:
        raise _refused_address(base_url, "is not an address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise _refused_address(base_url, "must begin with https:// or http:// and name a host")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadConfiguration(
            "an address (base_url or url) must not contain a name, a password, a query or a fragment"
        )
    if parts.scheme == "http" and not _private(host):
        raise _refused_address(base_url, "would send the key unencrypted over the internet", "use https://")
    return _joined(parts, path)


def below(base_url: str, url: str) -> str:
    """Return an address that somebody else named, or raise BadConfiguration when the key may not go there."""
    (ours, base), (theirs, parts) = split_url(base_url), split_url(url)
    inside = parts.path.startswith(base.path.rstrip("/") + "/")
    if ours != theirs or not inside or {".", ".."} & set(unquote(parts.path).split("/")):
        shown = f"{theirs.place}{parts.path}"  # a query may hold a secret
        raise BadConfiguration(
            f"{shown!r} is not below the base address {base_url!r}, so the key is not sent there",
            suggestions=("set the base address to the one that the provider itself uses",),
        )
    return url


def _joined(parts: SplitResult, path: str) -> str:
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}{path}"


def _private(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_ENDINGS)
    return address.is_loopback or address.is_private


def _refused_address(base_url: str, why: str, *suggestions: str) -> BadConfiguration:
    shown = base_url.rpartition("@")[2]  # what stands before it may be a password
    return BadConfiguration(f"the address {shown!r} (base_url or url) {why}", suggestions=suggestions)

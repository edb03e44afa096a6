"""Where a request goes: scheme, host and port of an address."""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from muster.domain.errors import BadConfiguration

_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9._~:%-]+")  # a name, or an address of numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One server; requests to the same one share connections."""

    place: str  # "https://api.example.org:8443", for messages; equal for equal origins
    host: str  # without brackets
    port: int
    secure: bool

    @property
    def authority(self) -> str:
        """Give what a Host header says."""
        return self.place.partition("://")[2]


def split_url(url: str) -> tuple[Origin, SplitResult]:
    """Take an address apart, or raise BadConfiguration when nothing can be sent there."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        port = _DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    except (ValueError, KeyError):
        raise _refused(url) from None
    if "@" in parts.netloc or not _HOST.fullmatch(host):
        raise _refused(url)
    return Origin(place=_place(parts.scheme, host, port), host=host, port=port, secure=parts.scheme == "https"), parts


def _place(scheme: str, host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}" if port == _DEFAULT_PORTS[scheme] else f"{scheme}://{shown}:{port}"


def _refused(url: str) -> BadConfiguration:
    shown = url.rpartition("@")[2]  # what stands before it may be a password
    return BadConfiguration(
        f"{shown!r} is no address to send a request to", suggestions=("write it like https://host",)
    )

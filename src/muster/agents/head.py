"""The head of a request: its address and headers, checked and spelled once, then used for every call."""

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import SplitResult, quote

from muster import __version__
from muster.agents.origin import Origin, split_url
from muster.domain.errors import BadConfiguration

_DEFAULTS = {"user-agent": f"muster/{__version__}", "accept": "*/*"}

# They say where a message ends and what becomes of the connection; we do not decompress either.
_OURS = {"accept-encoding", "connection", "content-length", "expect", "te", "trailer", "transfer-encoding", "upgrade"}

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_BAD_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # a line break would begin a header of its own
_AS_IT_IS = "/%:@!$&'()*+,;=~?"


class Head(NamedTuple):
    """All of a request but its body."""

    origin: Origin
    text: bytes  # every line but the length of the body

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
def head_of(url: str, headers: tuple[tuple[str, str], ...], method: str = "POST") -> Head:
    """Spell the head of a request, or raise BadConfiguration when an address or a header cannot be sent."""
    origin, parts = split_url(url)
    given = {name.lower(): _checked(name, value) for name, value in headers}
    fields = {"host": origin.authority, **_DEFAULTS, **given, "accept-encoding": "identity"}
    lines = [f"{method} {_target(parts)} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    try:
        return Head(origin, "\r\n".join([*lines, ""]).encode())
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

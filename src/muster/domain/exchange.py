"""Exchanges: the request of a foreign program as it came, and the answer of its upstream as it was passed on.

What is stored of either are pieces by digest, so that the beginning that the requests of a conversation share is
stored once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.domain.canonical import JsonObject

PIECE_TYPE = "application/zlib"  # of a piece of a body, as it is stored


@dataclass(frozen=True, slots=True, kw_only=True)
class WireFacts:
    """What a body says that decides about its cost."""

    model: str = ""
    limit: int | None = None  # tokens of each answer; None: the body names none
    answers: int = 1  # that it asks for
    tier: str = ""  # of service; empty: it names none
    stream: bool = False
    usage_asked: bool = False  # its stream is to end with the usage
    options: tuple[int, int] | None = None  # where its `stream_options` begin and end in the body
    hidden: str = ""  # the field by which it has input that is not in the body; empty: it has none
    server_tool: str = ""  # a tool that the provider runs at a price of its own; empty: it has none
    background: bool = False  # it is to be answered later


NO_FACTS = WireFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """The request of a foreign program: what it asks for, and its bytes, which are passed on unchanged."""

    method: str
    path: str  # below the address of the upstream: "/v1/messages"
    query: str = ""
    facts: WireFacts = NO_FACTS
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # passed on; neither identity nor stored
    body: bytes = field(default=b"", repr=False)
    digest: str = ""  # of the body
    question: str = ""  # names what the body asks, however it asks it
    pieces: tuple[str, ...] = ()  # of the body as it is stored
    names: Mapping[str, str] = field(default_factory=dict)  # that the client gave: session, agent, prompt

    def told(self) -> JsonObject:
        """Return what is stored of it, and makes its identity."""
        told: JsonObject = {
            "method": self.method,
            "path": self.path,
            "bytes": len(self.body),
            "digest": self.digest,
            "pieces": list(self.pieces),
        }
        more: dict[str, str] = {"query": self.query, "model": self.facts.model}
        told |= {name: value for name, value in more.items() if value}
        if self.question:
            told["asks"] = self.question
        return told | {"names": dict(self.names)} if self.names else told


@dataclass(frozen=True, slots=True, kw_only=True)
class WireAnswer:
    """The answer of an upstream: its status, the headers that say how to read it, and what is stored of its body."""

    status: int
    headers: Mapping[str, str]
    size: int  # bytes
    pieces: tuple[str, ...] = ()

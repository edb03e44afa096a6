"""Embeddings of foreign programs: nothing but their usage is read. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from muster.agents.faults import unreadable
from muster.agents.model import ModelWire
from muster.agents.openai import answer
from muster.agents.payload import reader, tokens_of
from muster.agents.usage import Ceiling, Impossible, charge_of
from muster.domain.call import Reply, Request, Timings, Usage
from muster.domain.errors import InvalidRequest, WireError
from muster.text import typed


class _Counts(typed.Struct, gc=False):
    prompt_tokens: Any = None


class _Embeddings(typed.Struct, gc=False):
    data: list[Any]
    model: str | None = None
    usage: _Counts | None = None


_embeddings = reader(_Embeddings)


def _usage(counts: _Counts | None) -> Usage | Impossible | None:
    if counts is None:
        return None
    tokens = tokens_of(counts.prompt_tokens)
    return Impossible.USAGE if tokens is None else Usage(input=tokens[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingsWire(ModelWire):
    """The embeddings API, for one model."""

    def encode(self, request: Request, *, stream: bool) -> bytes:
        """Refuse: nothing here asks for embeddings by itself."""
        raise InvalidRequest("embeddings are only passed on")

    def decode(self, body: bytes, ceiling: Ceiling, timings: Timings) -> Reply:
        """Read what was used."""
        try:
            told = _embeddings(body)
        except (typed.DecodeError, UnicodeError):
            raise unreadable("sent an answer that has no embeddings", self.account, body) from None
        charge = charge_of(_usage(told.usage), self.pricing, ceiling, "", ())
        return Reply(
            text="",
            usage=charge.usage,
            cost=charge.cost,
            lane=charge.lane,
            model=told.model or "",
            timings=timings,
            trace=charge.trace,
        )

    def fault(self, status: int, headers: Mapping[str, str], body: bytes, sent: bytes) -> WireError:
        """Read a failure."""
        return answer.fault(status, headers, body, self.account)

    def fold(self, ceiling: Ceiling) -> NoReturn:
        """Refuse: embeddings are not streamed."""
        raise unreadable("sent a stream where it has none", self.account, b"")

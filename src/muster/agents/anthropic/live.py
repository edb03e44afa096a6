"""Models of Anthropic, asked live."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from muster.agents.anthropic import answer, wire
from muster.agents.anthropic.answer import (
    READ,
    UNTIMED,
    AnthropicMessage,
    AnthropicUsage,
    Block,
    reply_of,
    trouble_in,
    without_status,
)
from muster.agents.faults import Account, error_of, unreadable
from muster.agents.http.client import Http
from muster.agents.http.request import join, lowered, with_query
from muster.agents.http.sse import ServerSentEvent
from muster.agents.model import ModelAgent, ModelWire, TimedPricing
from muster.agents.payload import arguments_of, joined, reader, tokens_of
from muster.agents.usage import Ceiling, Stray, newer_counts
from muster.domain.agent import Profile
from muster.domain.call import Reply, Request, Timings
from muster.domain.canonical import JsonObject
from muster.domain.errors import OutcomeUnknown, WireError
from muster.domain.price import Pricing
from muster.domain.provider import ANTHROPIC, PROVIDERS, Provider
from muster.text import typed


class _Delta(typed.Struct, gc=False):
    type: str | None = None
    text: Any = None
    partial_json: Any = None
    thinking: Any = None
    signature: Any = None
    stop_reason: str | None = None


class _Step(typed.Struct, gc=False):
    type: str
    index: int = 0
    message: Any = None
    content_block: Block | None = None
    delta: _Delta | None = None
    usage: AnthropicUsage | Stray = None


class _Opening(typed.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    usage: AnthropicUsage | Stray = None


_step = reader(_Step)


class AnthropicStream:
    """Takes the events of one stream in order; `done` once the message is whole."""

    def __init__(
        self, pricing: Pricing, ceiling: Ceiling, account: Account, model: str = "", provider: str = ANTHROPIC
    ) -> None:
        self._pricing, self._ceiling, self._account = pricing, ceiling, account
        self._model, self._provider = model, provider
        self._opening: _Opening | None = None
        self._counts: AnthropicUsage | Stray = None
        self._blocks: dict[int, Block] = {}
        self._pieces: dict[int, list[str]] = {}  # text, or JSON of a tool's input, by block
        self._raw: dict[int, JsonObject] = {}  # blocks that are no text and no use of a tool, as they came
        self._stop_reason: str | None = None
        self.done = False

    def feed(self, event: ServerSentEvent) -> str:
        """Take one event and give the text that it adds."""
        if event.name == "error":
            raise self._error(event)
        try:
            return self._take(_step(event.data), event.data)
        except (typed.DecodeError, typed.ValidationError, UnicodeError):
            raise unreadable("sent an event that is not part of a message", self._account, event.data) from None

    def finish(self, timings: Timings = UNTIMED) -> Reply:
        """Return the reply, or say that the stream ended too early."""
        if not self.done or self._opening is None:
            raise OutcomeUnknown(f"{self._account.place}: the stream ended before the message did")
        said = self._said(self._opening)
        raw = [self._written(index, block) for index, block in zip(sorted(self._blocks), said.content, strict=True)]
        return reply_of(
            said,
            self._pricing,
            self._ceiling,
            timings,
            raw=raw if self._raw else None,
            model=self._model,
            provider=self._provider,
        )

    def _take(self, step: _Step, data: bytes) -> str:
        match step.type:
            case "message_start":
                self._opening = typed.convert(step.message, _Opening)
                self._counts = _begun(self._opening.usage)
            case "content_block_start" if step.content_block is not None:
                self._blocks[step.index] = step.content_block
                if step.content_block.type not in READ:
                    self._raw[step.index] = typed.decode(data)["content_block"]
                return self._add(step.index, step.content_block.text) if step.content_block.type == "text" else ""
            case "content_block_delta" if step.delta is not None:
                return self._grow(step.index, step.delta)
            case "message_delta":
                self._stop_reason = step.delta.stop_reason if step.delta else None
                self._counts = newer_counts(self._counts, step.usage)
            case "message_stop":
                self.done = True
        return ""

    def _grow(self, index: int, delta: _Delta) -> str:
        if delta.type == "text_delta":
            return self._add(index, delta.text)
        if delta.type == "input_json_delta":
            self._add(index, delta.partial_json)
        elif delta.type == "thinking_delta":
            self._add(index, delta.thinking)
        elif delta.type == "signature_delta" and index in self._raw:
            self._raw[index]["signature"] = delta.signature
        return ""  # citations

    def _add(self, index: int, piece: Any) -> str:
        if not isinstance(piece, str):
            return ""
        self._pieces.setdefault(index, []).append(piece)
        return piece

    def _said(self, opening: _Opening) -> AnthropicMessage:
        return AnthropicMessage(
            content=[self._block(index, block) for index, block in sorted(self._blocks.items())],
            id=opening.id,
            model=opening.model,
            stop_reason=self._stop_reason,
            usage=self._counts,
        )

    def _block(self, index: int, block: Block) -> Block:
        written = joined(self._pieces.get(index, ()))
        if block.type == "text":
            return Block(type="text", text=written)
        if block.type == "tool_use" and written:
            return Block(type="tool_use", id=block.id, name=block.name, input=arguments_of(written))
        return block

    def _written(self, index: int, block: Block) -> JsonObject:
        """Return a block as it would have come in one piece."""
        raw, written = self._raw.get(index), joined(self._pieces.get(index, ()))
        if raw is None and block.type == "text":
            return {"type": "text", "text": block.text}
        if raw is None:
            return {"type": block.type, "id": block.id, "name": block.name, "input": block.input or {}}
        if raw.get("type") == "thinking":
            return {**raw, "thinking": f"{raw.get('thinking') or ''}{written}"}
        return {**raw, "input": arguments_of(written)} if written else raw

    def _error(self, event: ServerSentEvent) -> WireError:
        trouble = trouble_in(event.data)
        if trouble is None:
            return unreadable("sent an error in the stream", self._account, event.data)
        error = error_of(without_status(trouble), self._account)
        # Once the message has begun, tokens were counted: the same error no longer means that nothing is owed.
        return error if self._opening is None else OutcomeUnknown(error.message, status=error.status)


def _begun(counts: AnthropicUsage | Stray) -> AnthropicUsage | Stray:
    """Return the counts with which a message begins, without that of its answer: the end of the message has it."""
    if not isinstance(counts, AnthropicUsage) or tokens_of(counts.output_tokens) is None:
        return counts
    return typed.replace(counts, output_tokens=0)


BASE_URL = "https://api.anthropic.com"
KEY_VARIABLE = "ANTHROPIC_API_KEY"
VERSION = "2023-06-01"


VERTEX_VERSION = "2026-10-21"  # of the body, where the model stands in the address


def _path(provider: Provider, model: str, *, stream: bool) -> str:
    """Return where a request goes: with some providers the model and the kind of answer stand in the address."""
    if not provider.raw_predict:
        return "/v1/messages"
    return f"/{quote(model, safe='@')}:{'streamRawPredict' if stream else 'rawPredict'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicWire(ModelWire):
    """The Messages API, for one model."""

    def encode(self, request: Request, *, stream: bool) -> bytes:
        """Write a request."""
        raw = VERTEX_VERSION if self.provider.raw_predict else ""
        return wire.encode(
            request, self.model, stream=stream, tier=self.pricing.asked or "", geo=self.pricing.geo, raw=raw
        )

    def decode(self, body: bytes, ceiling: Ceiling, timings: Timings) -> Reply:
        """Read a success, or raise the error that hides in it."""
        return answer.decode(body, self.pricing, ceiling, self.account, timings, self.model, self.provider.name)

    def fault(self, status: int, headers: Mapping[str, str], body: bytes, sent: bytes) -> WireError:
        """Read a failure of a request with the body `sent`."""
        return answer.fault(status, headers, body, self.account)

    def fold(self, ceiling: Ceiling) -> AnthropicStream:
        """Begin to read a stream."""
        return AnthropicStream(self.pricing, ceiling, self.account, self.model, self.provider.name)


class AnthropicAgent(ModelAgent):
    """A model behind Anthropic's Messages API."""

    def __init__(
        self,
        *,
        profile: Profile,
        model: str,
        key: str,
        pricing: Pricing,
        http: Http,
        key_variable: str = KEY_VARIABLE,
        base_url: str = BASE_URL,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        unpriced_ok: bool = False,
        timed_pricing: TimedPricing | None = None,
        near: Sequence[str] = (),
        provider: Provider = PROVIDERS[ANTHROPIC],
    ) -> None:
        account = Account(place=profile.name, variable=key_variable, key=key)

        def address(stream: bool) -> str:
            return with_query(join(base_url, _path(provider, model, stream=stream)), query)

        super().__init__(
            profile=profile,
            wire=AnthropicWire(model=model, pricing=pricing, account=account, provider=provider),
            url=address(False),
            stream_url=address(True),
            headers={**provider.key_style.headers(key), "anthropic-version": VERSION, **lowered(headers)},
            account=account,
            pricing=pricing,
            http=http,
            unpriced_ok=unpriced_ok,
            timed_pricing=timed_pricing,
            near=near,
        )

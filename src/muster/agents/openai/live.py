"""Models of OpenAI and of every compatible server, asked live; with the wire of chat completions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.agents.base import OnDelta
from muster.agents.faults import Account, error_of, unreadable
from muster.agents.http.client import Http
from muster.agents.http.request import join, lowered, with_query
from muster.agents.http.sse import ServerSentEvent
from muster.agents.model import ModelAgent, ModelWire, TimedPricing, Wire
from muster.agents.openai import answer, wire
from muster.agents.openai.answer import (
    UNTIMED,
    Choice,
    Completion,
    Function,
    OpenAIMessage,
    OpenAIToolCall,
    OpenAIUsage,
    broken,
    error_answer_of,
    reply_of,
    text_of,
)
from muster.agents.openai.responses_live import ResponsesWire
from muster.agents.openai.wire import LimitSpelling
from muster.agents.payload import joined, reader
from muster.agents.usage import Ceiling, Stray, newer_counts
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request, Timings
from muster.domain.errors import InvalidRequest, OutcomeUnknown, Respelled, WireError
from muster.domain.price import Pricing
from muster.domain.provider import OPENAI, PROVIDERS, MaxTokens, Provider
from muster.domain.wire import WireChoice, WireName
from muster.text import typed


class _Part(typed.Struct, gc=False):
    index: int = 0
    delta: OpenAIMessage | None = None
    finish_reason: str | None = None
    error: Any = None


class _Chunk(typed.Struct, gc=False):
    choices: list[_Part] | None = None
    id: str | None = None
    model: str | None = None
    usage: OpenAIUsage | Stray = None
    service_tier: Any = None
    error: Any = None


_chunk = reader(_Chunk)


class _GrowingCall:
    """A tool call that is being written."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self._arguments: list[str] = []

    def add(self, piece: OpenAIToolCall) -> None:
        """Take a piece of it."""
        self.id = self.id or piece.id
        if piece.function is not None:
            self.name = self.name or piece.function.name
            if isinstance(piece.function.arguments, str):
                self._arguments.append(piece.function.arguments)

    def whole(self) -> OpenAIToolCall:
        """Return the call."""
        return OpenAIToolCall(id=self.id, function=Function(name=self.name, arguments=joined(self._arguments)))


class OpenAIStream:
    """Takes the events of one stream in order; `done` once the completion is whole."""

    def __init__(self, pricing: Pricing, ceiling: Ceiling, account: Account) -> None:
        self._pricing, self._ceiling, self._account = pricing, ceiling, account
        self._completion = Completion()
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._uses: list[_GrowingCall] = []
        self._finish_reason: str | None = None
        self._thought = False
        self.done = False

    def feed(self, event: ServerSentEvent) -> str:
        """Take one event and give the text that it adds."""
        if event.data.strip() == b"[DONE]":
            self.done = True
            return ""
        try:
            chunk = _chunk(event.data)
        except (typed.DecodeError, UnicodeError):
            raise unreadable("sent an event that is not part of a completion", self._account, event.data) from None
        if chunk.error is not None:
            raise self._error(chunk.error)
        self._note(chunk)
        return "".join([self._take(part) for part in chunk.choices or () if part.index == 0])

    def finish(self, timings: Timings = UNTIMED) -> Reply:
        """Return the reply, or say that the stream ended too early."""
        # Some servers never send "[DONE]", and some give no reason; with neither nobody says that it ended.
        if self._finish_reason is None and not self.done:
            raise OutcomeUnknown(f"{self._account.place}: the stream ended before the completion did")
        said = OpenAIMessage(
            content=joined(self._text),
            refusal=joined(self._refusal) or None,
            reasoning=self._thought,
            tool_calls=[use.whole() for use in sorted(self._uses, key=lambda use: use.index)],
        )
        choice = Choice(message=said, finish_reason=self._finish_reason)
        return reply_of(self._completion, choice, self._pricing, self._ceiling, timings)

    def _note(self, chunk: _Chunk) -> None:
        self._completion.id = self._completion.id or chunk.id
        self._completion.model = self._completion.model or chunk.model
        self._completion.service_tier = chunk.service_tier or self._completion.service_tier
        self._completion.usage = newer_counts(self._completion.usage, chunk.usage)

    def _take(self, part: _Part) -> str:
        if part.error is not None:
            raise broken(part.error, self._account)
        self._finish_reason = part.finish_reason or self._finish_reason
        if part.delta is None:
            return ""
        for use in part.delta.tool_calls or ():
            self._grow(use)
        self._thought = self._thought or part.delta.thought
        text, refusal = text_of(part.delta.content), part.delta.refusal or ""
        self._text.append(text)
        self._refusal.append(refusal)
        return text + refusal

    def _grow(self, piece: OpenAIToolCall) -> None:
        use = self._use_of(piece)
        if use is None:
            use = _GrowingCall(len(self._uses) if piece.index is None else piece.index)
            self._uses.append(use)
        use.add(piece)

    def _use_of(self, piece: OpenAIToolCall) -> "_GrowingCall | None":
        """Return the call that a piece goes on with; None: it begins one.

        Some servers leave the index out, or send 0 for every call: then a new id begins a new call, and without ids a
        name does. With an index it needs both, since others send a new id with every piece.
        """
        named = bool(piece.function and piece.function.name)
        if piece.index is not None:
            known = next((use for use in reversed(self._uses) if use.index == piece.index), None)
            begins = named and piece.id and known is not None and known.id not in (None, piece.id)
            return None if begins else known
        if piece.id:
            return next((use for use in self._uses if use.id == piece.id), None)
        last = self._uses[-1] if self._uses else None
        return None if last is not None and named and last.name else last

    def _error(self, trouble: Any) -> WireError:
        begun = self._completion.id is not None  # a piece came before; tokens, hidden ones too, may be owed
        return broken(trouble, self._account) if begun else error_of(error_answer_of(trouble), self._account)


BASE_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIWire(ModelWire):
    """Chat completions, for one model."""

    spelling: LimitSpelling

    def encode(self, request: Request, *, stream: bool) -> bytes:
        """Write a request."""
        return wire.encode(
            request,
            self.model,
            stream=stream,
            max_tokens=self.spelling.field,
            tier=self.pricing.asked or "",
            provider=self.provider,
        )

    def decode(self, body: bytes, ceiling: Ceiling, timings: Timings) -> Reply:
        """Read a success, or raise the error that hides in it."""
        return answer.decode(body, self.pricing, ceiling, self.account, timings)

    def fault(self, status: int, headers: Mapping[str, str], body: bytes, sent: bytes) -> WireError:
        """Read a failure of a request with the body `sent`; one about the name of the limit is worth a second try."""
        error = answer.fault(status, headers, body, self.account)
        if type(error) is not InvalidRequest or not self.spelling.learn(sent, error.message):
            return error
        message = f"{error.message}; the limit is sent as {self.spelling.field} from now on"
        return Respelled(message, status=error.status, request_id=error.request_id)

    def fold(self, ceiling: Ceiling) -> OpenAIStream:
        """Begin to read a stream."""
        return OpenAIStream(self.pricing, ceiling, self.account)


_PATHS = {WireName.CHAT: "/chat/completions", WireName.RESPONSES: "/responses"}


class OpenAIAgent(ModelAgent):
    """A model behind one form of OpenAI's API; without a key when the server wants none."""

    def __init__(
        self,
        *,
        profile: Profile,
        model: str,
        pricing: Pricing,
        http: Http,
        key: str = "",
        key_variable: str = KEY_VARIABLE,
        base_url: str = BASE_URL,
        spelling: LimitSpelling | None = None,
        provider: Provider = PROVIDERS[OPENAI],
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        unpriced_ok: bool = False,
        timed_pricing: TimedPricing | None = None,
        near: Sequence[str] = (),
        form: WireName = WireName.CHAT,
    ) -> None:
        account = Account(place=profile.name, variable=key_variable, key=key)
        wire: Wire
        if form is WireName.RESPONSES:
            reasons = profile.traits.reasons
            wire = ResponsesWire(model=model, pricing=pricing, account=account, reasons=reasons, provider=provider)
        else:
            spelled = spelling or LimitSpelling(MaxTokens.NEW)
            wire = OpenAIWire(model=model, pricing=pricing, account=account, spelling=spelled, provider=provider)
        super().__init__(
            profile=profile,
            wire=wire,
            url=with_query(join(base_url, _PATHS[form]), query),
            headers={**provider.key_style.headers(key), **lowered(headers)},
            account=account,
            pricing=pricing,
            http=http,
            unpriced_ok=unpriced_ok,
            timed_pricing=timed_pricing,
            near=near,
        )


class ChoosingAgent:
    """A model that is asked in the form of the API that each request needs; what is quoted is what is sent."""

    def __init__(self, choice: WireChoice, forms: Mapping[WireName, ModelAgent]) -> None:
        self._choice, self._forms = choice, forms

    @property
    def profile(self) -> Profile:
        """Return the profile, which is that of both forms."""
        return self._forms[self._choice.name].profile

    def quote(self, request: Request) -> Quote:
        """Return the maximum cost of one attempt."""
        return self._forms[self._choice.of(request)].quote(request)

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Ask once and give the whole reply; with `on_delta`, hand over text as it is written."""
        return await self._forms[self._choice.of(request)].call(request, timeouts, on_delta)

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        for agent in self._forms.values():
            await agent.close()

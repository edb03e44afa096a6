"""A provider that is asked for foreign programs: bytes go there and back unchanged, and only their cost is read."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from muster.agents.base import OnDelta, WireSink
from muster.agents.http.client import BatchHttp, ResponseStream
from muster.agents.http.request import join
from muster.agents.http.sse import ServerSentEvent
from muster.agents.model import StreamAssembler, Wire
from muster.agents.upstream.dialects import AnswerForm, UpstreamDialect
from muster.agents.upstream.facts import with_usage
from muster.agents.upstream.frames import FrameCutter, is_last, is_usage_only
from muster.agents.upstream.headers import passed_back, passed_on
from muster.agents.upstream.limits import most_input, most_output
from muster.agents.usage import Ceiling
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request, Timings
from muster.domain.errors import BadConfiguration, InvalidRequest, WireError
from muster.domain.exchange import WireFacts, WireRequest
from muster.domain.money import NOTHING
from muster.domain.price import Pricing
from muster.domain.script import BYTES_PER_TOKEN

MAX_ANSWER = 64 * 1024 * 1024  # bytes
HIDDEN_TOKENS = 1_024  # that a provider adds to a request by itself, such as its text before tools
_FREE = Reply(text="")

FormWire = Callable[[AnswerForm, Pricing], Wire]  # the wire that reads answers of a form, at prices
TieredPricing = Callable[[str], Pricing]  # the prices where a request asks for a tier


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamLimits:
    """What the operator says of models that no table knows: tokens, by model."""

    output: Mapping[str, int] = field(default_factory=dict)
    context: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)  # without slots: it is an agent, and one for each model
class Upstream:
    """One model of a provider, as foreign programs ask it; without a model, what can be asked for nothing."""

    profile: Profile
    price_list: str  # what the tables call the provider
    base_url: str
    path: Callable[[WireRequest], str]  # below the address
    defaults: Mapping[str, str]  # headers that a client may say otherwise
    headers: Mapping[str, str] = field(repr=False)  # with the key
    query: Mapping[str, str] = field(repr=False)
    http: BatchHttp
    wire: FormWire
    pricing: TieredPricing
    dialect: Callable[[str, str], UpstreamDialect | None]  # by method and path
    limits: UpstreamLimits
    tells_usage: bool  # a stream of chat completions tells its usage when it is asked to
    unpriced_ok: bool = False
    clock: Callable[[], float] = time.monotonic

    def quote(self, request: Request) -> Quote:
        """Return the maximum cost of an exchange, or raise BadConfiguration when nobody can tell it."""
        wire = request.wire
        assert wire is not None  # noqa: S101 - nothing else is asked of it
        if self._form(wire) is AnswerForm.FREE:
            return Quote(most=NOTHING, tokens=0)
        ceiling, pricing = self._ceiling(wire), self.pricing(wire.facts.tier)
        tokens = len(wire.body) // BYTES_PER_TOKEN + ceiling.output
        if pricing.reserved:
            return Quote(most=pricing.most(ceiling.input, ceiling.output), tokens=tokens)
        if not self.unpriced_ok:
            raise self._no_price(wire.facts)
        return Quote(most=NOTHING, tokens=tokens)

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Refuse: it passes on what others ask, and asks nothing by itself."""
        raise InvalidRequest(f"{self.profile.name} is an upstream of the gateway; ask it through that")

    async def exchange(self, request: WireRequest, timeouts: Timeouts, sink: WireSink) -> Reply:
        """Pass a request on and its answer back, and return what the answer says."""
        headers = {**self.defaults, **passed_on(request.headers), **self.headers}
        url = self._address(request)
        began = self.clock()
        if request.method == "GET":
            async with self.http.fetch(url, headers, timeouts) as flow:
                return await self._take(request, flow, sink, began)
        adds_usage = self._adds_usage(request)
        body = with_usage(request.body, request.facts) if adds_usage else request.body
        async with self.http.stream(url, headers, body, timeouts) as flow:
            return await self._take(request, flow, sink, began, adds_usage=adds_usage)

    async def close(self) -> None:
        """Do nothing: the client is that of all agents."""

    async def _take(
        self, request: WireRequest, flow: ResponseStream, sink: WireSink, began: float, *, adds_usage: bool = False
    ) -> Reply:
        sink.begin(flow.status, passed_back(flow.headers))
        kind = flow.headers.get("content-type", "").partition(";")[0].strip().lower()
        if 200 <= flow.status < 300 and kind == "text/event-stream":
            return await self._stream(request, flow, sink, began, adds_usage=adds_usage)
        body = await flow.beginning(MAX_ANSWER)
        sink.hold(body)
        sink.end()
        form, timings = self._form(request), Timings(wire=self.clock() - began)
        wire = self._wire(request)
        if not 200 <= flow.status < 300:
            raise wire.fault(flow.status, flow.headers, body, b"")
        return _FREE if form is AnswerForm.FREE else _told(wire.decode(body, self._ceiling(request), timings))

    async def _stream(
        self, request: WireRequest, flow: ResponseStream, sink: WireSink, began: float, *, adds_usage: bool
    ) -> Reply:
        cutter, reading = FrameCutter(), _Reading(self._wire(request).fold(self._ceiling(request)))
        form, put = self._form(request), sink.write
        async for chunk in flow.chunks:
            for frame, events in cutter.feed(chunk):
                if any(is_last(event, form, request.facts.answers) for event in events):
                    put = sink.hold
                if adds_usage and any(map(is_usage_only, events)):
                    sink.keep(frame)
                else:
                    put(frame)
                reading.take(events, self.clock() - began)
            if reading.done:
                break  # the answer is whole; what a server does after it must not lose it
        if cutter.rest:
            sink.hold(cutter.rest)
        sink.end()
        return reading.reply(self.clock() - began)

    def _address(self, request: WireRequest) -> str:
        query = "&".join(part for part in (request.query, urlencode(self.query)) if part)
        return join(self.base_url, self.path(request)) + (f"?{query}" if query else "")

    def _adds_usage(self, request: WireRequest) -> bool:
        facts = request.facts
        return self.tells_usage and facts.stream and not facts.usage_asked and self._form(request) is AnswerForm.CHAT

    def _form(self, request: WireRequest) -> AnswerForm:
        dialect = self.dialect(request.method, request.path)
        return AnswerForm.FREE if dialect is None else dialect.form

    def _wire(self, request: WireRequest) -> Wire:
        return self.wire(self._form(request), self.pricing(request.facts.tier))

    def _ceiling(self, request: WireRequest) -> Ceiling:
        """Bound what a request uses: a token is never shorter than a byte; what is not in the body is all it can be."""
        facts = request.facts
        read = len(request.body) + HIDDEN_TOKENS
        if facts.hidden:
            read = max(
                read, self._most(most_input, self.limits.context, facts, "context", f"the size of {facts.hidden}")
            )
        if self._form(request) is AnswerForm.EMBEDDINGS:
            return Ceiling(input=read, output=0)
        limit = facts.limit
        if limit is None:
            limit = self._most(most_output, self.limits.output, facts, "max_output", "how much may be written")
        return Ceiling(input=read, output=limit * facts.answers)

    def _most(
        self,
        known: Callable[[str, str, Mapping[str, int]], int | None],
        told: Mapping[str, int],
        facts: WireFacts,
        setting: str,
        what: str,
    ) -> int:
        found = known(self.price_list, facts.model, told)
        if found is None:
            raise BadConfiguration(
                f"{what} is not in the request, and nothing is known of {facts.model!r} that bounds it",
                suggestions=(f'set it in muster.toml: [gateway] {setting} = {{ "{facts.model}" = TOKENS }}',),
            )
        return found

    def _no_price(self, facts: WireFacts) -> BadConfiguration:
        tier = f" in the tier {facts.tier!r}" if facts.tier else ""
        return BadConfiguration(
            f"no price is known for {self.profile.name}{tier}, so a request has no maximum cost",
            suggestions=(
                "name an agent with a price as the upstream, in [gateway] of muster.toml",
                "or allow uncounted costs: --allow-unpriced",
            ),
        )


class _Reading:
    """Reads a stream beside passing it on: what cannot be read is the client's all the same."""

    def __init__(self, fold: StreamAssembler) -> None:
        self._fold = fold
        self._first: float | None = None  # seconds until the first event
        self._error: WireError | None = None

    @property
    def done(self) -> bool:
        """Return whether the answer is whole."""
        return self._fold.done and self._error is None

    def take(self, events: list[ServerSentEvent], seconds: float) -> None:
        """Take events as far as they can be read."""
        self._first = seconds if self._first is None and events else self._first
        if self._error is not None:
            return
        try:
            for event in events:
                self._fold.feed(event)
        except WireError as error:
            self._error = error

    def reply(self, seconds: float) -> Reply:
        """Return what the answer said, or raise why that is not known."""
        if self._error is not None:
            raise self._error
        return _told(self._fold.finish(Timings(first_token=self._first, wire=seconds)))


def _told(reply: Reply) -> Reply:
    """Return what an answer says, without what is stored with its bytes."""
    return replace(reply, content=None)

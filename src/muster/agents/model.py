"""A model behind an API: what all providers share. Their rooms add the wire: encode, decode, fault and fold."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from muster.agents.base import DeltaCollector, OnDelta
from muster.agents.faults import Account
from muster.agents.http.client import Http, ResponseStream
from muster.agents.http.request import head_of
from muster.agents.http.sse import EventParser, ServerSentEvent
from muster.agents.usage import Ceiling, ceiling_of, max_tokens_of
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request, Timings, ask
from muster.domain.errors import BadConfiguration, InvalidRequest, WireError, did_you_mean
from muster.domain.media import MediaFile, filled
from muster.domain.money import NOTHING
from muster.domain.price import Pricing
from muster.domain.provider import Provider
from muster.domain.script import BYTES_PER_TOKEN

TimedPricing = Callable[[float, float], Pricing]  # the prices of the time between two moments
DAY = 86_400.0  # seconds: the dearest price of a day is reserved

STREAM_ABOVE = 16_384  # max_tokens: an answer this long may outlive what providers allow a plain request

_PROBE = ask("")
_HEADERS = {"content-type": "application/json"}


class StreamAssembler(Protocol):
    """Takes the events of one stream and gives the reply at its end."""

    done: bool

    def feed(self, event: ServerSentEvent) -> str:
        """Take one event and give the text that it adds."""

    def finish(self, timings: Timings) -> Reply:
        """Return the reply, or raise OutcomeUnknown when the stream ended too early."""


class Wire(Protocol):
    """How one provider spells requests and answers; pure."""

    def encode(self, request: Request, *, stream: bool) -> bytes:
        """Write a request."""

    def decode(self, body: bytes, ceiling: Ceiling, timings: Timings) -> Reply:
        """Read a success, or raise the error that hides in it."""

    def fault(self, status: int, headers: Mapping[str, str], body: bytes, sent: bytes) -> WireError:
        """Read a failure of a request with the body `sent`."""

    def fold(self, ceiling: Ceiling) -> StreamAssembler:
        """Begin to read a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWire:
    """What every wire knows: the model, its prices, whose account it is, and the dialect of its provider."""

    model: str
    pricing: Pricing
    account: Account
    provider: Provider


class ModelAgent:
    """An agent that asks a model over HTTP and closes its client; agents that share one are closed together."""

    def __init__(
        self,
        *,
        profile: Profile,
        wire: Wire,
        url: str,
        headers: Mapping[str, str],
        account: Account,
        pricing: Pricing,
        http: Http,
        unpriced_ok: bool = False,
        stream_url: str = "",  # where another than `url` answers in pieces
        timed_pricing: TimedPricing | None = None,  # where prices depend on the time
        near: Sequence[str] = (),  # models with a price that may have been meant
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._profile, self._wire, self._account = profile, wire, account
        self._stream_url = stream_url or url
        self._url, self._headers, self._http = url, {**_HEADERS, **headers}, http
        self._pricing, self._unpriced_ok, self._near = pricing, unpriced_ok, tuple(near)
        self._timed_pricing, self._now = timed_pricing, now
        self._clock = clock
        self._drafts = BodyCache()
        # A request for a stream is longer than the same one for a whole answer, by always the same bytes.
        self._more = len(wire.encode(_PROBE, stream=True)) - len(wire.encode(_PROBE, stream=False))
        head_of(url, tuple(self._headers.items()))  # refuses now what can never be sent

    @property
    def profile(self) -> Profile:
        """Return the profile: the name, its defaults and its pace."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Return the maximum cost of one attempt: every byte a token at the highest rate, and all of max_tokens."""
        pricing, place = self._pricing_for(DAY), self._account.place
        if pricing.standard is None and not self._unpriced_ok:
            raise _no_price(place, self._near)
        is_priced = bool(pricing.reserved)
        if pricing.standard is not None and not is_priced:
            raise _no_tier(place, pricing.asked or "", tuple(pricing.tiers))
        body = self._wire.encode(request, stream=False)
        if not request.has_media:  # it is sent as another value, which has the bytes
            self._drafts.keep(request, body)
        ceiling = self._ceiling(request, len(body) + self._more)
        most = pricing.most(ceiling.input, ceiling.output) if is_priced else NOTHING
        shown = self._profile.media_tokens(request)
        tokens = len(body) // BYTES_PER_TOKEN + shown + ceiling.output
        return Quote(most=most, tokens=tokens, standard=pricing.flex_instead_of)

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Ask once and give the whole reply; with `on_delta`, hand over text as it is written."""
        draft = self._drafts.take(request)
        if on_delta is not None or _streams(request):
            return await self._call_streaming(request, timeouts, on_delta)
        body = draft or self._wire.encode(request, stream=False)
        began = self._clock()
        answer = await self._http.post(self._url, self._headers, with_media(body, request), timeouts)
        if not 200 <= answer.status < 300:
            raise self._wire.fault(answer.status, answer.headers, answer.body, body)
        wire = self._priced(began - self._clock())
        return wire.decode(answer.body, self._ceiling(request, len(body)), Timings(wire=self._clock() - began))

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        await self._http.close()

    async def _call_streaming(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None) -> Reply:
        body = self._wire.encode(request, stream=True)
        deltas = DeltaCollector(self._clock, on_delta)
        async with self._http.stream(self._stream_url, self._headers, with_media(body, request), timeouts) as flow:
            if not 200 <= flow.status < 300:
                raise self._wire.fault(flow.status, flow.headers, await flow.body(), body)
            wire = self._priced(timeouts.call)  # it may go on for that long
            return await self._read(wire, flow, self._ceiling(request, len(body)), deltas)

    def _ceiling(self, request: Request, size: int) -> Ceiling:
        """Bound what a request uses whose body has so many bytes, besides those of images and documents."""
        return ceiling_of(request, size + self._profile.media_tokens(request))

    def _pricing_for(self, seconds: float) -> Pricing:
        """Return the prices of so many seconds from now on, or until now."""
        if self._timed_pricing is None:
            return self._pricing
        now = self._now()
        return self._timed_pricing(min(now, now + seconds), max(now, now + seconds))

    def _priced(self, seconds: float) -> Wire:
        """Return the wire with the prices of so many seconds from now on, or until now."""
        if self._timed_pricing is None:
            return self._wire
        wire: Wire = replace(cast(Any, self._wire), pricing=self._pricing_for(seconds))
        return wire

    async def _read(self, wire: Wire, flow: ResponseStream, ceiling: Ceiling, deltas: DeltaCollector) -> Reply:
        if flow.headers.get("content-type", "").startswith("application/json"):
            body = await flow.body()  # a server that does not stream, or an error
            reply = wire.decode(body, ceiling, deltas.timings())
            deltas.add(reply.text)
            return reply
        fold, parser = wire.fold(ceiling), EventParser()
        async for chunk in flow.chunks:
            for event in parser.feed(chunk):
                deltas.add(fold.feed(event))
            if fold.done:
                break  # the answer is whole; what a server does after it must not lose it
        return fold.finish(deltas.timings())


def with_media(body: bytes, request: Request) -> bytes:
    """Return a body as it is sent: with the bytes of its images and documents."""
    if not request.has_media:
        return body
    files = {each.digest: each.data for each in request.media if isinstance(each, MediaFile)}
    missing = next((each for each in request.media if each.digest not in files), None)
    if missing is not None:
        raise InvalidRequest(f"the {missing.label} has no bytes to send")
    return filled(body, files)


def _streams(request: Request) -> bool:
    return max_tokens_of(request) > STREAM_ABOVE


def _no_price(place: str, near: Sequence[str]) -> BadConfiguration:
    return BadConfiguration(
        f"no price is known for {place}, so it has no maximum cost",
        suggestions=(
            *did_you_mean(near),
            "set its price in muster.toml: price = { input = 1.00, output = 5.00 } (dollars per million tokens)",
            "or allow uncounted costs: --allow-unpriced",
        ),
    )


def _no_tier(place: str, tier: str, known: Sequence[str]) -> BadConfiguration:
    return BadConfiguration(
        f"no price is known for {place} in the tier {tier}, so it has no maximum cost",
        suggestions=(
            "set it in muster.toml: tier_price = { input = 1.00, output = 5.00 } (dollars per million tokens)",
            *([f"or use the tier {' or '.join(known)}"] if known else []),
        ),
    )


MAX_CACHED_BODIES = 512  # requests
MAX_CACHED_BODY = 16_384  # bytes: a longer one is written again rather than kept by every call that waits


class BodyCache:
    """A few bodies by their requests; the oldest is forgotten first."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Request, bytes]] = {}  # the request is held, so that its number stays its own

    def keep(self, request: Request, body: bytes) -> None:
        """Keep the body of a request."""
        if len(body) > MAX_CACHED_BODY:
            return
        self._kept[id(request)] = request, body
        if len(self._kept) > MAX_CACHED_BODIES:
            del self._kept[next(iter(self._kept))]

    def take(self, request: Request) -> bytes | None:
        """Return the body of a request, once; None when it is not here."""
        kept = self._kept.pop(id(request), None)
        return None if kept is None else kept[1]

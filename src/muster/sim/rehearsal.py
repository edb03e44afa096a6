"""The rehearsal itself: takes a live request in either protocol, decides what to play, and counts what is paid.

An answer is counted when its request has arrived, before any latency: like a provider, which goes on computing
and charging when the client has gone away.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

from muster.domain.call import Usage
from muster.domain.canonical import Json
from muster.sim.audit import Audit, AuditLog
from muster.sim.batches.registry import BatchRegistry
from muster.sim.batches.settler import Settler
from muster.sim.faults import Fault, FaultKind, Faults, Op, Plans
from muster.sim.http import HttpRequest
from muster.sim.options import Options
from muster.sim.playback import (
    SILENT,
    Playback,
    at_once,
    headers_of,
    play_silence,
    play_stream,
    play_whole,
    raise_refusal,
    request_id,
)
from muster.sim.protocols.ask import FLEX, Ask, CountingProtocol, SimAnswer, SimRefusal, WireProtocol
from muster.sim.protocols.embeddings import read_embedding, spell_embeddings
from muster.sim.request import body_of, check_key
from muster.sim.responder import Responder, name_of
from muster.text.http_messages import whole_response


class Rehearsal:
    """One server's state: the audit log, the responder, the plans of faults, the batches."""

    def __init__(self, options: Options, clock: Callable[[], float]) -> None:
        self.options = options
        self.book = AuditLog(options.prices, options.price_of)
        self.plans = Plans(options.faults)
        self.numbers = count(1)
        self.responder = Responder(options, self.book)
        settler = Settler(self.responder, self.book, self.plans, self.numbers)
        self.registry = BatchRegistry(options, self.book, self.plans, settler, clock)
        self._latency = options.latency_ms / 1000

    def reset(self) -> None:
        """Start over: audit, cache, batches, and how far the faults have got."""
        self.book.clear()
        self.responder.forget()
        self.registry.clear()
        self.plans.play(self.plans.faults)

    def plan(self, faults: Faults) -> None:
        """Play other faults from now on."""
        self.plans.play(faults)

    def catch_up(self) -> Iterator[None]:
        """Do the work of batches whose time has come, in small steps."""
        return self.registry.settle()

    def audit(self) -> Audit:
        """Return the audit as it stands, with all that is due."""
        for _ in self.catch_up():
            pass
        return self.book.audit(self.registry.entries())

    def perform(
        self, dialect: WireProtocol, request: HttpRequest, keep: Callable[[SimAnswer], None] | None = None
    ) -> Playback:
        """Decide what a request gets; `keep` is told each answer that is sent."""
        self.book.requests += 1
        number = next(self.numbers)
        try:
            return self._answer(dialect, request, number, keep)
        except SimRefusal as refused:
            return self.refuse(dialect, refused, number)

    def list_models(self, dialect: WireProtocol, spelled: bytes, request: HttpRequest) -> Playback:
        """Answer which models there are; asking costs nothing."""
        self.book.requests += 1
        try:
            if dialect.wants_key:
                check_key(request, self.options.key)
        except SimRefusal as refused:
            return self.refuse(dialect, refused, next(self.numbers))
        return at_once(whole_response(200, spelled))

    def count_tokens(self, dialect: CountingProtocol, request: HttpRequest) -> Playback:
        """Answer how many tokens go in with a request; asking costs nothing."""
        return self._at_once(dialect, request, dialect.count)

    def embed(self, dialect: WireProtocol, request: HttpRequest) -> Playback:
        """Answer with the embeddings of texts, which are paid."""

        def spell(body: dict[str, Json]) -> bytes:
            ask = read_embedding(body)
            self.book.pay(name_of(body), ask.model, Usage(input=ask.tokens))
            return spell_embeddings(ask)

        return self._at_once(dialect, request, spell)

    def _at_once(
        self, dialect: WireProtocol, request: HttpRequest, spell: Callable[[dict[str, Json]], bytes]
    ) -> Playback:
        """Answer at once, without faults, latency or capacity."""
        self.book.requests += 1
        number = next(self.numbers)
        try:
            check_key(request, self.options.key)
            spelled = spell(body_of(request))
        except SimRefusal as refused:
            return self.refuse(dialect, refused, number)
        self.book.status(200)
        return at_once(whole_response(200, spelled, headers_of(dialect, number)))

    def unknown(self, dialect: WireProtocol, request: HttpRequest) -> Playback:
        """Refuse a path that the provider does not have."""
        self.book.requests += 1
        where = f"{request.method.decode()} {request.path.decode('latin-1')}"
        return self.refuse(dialect, SimRefusal(404, f"no such endpoint: {where}"), next(self.numbers))

    def _answer(
        self, dialect: WireProtocol, request: HttpRequest, number: int, keep: Callable[[SimAnswer], None] | None
    ) -> Playback:
        if dialect.wants_key:
            check_key(request, self.options.key)
        body = body_of(request)
        ask = self.responder.read(dialect, body)
        self._check_capacity()
        name = name_of(body)
        fault = self._pick(ask, name)
        if fault is None:
            return self._play(dialect, ask, self._said(ask, name, number, keep), None)
        self.book.fault(fault.name)
        raise_refusal(fault)
        said = self._said(ask, name, number, keep) if fault.paid else None
        if said is None or fault.kind in SILENT:
            return self._enter(play_silence(fault, self._latency))
        if fault.kind is FaultKind.ZERO_USAGE:
            return self._play(dialect, ask, replace(said, usage=Usage()), None)
        return self._play(dialect, ask, said, fault)

    def _said(self, ask: Ask, name: str, number: int, keep: Callable[[SimAnswer], None] | None) -> SimAnswer:
        said = self.responder.answer(ask, name, number)
        if keep is not None:
            keep(said)
        return said

    def _pick(self, ask: Ask, name: str) -> Fault | None:
        flex, live = self.plans.of(Op.FLEX), self.plans.of(Op.LIVE)
        fault = None
        if not flex.idle and self.responder.tier_of(ask) == FLEX:
            fault = flex.pick(name, ask.model, ask.text)
        if fault is None and not live.idle:
            fault = live.pick(name, ask.model, ask.text)
        return fault

    def _play(self, dialect: WireProtocol, ask: Ask, said: SimAnswer, fault: Fault | None) -> Playback:
        self.book.status(200)
        headers = headers_of(dialect, said.number)
        if ask.stream:
            return self._enter(play_stream(dialect.events(said), headers, self._latency, fault))
        return self._enter(play_whole(dialect.whole(said), headers, self._latency, fault))

    def _enter(self, play: Playback) -> Playback:
        self.book.enter()
        return play._replace(ended=self.book.leave)

    def refuse(self, dialect: WireProtocol, refused: SimRefusal, number: int) -> Playback:
        """Refuse a request in the words of its provider."""
        self.book.status(refused.status)
        error = dialect.error(refused, request_id(number))
        return at_once(whole_response(refused.status, error, headers_of(dialect, number, refused)))

    def _check_capacity(self) -> None:
        faults = self.plans.faults
        capacity = self.options.capacity if faults.capacity is None else faults.capacity
        if capacity is not None and self.book.in_flight >= capacity:
            raise SimRefusal(429, f"more than {capacity} requests at a time", retry_after=faults.retry_after)

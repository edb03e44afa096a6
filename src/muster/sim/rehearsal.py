"""The rehearsal itself: takes a request in either protocol, decides what to play, and counts what is paid.

An answer is counted when its request has arrived, before any latency: like a provider, which goes on computing
and charging when the client has gone away.
"""

from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import count

from muster.domain.call import Stop
from muster.domain.canonical import digest
from muster.domain.script import Line, usage_of
from muster.sim.ask import Ask, Dialect, Refused, Said
from muster.sim.audit import Book
from muster.sim.cache import PrefixCache
from muster.sim.door import body_of, check_key
from muster.sim.faults import Fault, FaultPlan, Faults
from muster.sim.http import HttpRequest
from muster.sim.options import ANY_MODEL, Options
from muster.sim.play import Play, at_once, say
from muster.sim.stage import SILENT, stage_silence, stage_stream, stage_whole

UNDIGESTED = ("stream", "stream_options")
REASONS = {
    400: "this request was refused by the fault plan",
    401: "invalid key, by the fault plan",
    403: "this key may not do that, by the fault plan",
    404: "not found, by the fault plan",
    413: "the request is too large, by the fault plan",
    429: "too many requests, by the fault plan",
    500: "internal server error, by the fault plan",
    529: "overloaded, by the fault plan",
}


class Rehearsal:
    """One server's state: the book, the cache, the plan of faults."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._latency = options.latency_ms / 1000
        self._cache = PrefixCache()
        self._plan = FaultPlan(options.faults)
        self._numbers = count(1)
        self.book = Book(options.prices)

    def reset(self) -> None:
        """Start over: audit, cache, and how far the faults have got."""
        self.book.clear()
        self._cache.clear()
        self._plan = FaultPlan(self._plan.faults)

    def plan(self, faults: Faults) -> None:
        """Play other faults from now on."""
        self._plan = FaultPlan(faults)

    def perform(self, dialect: Dialect, request: HttpRequest) -> Play:
        """Decide what a request gets."""
        self.book.requests += 1
        number = next(self._numbers)
        try:
            return self._answer(dialect, request, number)
        except Refused as refused:
            return self._refuse(dialect, refused, number)

    def unknown(self, dialect: Dialect, request: HttpRequest) -> Play:
        """Refuse a path that the provider does not have."""
        self.book.requests += 1
        where = f"{request.method.decode()} {request.path.decode('latin-1')}"
        return self._refuse(dialect, Refused(404, f"no such endpoint: {where}"), next(self._numbers))

    def _answer(self, dialect: Dialect, request: HttpRequest, number: int) -> Play:
        check_key(request, self._options.key)
        body = body_of(request)
        ask = dialect.read(body)
        self._check_model(ask)
        self._check_capacity()
        name = digest({field: value for field, value in body.items() if field not in UNDIGESTED})
        fault = None if self._plan.idle else self._plan.pick(name, ask.model, ask.text)
        if fault is None:
            return self._stage(dialect, ask, self._say(ask, name, number), None)
        self.book.fault(fault.kind)
        _refuse_honestly(fault)
        said = self._say(ask, name, number) if fault.paid else None
        if said is None or fault.kind in SILENT:
            return self._enter(stage_silence(fault, self._latency))
        return self._stage(dialect, ask, said, fault)

    def _stage(self, dialect: Dialect, ask: Ask, said: Said, fault: Fault | None) -> Play:
        self.book.status(200)
        headers = ((dialect.request_id_header, _request_id(said.number)),)
        if ask.stream:
            return self._enter(stage_stream(dialect.events(said), headers, self._latency, fault))
        return self._enter(stage_whole(dialect.whole(said), headers, self._latency, fault))

    def _enter(self, play: Play) -> Play:
        self.book.enter()
        return play._replace(ended=self.book.leave)

    def _say(self, ask: Ask, name: str, number: int) -> Said:
        line = self._options.script.answer(ask.model, ask.messages, ask.max_tokens)
        line, sequence = _stop_at(line, ask.stop)
        usage = usage_of(ask.messages, ask.system, line)
        if ask.marks:
            usage = self._cache.split(usage, ask.marks)
        self.book.pay(name, ask.model, usage)
        return Said(
            number=number,
            digest=name,
            model=ask.model,
            line=line,
            usage=usage,
            stop_sequence=sequence,
            stream_usage=ask.stream_usage,
        )

    def _refuse(self, dialect: Dialect, refused: Refused, number: int) -> Play:
        self.book.status(refused.status)
        headers = [(dialect.request_id_header, _request_id(number))]
        if refused.retry_after is not None:
            headers.append(("retry-after", f"{refused.retry_after:.3f}".rstrip("0").rstrip(".")))
        return at_once(say(refused.status, dialect.error(refused, _request_id(number)), headers))

    def _check_model(self, ask: Ask) -> None:
        models = self._options.models
        if models != ANY_MODEL and not any(fnmatchcase(ask.model, glob) for glob in models):
            raise Refused(404, f"model: {ask.model} does not exist", code="model_not_found", param="model")
        most = self._options.context_tokens
        if most is None:
            return
        tokens = usage_of(ask.messages, ask.system, Line()).input
        if tokens > most:
            message = f"prompt is too long: {tokens} tokens > {most} maximum"
            raise Refused(400, message, code="context_length_exceeded", param="messages")

    def _check_capacity(self) -> None:
        faults = self._plan.faults
        capacity = self._options.capacity if faults.capacity is None else faults.capacity
        if capacity is not None and self.book.in_flight >= capacity:
            raise Refused(429, f"more than {capacity} requests at a time", retry_after=faults.retry_after)


def _request_id(number: int) -> str:
    return f"req_sim_{number:08d}"


def _refuse_honestly(fault: Fault) -> None:
    status = fault.kind.status
    if status is not None:
        raise Refused(status, REASONS[status], retry_after=fault.retry_after)


def _stop_at(line: Line, sequences: tuple[str, ...]) -> tuple[Line, str | None]:
    found = [(line.text.find(sequence), sequence) for sequence in sequences if sequence in line.text]
    if not found:
        return line, None
    place, sequence = min(found)
    return replace(line, text=line.text[:place], tool_calls=(), stop=Stop.SEQUENCE), sequence

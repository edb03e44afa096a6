"""Requests to batches and files: keys, faults, errors; what is asked there is done by the endpoints."""

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from muster.domain.canonical import Json
from muster.sim.faults import REFUSALS, Fault, Op
from muster.sim.http import HttpRequest
from muster.sim.playback import (
    ENDINGS,
    SILENT,
    SOON,
    ConnectionEnd,
    Part,
    Playback,
    headers_of,
    play_lines,
    play_whole,
    raise_refusal,
    request_id,
)
from muster.sim.protocols.ask import SimRefusal, WireProtocol
from muster.sim.rehearsal import Rehearsal
from muster.sim.request import account_of, check_key, without_boundary
from muster.text import typed
from muster.text.http_messages import Headers

_encode = typed.encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request for an endpoint: from whom, and for which batch or file."""

    account: str
    request: HttpRequest
    id: str = ""

    @property
    def query(self) -> dict[str, str]:
        """The fields after the question mark."""
        return dict(parse_qsl(self.request.query.decode("latin-1")))

    @property
    def origin(self) -> str:
        """The address that the client knows this server by."""
        return f"http://{self.request.headers.get(b'host', b'127.0.0.1').decode('latin-1')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAnswer:
    """What an endpoint answers: a JSON value, or lines of a file."""

    body: bytes = b""
    lines: Sequence[bytes] | None = None
    status: int = 200


Work = Generator[None, None, EndpointAnswer]  # yields where others may be served first


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One endpoint of the batch API or of the files API."""

    method: bytes
    path: str  # `{id}` stands for a name
    op: Op
    work: Callable[[Call], Work]


class BatchRouter:
    """Takes requests to the endpoints of one provider."""

    def __init__(self, dialect: WireProtocol, rehearsal: Rehearsal) -> None:
        self._dialect = dialect
        self._rehearsal = rehearsal
        self._book = rehearsal.book
        self._latency = rehearsal.options.latency_ms / 1000

    def serve(self, endpoint: Endpoint, request: HttpRequest, name: str = "") -> Playback:
        """Decide what a request gets; it is worked out while it is played."""
        self._book.requests += 1
        number = next(self._rehearsal.numbers)
        try:
            key = check_key(request, self._rehearsal.options.key)
        except SimRefusal as refused:
            return self._rehearsal.refuse(self._dialect, refused, number)
        call = Call(account=account_of(key), request=request, id=name)
        fault = self._pick(endpoint.op, call)
        ending = ConnectionEnd.KEEP if fault is None else (SILENT | ENDINGS).get(fault.kind, ConnectionEnd.KEEP)
        return Playback(parts=self._perform(endpoint, call, number, fault), ending=ending)

    def _pick(self, op: Op, call: Call) -> Fault | None:
        plan = self._rehearsal.plans.of(op)
        if plan.idle:
            return None
        fault = plan.pick(_name(call) if plan.faults.rates else "", "", "")
        if fault is not None:
            self._book.fault(fault.name)
        return fault

    def _perform(self, endpoint: Endpoint, call: Call, number: int, fault: Fault | None) -> Iterator[Part]:
        refusal = None
        try:
            answer = yield from _yielding(_done(endpoint, call, fault))
        except SimRefusal as refused:
            refusal = refused
            answer = EndpointAnswer(status=refused.status, body=self._dialect.error(refused, request_id(number)))
        if fault is not None and fault.kind in SILENT:
            yield self._latency, b""
            return
        self._book.status(answer.status)
        headers = headers_of(self._dialect, number, refusal)
        yield from _play_answer(
            answer, headers, self._latency, None if fault is None or fault.kind in REFUSALS else fault
        )


def immediately(work: Callable[[Call], EndpointAnswer]) -> Callable[[Call], Work]:
    """Make an endpoint of work that is done in no time."""

    def begin(call: Call) -> Work:
        yield from ()
        return work(call)

    return begin


def json_answer(value: Json) -> EndpointAnswer:
    """Answer with a JSON value."""
    return EndpointAnswer(body=_encode(value))


def _name(call: Call) -> str:
    return f"{call.account}/{call.id}/{hashlib.sha256(without_boundary(call.request)).hexdigest()}"


def _done(endpoint: Endpoint, call: Call, fault: Fault | None) -> Work:
    if fault is not None:
        raise_refusal(fault)
        if not fault.paid:
            return EndpointAnswer()
    return (yield from endpoint.work(call))


def _yielding(work: Work) -> Generator[Part, None, EndpointAnswer]:
    while True:
        try:
            next(work)
        except StopIteration as stop:
            answer: EndpointAnswer = stop.value
            return answer
        yield SOON, b""


def _play_answer(answer: EndpointAnswer, headers: Headers, latency: float, fault: Fault | None) -> Iterable[Part]:
    if answer.lines is None:
        return play_whole(answer.body, headers, latency, fault, answer.status).parts
    return play_lines(answer.lines, headers, latency, fault)

"""Message Batches of Anthropic: the endpoints under `/v1/messages/batches`."""

import re
from collections.abc import Iterator
from typing import Any

from muster.domain.canonical import Json
from muster.sim.batches.batch import ENDED, MemberOutcome, SimBatch, SimBatchMember, SimBatchPhase, moment
from muster.sim.batches.registry import BatchRegistry, limit_of, page_after, page_before
from muster.sim.batches.router import Call, Endpoint, EndpointAnswer, Work, json_answer
from muster.sim.faults import FaultKind, Op
from muster.sim.options import Options
from muster.sim.playback import request_id
from muster.sim.protocols.anthropic import Anthropic
from muster.sim.protocols.ask import SimAnswer, SimRefusal, WireProtocol
from muster.text import typed

PATH = "/anthropic/v1/messages/batches"
MAX_REQUESTS = 100_000
MAX_BYTES = 256 * 1024 * 1024
DEFAULT_LISTED = 20
MAX_LISTED = 1000
CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class _Request(typed.Struct, gc=False):
    custom_id: str
    params: typed.Raw


class _Create(typed.Struct):
    requests: list[_Request]


_read = typed.Decoder(_Create).decode


class AnthropicBatchEndpoints:
    """Answers whoever has batches at Anthropic."""

    def __init__(self, registry: BatchRegistry, options: Options) -> None:
        self._registry = registry
        self._most_requests = options.batch_requests or MAX_REQUESTS
        self.most_bytes = options.batch_bytes or MAX_BYTES
        self._live = options.live_counts is True
        self._wording = MessageBatches()

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the table of endpoints."""
        one = f"{PATH}/{{id}}"
        return (
            Endpoint(method=b"POST", path=PATH, op=Op.BATCH_CREATE, work=self._create),
            Endpoint(method=b"GET", path=PATH, op=Op.BATCH_LIST, work=self._list),
            Endpoint(method=b"GET", path=one, op=Op.BATCH_RETRIEVE, work=self._retrieve),
            Endpoint(method=b"DELETE", path=one, op=Op.BATCH_DELETE, work=self._delete),
            Endpoint(method=b"POST", path=f"{one}/cancel", op=Op.BATCH_CANCEL, work=self._cancel),
            Endpoint(method=b"GET", path=f"{one}/results", op=Op.BATCH_RESULTS, work=self._results),
        )

    def _create(self, call: Call) -> Work:
        if call.request.oversized or len(call.request.body) > self.most_bytes:
            raise SimRefusal(413, f"a batch may not be larger than {self.most_bytes} bytes")
        requests = _requests(call.request.body, self._most_requests)
        yield
        members = list(_members(requests))
        yield
        fault = self._registry.pick_fault(call.request.body)
        if fault is not None and fault.kind is FaultKind.VALIDATION_FAILURE:
            raise SimRefusal(400, "requests: the batch is not valid, by the fault plan")
        batch = self._registry.open(self._wording, call.account, members, fault=fault)
        return json_answer(self._spell(call, batch, SimBatchPhase.RUNNING))

    def _list(self, call: Call) -> Work:
        batches = self._registry.newest_first(self._wording, call.account)
        limit, before = limit_of(call.query, DEFAULT_LISTED, MAX_LISTED), call.query.get("before_id")
        page = (
            page_after(batches, limit, call.query.get("after_id"))
            if before is None
            else page_before(batches, limit, before)
        )
        yield from self._registry.settle(page.things)
        return json_answer({"data": [self._look(call, batch) for batch in page.things], **page.ends})

    def _retrieve(self, call: Call) -> Work:
        batch = self._find(call)
        if batch.has_fault(FaultKind.LATE_404, "retrieve"):
            raise _not_found(call.id)
        yield from self._registry.settle([batch])
        return json_answer(self._look(call, batch))

    def _cancel(self, call: Call) -> Work:
        batch = self._find(call)
        yield from self._registry.settle([batch])
        if batch.phase in ENDED:
            raise SimRefusal(400, f"batch {batch.id} has ended and cannot be canceled")
        batch.canceled = batch.settled
        return json_answer(self._spell(call, batch, SimBatchPhase.CANCELING))

    def _delete(self, call: Call) -> Work:
        batch = self._find(call)
        yield from self._registry.settle([batch])
        if not batch.closed:
            raise SimRefusal(400, f"batch {batch.id} has not ended; cancel it before you delete it")
        self._registry.drop(batch)
        return json_answer({"id": batch.id, "type": "message_batch_deleted"})

    def _results(self, call: Call) -> Work:
        batch = self._find(call)
        yield from self._registry.settle([batch])
        if not batch.closed or batch.has_fault(FaultKind.LATE_404, "results"):
            raise SimRefusal(404, f"batch {batch.id} has no results yet")
        return EndpointAnswer(lines=batch.output + batch.errors)

    def _find(self, call: Call) -> SimBatch:
        batch = self._registry.find(self._wording, call.account, call.id)
        if batch is None:
            raise _not_found(call.id)
        return batch

    def _look(self, call: Call, batch: SimBatch) -> Any:
        return disturb(batch, self._spell(call, batch, batch.phase))

    def _spell(self, call: Call, batch: SimBatch, phase: SimBatchPhase) -> Json:
        return spell_batch(batch, phase, live=self._live, origin=call.origin)


def _requests(body: bytes, most: int) -> list[_Request]:
    try:
        requests = _read(body).requests
    except typed.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        raise SimRefusal(400, f"{place.rstrip('`') or 'body'}: {what}") from None
    except (typed.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SimRefusal(400, f"the request body is not valid JSON: {error}") from None
    if not 0 < len(requests) <= most:
        raise SimRefusal(400, f"requests: List should have between 1 and {most} items, not {len(requests)}")
    return requests


def _members(requests: list[_Request]) -> Iterator[SimBatchMember]:
    seen: set[str] = set()
    for index, request in enumerate(requests):
        if CUSTOM_ID.fullmatch(request.custom_id) is None:
            raise SimRefusal(400, f"requests.{index}.custom_id: String should match pattern '^{CUSTOM_ID.pattern}$'")
        if request.custom_id in seen:
            raise SimRefusal(400, f"requests.{index}.custom_id: {request.custom_id} is there twice")
        seen.add(request.custom_id)
        yield SimBatchMember(request.custom_id, request.params)


def _not_found(name: str) -> SimRefusal:
    return SimRefusal(404, f"there is no batch with the id {name}")


ELSEWHERE = "http://127.0.0.2:9"  # a loopback address where nobody listens
UNKNOWN = "pondering"

_encode = typed.encode


class MessageBatches:
    """Words the results of Message Batches."""

    provider = "anthropic"
    prefix = "msgbatch_sim_"
    dialect: WireProtocol = Anthropic()

    def status(self, phase: SimBatchPhase) -> str:
        """Name a phase."""
        if phase in ENDED:
            return "ended"
        return "canceling" if phase is SimBatchPhase.CANCELING else "in_progress"

    def answered(self, custom_id: str, said: SimAnswer) -> bytes:
        """Spell the line of a member that succeeded."""
        return b'{"custom_id":%b,"result":{"type":"succeeded","message":%b}}\n' % (
            _encode(custom_id),
            self.dialect.whole(said),
        )

    def refused(self, custom_id: str, refused: SimRefusal, number: int) -> bytes:
        """Spell the line of a member that failed."""
        return b'{"custom_id":%b,"result":{"type":"errored","error":%b}}\n' % (
            _encode(custom_id),
            self.dialect.error(refused, request_id(number)),
        )

    def unmet(self, custom_id: str, verdict: MemberOutcome, number: int) -> bytes:
        """Spell the line of a member that was canceled or expired."""
        return b'{"custom_id":%b,"result":{"type":"%b"}}\n' % (_encode(custom_id), verdict.encode())


def spell_batch(batch: SimBatch, phase: SimBatchPhase, *, live: bool, origin: str) -> Json:
    """Spell a batch in a phase."""
    ended = phase in ENDED
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": batch.wording.status(phase),
        "request_counts": _counts(batch, told=live or ended),
        "created_at": moment(batch.schedule.created),
        "expires_at": moment(batch.schedule.expires),
        "ended_at": moment(batch.ended()) if ended else None,
        "cancel_initiated_at": None if batch.canceled is None else moment(batch.canceled),
        "archived_at": None,
        "results_url": _results_url(batch, origin) if ended else None,
    }


def disturb(batch: SimBatch, spelled: Any) -> Any:
    """Spell a batch wrongly if its fault wants it."""
    if batch.has_fault(FaultKind.UNKNOWN_STATUS):
        return spelled | {"processing_status": UNKNOWN}
    if spelled["results_url"] is None:
        return spelled
    if batch.has_fault(FaultKind.NO_RESULTS_URL):
        return spelled | {"results_url": None}
    if batch.has_fault(FaultKind.FOREIGN_RESULTS_URL):
        return spelled | {"results_url": _results_url(batch, ELSEWHERE)}
    return spelled


def _counts(batch: SimBatch, *, told: bool) -> dict[str, int]:
    counts = {verdict.value: batch.counts[verdict] if told else 0 for verdict in MemberOutcome}
    return {"processing": batch.size - sum(counts.values()), **counts}


def _results_url(batch: SimBatch, origin: str) -> str:
    return f"{origin}/anthropic/v1/messages/batches/{batch.id}/results"

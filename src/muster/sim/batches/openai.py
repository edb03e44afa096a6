"""Batches of OpenAI: the endpoints under `/v1/batches`."""

from collections.abc import Mapping
from typing import Any

from muster.domain.canonical import Json
from muster.sim.batches.batch import ENDED, MemberOutcome, SimBatch, SimBatchPhase, Wording
from muster.sim.batches.openai_files import InputReader, Problem
from muster.sim.batches.registry import BatchRegistry, File, limit_of, page_after
from muster.sim.batches.router import Call, Endpoint, Work, json_answer
from muster.sim.faults import Fault, FaultKind, Op
from muster.sim.options import Options
from muster.sim.playback import request_id
from muster.sim.protocols.ask import SimAnswer, SimRefusal, WireProtocol
from muster.sim.protocols.openai import OpenAI, invalid
from muster.sim.protocols.responses import Responses
from muster.sim.request import body_of
from muster.text import typed

PATH = "/openai/v1/batches"
ENDPOINT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
WINDOW = "24h"
MAX_REQUESTS = 50_000
DEFAULT_LISTED = 20
MAX_LISTED = 100
MAX_METADATA = 16


class OpenAIBatchEndpoints:
    """Answers whoever has batches at OpenAI."""

    def __init__(self, registry: BatchRegistry, options: Options) -> None:
        self._registry = registry
        self._most_requests = options.batch_requests or MAX_REQUESTS
        self._live = options.live_counts is not False
        self._wording: Wording = CompletionBatches()  # all have one list, whatever their endpoint

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the table of endpoints."""
        one = f"{PATH}/{{id}}"
        return (
            Endpoint(method=b"POST", path=PATH, op=Op.BATCH_CREATE, work=self._create),
            Endpoint(method=b"GET", path=PATH, op=Op.BATCH_LIST, work=self._list),
            Endpoint(method=b"GET", path=one, op=Op.BATCH_RETRIEVE, work=self._retrieve),
            Endpoint(method=b"POST", path=f"{one}/cancel", op=Op.BATCH_CANCEL, work=self._cancel),
        )

    def _create(self, call: Call) -> Work:
        about = _about(body_of(call.request))
        file = self._registry.files.get(call.account, about["input_file_id"])
        if file is None or file.purpose != "batch":
            raise invalid("input_file_id", f"there is no file {about['input_file_id']} for a batch")
        content = b"".join(file.lines)
        reader = InputReader(about["endpoint"], self._most_requests)
        yield from reader.read(content)
        fault = self._registry.pick_fault(content)
        problems = [*reader.problems, *_problems(fault)]
        batch = self._registry.open(
            WORDINGS[about["endpoint"]], call.account, reader.members, fault=fault, about=about, problems=problems
        )
        return json_answer(self._spell(batch, SimBatchPhase.VALIDATING))

    def _list(self, call: Call) -> Work:
        batches = self._registry.newest_first(self._wording, call.account)
        page = page_after(batches, limit_of(call.query, DEFAULT_LISTED, MAX_LISTED), call.query.get("after"))
        yield from self._registry.settle(page.things)
        return json_answer({"object": "list", "data": [self._look(batch) for batch in page.things], **page.ends})

    def _retrieve(self, call: Call) -> Work:
        batch = self._find(call)
        if batch.has_fault(FaultKind.LATE_404, "retrieve"):
            raise _not_found(call.id)
        yield from self._registry.settle([batch])
        return json_answer(self._look(batch))

    def _cancel(self, call: Call) -> Work:
        batch = self._find(call)
        yield from self._registry.settle([batch])
        if batch.canceled is not None:
            return json_answer(self._look(batch))
        if batch.phase in ENDED:
            raise SimRefusal(409, f"Cannot cancel a batch with status '{batch.phase}'.")
        batch.canceled = batch.settled
        return json_answer(self._spell(batch, SimBatchPhase.CANCELING))

    def _find(self, call: Call) -> SimBatch:
        batch = self._registry.find(self._wording, call.account, call.id)
        if batch is None:
            raise _not_found(call.id)
        return batch

    def _look(self, batch: SimBatch) -> Any:
        if batch.closed and not batch.filed:
            self._file(batch)
        return disturb(batch, self._spell(batch, batch.phase))

    def _file(self, batch: SimBatch) -> None:
        batch.filed = True
        answered = batch.counts[MemberOutcome.SUCCEEDED]  # their lines may be lost; the file is there all the same
        for name, lines, count in (
            (output_id(batch), batch.output, answered),
            (error_id(batch), batch.errors, len(batch.errors)),
        ):
            if count:
                self._registry.files.put(
                    batch.account,
                    File(
                        id=name,
                        name=f"{name}.jsonl",
                        purpose="batch_output",
                        created=batch.ended(),
                        lines=lines,
                        batch=batch,
                    ),
                )

    def _spell(self, batch: SimBatch, phase: SimBatchPhase) -> Json:
        return spell_batch(batch, phase, live=self._live)


def _about(body: dict[str, Json]) -> Mapping[str, Any]:
    if not isinstance(body.get("input_file_id"), str):
        raise invalid("input_file_id", "expected the id of a file")
    if body.get("endpoint") not in WORDINGS:
        raise invalid("endpoint", f"the rehearsal server has only {' and '.join(WORDINGS)}")
    if body.get("completion_window") != WINDOW:
        raise invalid("completion_window", f"only {WINDOW} is supported")
    metadata = body.get("metadata")
    if metadata is not None and not _is_metadata(metadata):
        raise invalid("metadata", f"expected up to {MAX_METADATA} short strings")
    return {
        "endpoint": body["endpoint"],
        "input_file_id": body["input_file_id"],
        "completion_window": WINDOW,
        "metadata": metadata,
    }


def _is_metadata(metadata: Json) -> bool:
    return (
        isinstance(metadata, dict)
        and len(metadata) <= MAX_METADATA
        and all(isinstance(value, str) and len(value) <= 512 and len(name) <= 64 for name, value in metadata.items())
    )


def _problems(fault: Fault | None) -> list[Json]:
    if fault is None or fault.kind is not FaultKind.VALIDATION_FAILURE:
        return []
    return [Problem("invalid_batch", "The batch is not valid, by the fault plan.").spell(None)]


def _not_found(name: str) -> SimRefusal:
    return SimRefusal(404, f"No batch found with id '{name}'.")


UNKNOWN = "pondering"
FILES = ("output_file_id", "error_file_id")
UNMET = {
    MemberOutcome.EXPIRED: (
        "batch_expired",
        "This request could not be executed before the completion window expired.",
    ),
    MemberOutcome.CANCELED: ("batch_cancelled", "This request was not executed before the batch was cancelled."),
}

_encode = typed.encode


class CompletionBatches:
    """Words the results of batches of chat completions."""

    provider = "openai"
    prefix = "batch_sim_"

    def __init__(self, dialect: WireProtocol | None = None) -> None:
        self.dialect: WireProtocol = dialect or OpenAI()

    def status(self, phase: SimBatchPhase) -> str:
        """Name a phase; the names of phases are this provider's."""
        return phase.value

    def answered(self, custom_id: str, said: SimAnswer) -> bytes:
        """Spell the line of a member that succeeded."""
        return _line(custom_id, said.number, _response(200, said.number, self.dialect.whole(said)), b"null")

    def refused(self, custom_id: str, refused: SimRefusal, number: int) -> bytes:
        """Spell the line of a member that failed."""
        error = self.dialect.error(refused, request_id(number))
        return _line(custom_id, number, _response(refused.status, number, error), b"null")

    def unmet(self, custom_id: str, verdict: MemberOutcome, number: int) -> bytes:
        """Spell the line of a member that was canceled or expired."""
        code, message = UNMET[verdict]
        return _line(custom_id, number, b"null", _encode({"code": code, "message": message}))


# Those of Responses differ in the answers and errors alone, which their protocol spells.
WORDINGS: Mapping[str, Wording] = {ENDPOINT: CompletionBatches(), RESPONSES: CompletionBatches(Responses())}


def spell_batch(batch: SimBatch, phase: SimBatchPhase, *, live: bool) -> Json:
    """Spell a batch in a phase; its files are named when there is something in them."""
    at = int(batch.ended())
    began = None if phase in (SimBatchPhase.VALIDATING, SimBatchPhase.FAILED) else int(batch.schedule.created)
    finished = phase in (SimBatchPhase.COMPLETED, SimBatchPhase.EXPIRED)
    errors = {"object": "list", "data": list(batch.problems)} if phase is SimBatchPhase.FAILED else None
    return {
        "id": batch.id,
        "object": "batch",
        **batch.about,
        "model": next(iter(batch.models), None),
        "errors": errors,
        "status": batch.wording.status(phase),
        "output_file_id": output_id(batch) if phase in ENDED and batch.counts[MemberOutcome.SUCCEEDED] else None,
        "error_file_id": error_id(batch) if phase in ENDED and batch.errors else None,
        "created_at": int(batch.schedule.created),
        "in_progress_at": began,
        "expires_at": int(batch.schedule.expires),
        "finalizing_at": at if finished or phase is SimBatchPhase.FINALIZING else None,
        "completed_at": at if phase is SimBatchPhase.COMPLETED else None,
        "failed_at": int(batch.schedule.created) if phase is SimBatchPhase.FAILED else None,
        "expired_at": at if phase is SimBatchPhase.EXPIRED else None,
        "cancelling_at": None if batch.canceled is None else at,
        "cancelled_at": at if phase is SimBatchPhase.CANCELED else None,
        "request_counts": _counts(batch, phase, told=live or phase in ENDED),
    }


def disturb(batch: SimBatch, spelled: Any) -> Any:
    """Spell a batch wrongly if its fault wants it."""
    if batch.has_fault(FaultKind.UNKNOWN_STATUS):
        return spelled | {"status": UNKNOWN}
    if any(spelled[name] for name in FILES) and batch.has_fault(FaultKind.NO_RESULTS_URL):
        return spelled | dict.fromkeys(FILES)
    return spelled


def output_id(batch: SimBatch) -> str:
    """Name the file with the answers."""
    return f"file-{batch.id}-output"


def error_id(batch: SimBatch) -> str:
    """Name the file with what failed."""
    return f"file-{batch.id}-errors"


def _counts(batch: SimBatch, phase: SimBatchPhase, *, told: bool) -> dict[str, int]:
    if phase in (SimBatchPhase.VALIDATING, SimBatchPhase.FAILED):
        return {"total": 0, "completed": 0, "failed": 0}
    completed = batch.counts[MemberOutcome.SUCCEEDED] if told else 0
    failed = batch.counts[MemberOutcome.ERRORED] + batch.counts[MemberOutcome.EXPIRED] if told else 0
    return {"total": batch.size, "completed": completed, "failed": failed}


def _response(status: int, number: int, body: bytes) -> bytes:
    return b'{"status_code":%d,"request_id":"%b","body":%b}' % (status, request_id(number).encode(), body)


def _line(custom_id: str, number: int, response: bytes, error: bytes) -> bytes:
    name = b'{"id":"batch_req_sim_%08d","custom_id":%b' % (number, _encode(custom_id))
    return b'%b,"response":%b,"error":%b}\n' % (name, response, error)

"""Batches of OpenAI: the endpoints under `/v1/batches`."""

from muster.domain.canonical import Json
from muster.sim.ask import Refused
from muster.sim.batches.batch import ENDED, Batch, Phase, Verdict
from muster.sim.batches.desk import Call, Endpoint, Work, say_json
from muster.sim.batches.file import File
from muster.sim.batches.office import Office
from muster.sim.batches.openai_input import InputReader, Problem
from muster.sim.batches.openai_wording import Batches, disturb, error_id, output_id, spell_batch
from muster.sim.batches.shelf import limit_of, page_after
from muster.sim.door import body_of
from muster.sim.faults import Fault, Kind, Op
from muster.sim.openai import invalid
from muster.sim.options import Options

PATH = "/openai/v1/batches"
ENDPOINT = "/v1/chat/completions"
WINDOW = "24h"
MOST_REQUESTS = 50_000
DEFAULT_LISTED = 20
MOST_LISTED = 100
MOST_METADATA = 16


class OpenAIBatches:
    """Answers whoever has batches at OpenAI."""

    def __init__(self, office: Office, options: Options) -> None:
        self._office = office
        self._most_requests = options.batch_requests or MOST_REQUESTS
        self._live = options.live_counts is not False
        self._wording = Batches()

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Give the table of endpoints."""
        one = f"{PATH}/{{id}}"
        return (
            Endpoint(method=b"POST", path=PATH, op=Op.BATCH_CREATE, work=self._create),
            Endpoint(method=b"GET", path=PATH, op=Op.BATCH_LIST, work=self._list),
            Endpoint(method=b"GET", path=one, op=Op.BATCH_RETRIEVE, work=self._retrieve),
            Endpoint(method=b"POST", path=f"{one}/cancel", op=Op.BATCH_CANCEL, work=self._cancel),
        )

    def _create(self, call: Call) -> Work:
        about = _about(body_of(call.request))
        file = self._office.files.get(call.account, about["input_file_id"])
        if file is None or file.purpose != "batch":
            raise invalid("input_file_id", f"there is no file {about['input_file_id']} for a batch")
        content = b"".join(file.lines)
        reader = InputReader(about["endpoint"], self._most_requests)
        yield from reader.read(content)
        fault = self._office.pick_fault(content)
        problems = [*reader.problems, *_problems(fault)]
        batch = self._office.open(
            self._wording, call.account, reader.members, fault=fault, about=about, problems=problems
        )
        return say_json(self._spell(batch, Phase.VALIDATING))

    def _list(self, call: Call) -> Work:
        batches = self._office.newest_first(self._wording, call.account)
        page = page_after(batches, limit_of(call.query, DEFAULT_LISTED, MOST_LISTED), call.query.get("after"))
        yield from self._office.settle(page.things)
        return say_json({"object": "list", "data": [self._look(batch) for batch in page.things], **page.ends})

    def _retrieve(self, call: Call) -> Work:
        batch = self._find(call)
        if batch.strikes(Kind.LATE_404, "retrieve"):
            raise _not_found(call.id)
        yield from self._office.settle([batch])
        return say_json(self._look(batch))

    def _cancel(self, call: Call) -> Work:
        batch = self._find(call)
        yield from self._office.settle([batch])
        if batch.canceled is not None:
            return say_json(self._look(batch))
        if batch.phase in ENDED:
            raise Refused(409, f"Cannot cancel a batch with status '{batch.phase}'.")
        batch.canceled = batch.settled
        return say_json(self._spell(batch, Phase.CANCELING))

    def _find(self, call: Call) -> Batch:
        batch = self._office.find(self._wording, call.account, call.id)
        if batch is None:
            raise _not_found(call.id)
        return batch

    def _look(self, batch: Batch) -> Json:
        if batch.closed and not batch.filed:
            self._file(batch)
        return disturb(batch, self._spell(batch, batch.phase))

    def _file(self, batch: Batch) -> None:
        batch.filed = True
        answered = batch.counts[Verdict.SUCCEEDED]  # their lines may be lost; the file is there all the same
        for name, lines, count in (
            (output_id(batch), batch.output, answered),
            (error_id(batch), batch.errors, len(batch.errors)),
        ):
            if count:
                self._office.files.put(
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

    def _spell(self, batch: Batch, phase: Phase) -> Json:
        return spell_batch(batch, phase, live=self._live)


def _about(body: dict[str, Json]) -> dict[str, Json]:
    if not isinstance(body.get("input_file_id"), str):
        raise invalid("input_file_id", "expected the id of a file")
    if body.get("endpoint") != ENDPOINT:
        raise invalid("endpoint", f"the rehearsal server has only {ENDPOINT}")
    if body.get("completion_window") != WINDOW:
        raise invalid("completion_window", f"only {WINDOW} is supported")
    metadata = body.get("metadata")
    if metadata is not None and not _is_metadata(metadata):
        raise invalid("metadata", f"expected up to {MOST_METADATA} short strings")
    return {
        "endpoint": ENDPOINT,
        "input_file_id": body["input_file_id"],
        "completion_window": WINDOW,
        "metadata": metadata,
    }


def _is_metadata(metadata: Json) -> bool:
    return (
        isinstance(metadata, dict)
        and len(metadata) <= MOST_METADATA
        and all(isinstance(value, str) and len(value) <= 512 and len(name) <= 64 for name, value in metadata.items())
    )


def _problems(fault: Fault | None) -> list[Json]:
    if fault is None or fault.kind is not Kind.VALIDATION_FAILURE:
        return []
    return [Problem("invalid_batch", "The batch is not valid, by the fault plan.").spell(None)]


def _not_found(name: str) -> Refused:
    return Refused(404, f"No batch found with id '{name}'.")

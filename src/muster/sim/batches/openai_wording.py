"""How OpenAI words batches and the lines of their files; pure."""

import msgspec

from muster.domain.canonical import Json
from muster.sim.ask import Dialect, Refused, Said
from muster.sim.batches.batch import ENDED, Batch, Phase, Verdict
from muster.sim.faults import Kind
from muster.sim.openai import OpenAI
from muster.sim.refusal import request_id

UNKNOWN = "pondering"
FILES = ("output_file_id", "error_file_id")
UNMET = {
    Verdict.EXPIRED: ("batch_expired", "This request could not be executed before the completion window expired."),
    Verdict.CANCELED: ("batch_cancelled", "This request was not executed before the batch was cancelled."),
}

_encode = msgspec.json.Encoder().encode


class Batches:
    """Words the results of batches of chat completions."""

    provider = "openai"
    prefix = "batch_sim_"
    dialect: Dialect = OpenAI()

    def status(self, phase: Phase) -> str:
        """Name a phase; the names of phases are this provider's."""
        return phase.value

    def answered(self, custom_id: str, said: Said) -> bytes:
        """Spell the line of a member that succeeded."""
        return _line(custom_id, said.number, _response(200, said.number, self.dialect.whole(said)), b"null")

    def refused(self, custom_id: str, refused: Refused, number: int) -> bytes:
        """Spell the line of a member that failed."""
        error = self.dialect.error(refused, request_id(number))
        return _line(custom_id, number, _response(refused.status, number, error), b"null")

    def unmet(self, custom_id: str, verdict: Verdict, number: int) -> bytes:
        """Spell the line of a member that was canceled or expired."""
        code, message = UNMET[verdict]
        return _line(custom_id, number, b"null", _encode({"code": code, "message": message}))


def spell_batch(batch: Batch, phase: Phase, *, live: bool) -> Json:
    """Spell a batch in a phase; its files are named when there is something in them."""
    at = int(batch.ended())
    began = None if phase in (Phase.VALIDATING, Phase.FAILED) else int(batch.schedule.created)
    finished = phase in (Phase.COMPLETED, Phase.EXPIRED)
    errors = {"object": "list", "data": list(batch.problems)} if phase is Phase.FAILED else None
    return {
        "id": batch.id,
        "object": "batch",
        **batch.about,
        "model": next(iter(batch.models), None),
        "errors": errors,
        "status": batch.wording.status(phase),
        "output_file_id": output_id(batch) if phase in ENDED and batch.counts[Verdict.SUCCEEDED] else None,
        "error_file_id": error_id(batch) if phase in ENDED and batch.errors else None,
        "created_at": int(batch.schedule.created),
        "in_progress_at": began,
        "expires_at": int(batch.schedule.expires),
        "finalizing_at": at if finished or phase is Phase.FINALIZING else None,
        "completed_at": at if phase is Phase.COMPLETED else None,
        "failed_at": int(batch.schedule.created) if phase is Phase.FAILED else None,
        "expired_at": at if phase is Phase.EXPIRED else None,
        "cancelling_at": None if batch.canceled is None else at,
        "cancelled_at": at if phase is Phase.CANCELED else None,
        "request_counts": _counts(batch, phase, told=live or phase in ENDED),
    }


def disturb(batch: Batch, spelled: Json) -> Json:
    """Spell a batch wrongly if its fault wants it."""
    if batch.strikes(Kind.UNKNOWN_STATUS):
        return spelled | {"status": UNKNOWN}
    if any(spelled[name] for name in FILES) and batch.strikes(Kind.NO_RESULTS_URL):
        return spelled | dict.fromkeys(FILES)
    return spelled


def output_id(batch: Batch) -> str:
    """Name the file with the answers."""
    return f"file-{batch.id}-output"


def error_id(batch: Batch) -> str:
    """Name the file with what failed."""
    return f"file-{batch.id}-errors"


def _counts(batch: Batch, phase: Phase, *, told: bool) -> dict[str, int]:
    if phase in (Phase.VALIDATING, Phase.FAILED):
        return {"total": 0, "completed": 0, "failed": 0}
    completed = batch.counts[Verdict.SUCCEEDED] if told else 0
    failed = batch.counts[Verdict.ERRORED] + batch.counts[Verdict.EXPIRED] if told else 0
    return {"total": batch.size, "completed": completed, "failed": failed}


def _response(status: int, number: int, body: bytes) -> bytes:
    return b'{"status_code":%d,"request_id":"%b","body":%b}' % (status, request_id(number).encode(), body)


def _line(custom_id: str, number: int, response: bytes, error: bytes) -> bytes:
    name = b'{"id":"batch_req_sim_%08d","custom_id":%b' % (number, _encode(custom_id))
    return b'%b,"response":%b,"error":%b}\n' % (name, response, error)

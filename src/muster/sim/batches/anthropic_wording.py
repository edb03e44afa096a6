"""How Anthropic words batches and the lines of their results; pure."""

import msgspec

from muster.domain.canonical import Json
from muster.sim.anthropic import Anthropic
from muster.sim.ask import Dialect, Refused, Said
from muster.sim.batches.batch import ENDED, Batch, Phase, Verdict
from muster.sim.batches.schedule import moment
from muster.sim.faults import Kind
from muster.sim.refusal import request_id

ELSEWHERE = "http://127.0.0.2:9"  # a loopback address where nobody listens
UNKNOWN = "pondering"

_encode = msgspec.json.Encoder().encode


class MessageBatches:
    """Words the results of Message Batches."""

    provider = "anthropic"
    prefix = "msgbatch_sim_"
    dialect: Dialect = Anthropic()

    def status(self, phase: Phase) -> str:
        """Name a phase."""
        if phase in ENDED:
            return "ended"
        return "canceling" if phase is Phase.CANCELING else "in_progress"

    def answered(self, custom_id: str, said: Said) -> bytes:
        """Spell the line of a member that succeeded."""
        return b'{"custom_id":%b,"result":{"type":"succeeded","message":%b}}\n' % (
            _encode(custom_id),
            self.dialect.whole(said),
        )

    def refused(self, custom_id: str, refused: Refused, number: int) -> bytes:
        """Spell the line of a member that failed."""
        return b'{"custom_id":%b,"result":{"type":"errored","error":%b}}\n' % (
            _encode(custom_id),
            self.dialect.error(refused, request_id(number)),
        )

    def unmet(self, custom_id: str, verdict: Verdict, number: int) -> bytes:
        """Spell the line of a member that was canceled or expired."""
        return b'{"custom_id":%b,"result":{"type":"%b"}}\n' % (_encode(custom_id), verdict.encode())


def spell_batch(batch: Batch, phase: Phase, *, live: bool, origin: str) -> Json:
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


def disturb(batch: Batch, spelled: Json) -> Json:
    """Spell a batch wrongly if its fault wants it."""
    if batch.strikes(Kind.UNKNOWN_STATUS):
        return spelled | {"processing_status": UNKNOWN}
    if spelled["results_url"] is None:
        return spelled
    if batch.strikes(Kind.NO_RESULTS_URL):
        return spelled | {"results_url": None}
    if batch.strikes(Kind.FOREIGN_RESULTS_URL):
        return spelled | {"results_url": _results_url(batch, ELSEWHERE)}
    return spelled


def _counts(batch: Batch, *, told: bool) -> dict[str, int]:
    counts = {verdict.value: batch.counts[verdict] if told else 0 for verdict in Verdict}
    return {"processing": batch.size - sum(counts.values()), **counts}


def _results_url(batch: Batch, origin: str) -> str:
    return f"{origin}/anthropic/v1/messages/batches/{batch.id}/results"

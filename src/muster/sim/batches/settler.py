"""Processes the members of batches: each once, in small steps, and counts those that succeed as paid."""

import json
from collections.abc import Iterator
from dataclasses import replace

from muster.domain.call import Usage
from muster.sim.audit import AuditLog
from muster.sim.batches.batch import ENDED, MemberOutcome, SimBatch, SimBatchMember, SimBatchPhase
from muster.sim.faults import Fault, FaultKind, Op, Plans
from muster.sim.playback import raise_refusal
from muster.sim.protocols.ask import SimRefusal
from muster.sim.request import read_body
from muster.sim.responder import Responder, name_of

STEP = 100  # members at a time, so that others are served in between
NOBODY = "nobody-sent-this"


class Settler:
    """Brings batches up to date; two that do so at once share the work."""

    def __init__(self, responder: Responder, book: AuditLog, plans: Plans, numbers: Iterator[int]) -> None:
        self._responder = responder
        self._book = book
        self._plans = plans
        self._numbers = numbers

    def settle(self, batch: SimBatch, now: float) -> Iterator[None]:
        """Process what is due, and at the end give the rest its verdict; between the steps others may run."""
        while batch.done < batch.due(now):
            for member in batch.members[batch.done : min(batch.due(now), batch.done + STEP)]:
                self._process(batch, member)
            yield
        batch.settled = max(batch.settled, now)
        if batch.phase in ENDED and not batch.closed:
            self._close(
                batch, MemberOutcome.EXPIRED if batch.phase is SimBatchPhase.EXPIRED else MemberOutcome.CANCELED
            )

    def _close(self, batch: SimBatch, verdict: MemberOutcome) -> None:
        if not batch.problems:
            for member in batch.members[batch.done :]:
                batch.note(verdict, batch.wording.unmet(member.custom_id, verdict, next(self._numbers)))
        batch.close()

    def _process(self, batch: SimBatch, member: SimBatchMember) -> None:
        number = next(self._numbers)
        try:
            self._answer(batch, member, number)
        except SimRefusal as refused:
            batch.note(MemberOutcome.ERRORED, batch.wording.refused(member.custom_id, refused, number))

    def _answer(self, batch: SimBatch, member: SimBatchMember, number: int) -> None:
        body = read_body(member.body)
        ask = self._responder.read(batch.wording.dialect, body, batch=True)
        batch.models.add(ask.model)
        name = name_of(body)
        fault = self._pick(name, ask.model, ask.text)
        if fault is not None and not fault.paid:
            batch.note(MemberOutcome.EXPIRED, batch.wording.unmet(member.custom_id, MemberOutcome.EXPIRED, number))
            return
        said = self._responder.answer(ask, name, number, batch=True)
        if fault is not None and fault.kind is FaultKind.ZERO_USAGE:
            said = replace(said, usage=Usage())
        line = batch.wording.answered(member.custom_id, said)
        stray = b"" if fault is None else batch.wording.answered(NOBODY, said)
        batch.note(MemberOutcome.SUCCEEDED, *_disturbed(line, stray, fault))

    def _pick(self, name: str, model: str, text: str) -> Fault | None:
        plan = self._plans.of(Op.MEMBER)
        fault = None if plan.idle else plan.pick(name, model, text)
        if fault is not None:
            self._book.fault(fault.name)
            raise_refusal(fault)
        return fault


def _disturbed(line: bytes, stray: bytes, fault: Fault | None) -> tuple[bytes, ...]:
    match fault.kind if fault else None:
        case FaultKind.DUPLICATE:
            return line, line
        case FaultKind.NO_LINE:
            return ()
        case FaultKind.UNKNOWN_ID:
            return line, stray
        case FaultKind.TRUNCATED:
            return (line[: len(line) // 2] + b"\n",)
        case FaultKind.GARBAGE:
            return (_without_answer(line),)
    return (line,)


def _without_answer(line: bytes) -> bytes:
    """Return the line of a member that succeeded, with an empty object where the answer was."""
    spelled = json.loads(line)
    if "result" in spelled:
        spelled["result"]["message"] = {}
    else:
        spelled["response"]["body"] = {}
    return json.dumps(spelled).encode() + b"\n"

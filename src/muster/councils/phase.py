"""One phase of a round: every member is asked at once, answers are read and repaired once, and who is missing is named.

The outcome of a phase is one step of the run. A phase that had no quorum is not remembered, so that those who failed
are asked again when the run is resumed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.councils.deadlines import MIN_QUORUM, call_seconds, quorum_of
from muster.councils.members.answers import UnreadableAnswer, read_evaluation, read_proposal, settled
from muster.councils.members.prompts import repair_of, request_of
from muster.councils.members.turns import Council, CouncilTurn, evaluate_turn, propose_turn
from muster.councils.rules.outcome import CouncilRound
from muster.councils.rules.scoring import score_round
from muster.councils.rules.stopping import StopReason
from muster.councils.rules.values import (
    AbstentionCause,
    CouncilAbstention,
    CouncilMember,
    CouncilPhase,
    Evaluation,
    Proposal,
)
from muster.councils.spec import REPAIR, CouncilSpec
from muster.domain.call import Reply, Request
from muster.domain.canonical import Json
from muster.domain.errors import (
    BadOutput,
    BudgetExhausted,
    CouncilFailed,
    MusterError,
    OutOfTime,
    RecordedFailure,
    ReplayMiss,
    RetriesExhausted,
    Stalled,
    StopRun,
    TimedOut,
    WireError,
)
from muster.domain.rules import DefaultRules
from muster.engine.context import Context
from muster.text import typed

STOP = "stop"  # the channel on which a person ends a council
BENCHED_EVENT = "council.benched"  # tells who has no part in a phase, and why
_LATE = (OutOfTime, TimedOut, Stalled)
_MIN_PROPOSALS = 2
Said = Proposal | Evaluation | CouncilAbstention


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRecord:
    """What became of one phase."""

    phase: CouncilPhase
    proposals: tuple[Proposal, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    abstentions: tuple[CouncilAbstention, ...] = ()
    out_of_money: tuple[str, ...] = ()  # members whose own budget is used up
    seconds: float = 0.0
    stopped: bool = False  # by a person, before everybody had answered

    @property
    def answers(self) -> int:
        """How many members answered; who abstains by itself did."""
        said = sum(one.cause is AbstentionCause.SKIPPED for one in self.abstentions)
        return len(self.proposals) + len(self.evaluations) + said


def round_key(number: int) -> str:
    """Return the key below which everything of a round is."""
    return f"round/{number:02}"


def phase_key(number: int, phase: CouncilPhase) -> str:
    """Return the key below which the calls of a phase are, by the names of the members, which may be anything."""
    return f"{round_key(number)}/{phase}"


def steps_key(number: int, phase: CouncilPhase) -> str:
    """Return the key below which everything else of a phase is."""
    return f"{round_key(number)}/phase/{phase}"


def record_key(number: int, phase: CouncilPhase) -> str:
    """Return the key of the step that holds the outcome of a phase."""
    return f"{steps_key(number, phase)}/record"


def read_record(value: Json) -> PhaseRecord:
    """Read the outcome of a phase as it is stored."""
    return typed.convert(value, PhaseRecord)


@dataclass(slots=True)
class _MemberCall:
    """One member at work, with the key of the call that it is at."""

    member: CouncilMember
    turn: CouncilTurn
    key: str
    task: "asyncio.Task[Said] | None" = None


@dataclass(slots=True, kw_only=True)
class CouncilPhaseRun:
    """One phase that is being held."""

    ctx: Context
    spec: CouncilSpec
    council: Council
    number: int
    phase: CouncilPhase
    past: Sequence[CouncilRound]
    proposals: Sequence[Proposal] = ()  # of this round, to be evaluated
    injections: Sequence[str] = ()
    seconds: float | None = None  # that it may take
    shortage: StopReason | None = None  # what there was too little of to ask everybody
    refused_by: str = ""  # the level of the budget, if it was money
    _began: float = 0.0
    _stopped: bool = False
    _poor: list[str] = field(default_factory=list)

    async def hold(self) -> PhaseRecord:
        """Ask all members, and return what became of it; raises CouncilFailed without a quorum."""
        self._began = float(await self.ctx.step(f"{self._steps}/began", lambda: self.ctx.seconds))
        record = await self.ctx.step(record_key(self.number, self.phase), self._work)
        return read_record(record)

    @property
    def _key(self) -> str:
        return phase_key(self.number, self.phase)

    @property
    def _steps(self) -> str:
        return steps_key(self.number, self.phase)

    async def _work(self) -> Any:
        calls = [_MemberCall(turn.member, turn, f"{self._key}/{turn.member.name}") for turn in self._turns()]
        said = await self._ask_all(calls)
        found = PhaseRecord(
            phase=self.phase,
            proposals=tuple(one for one in said if isinstance(one, Proposal)),
            evaluations=tuple(one for one in said if isinstance(one, Evaluation)),
            abstentions=tuple(one for one in said if isinstance(one, CouncilAbstention)),
            out_of_money=tuple(sorted(self._poor)),
            seconds=self._elapsed,
            stopped=self._stopped,
        )
        if not self._stopped:
            require_quorum(found, self.number, len(self.council.members), self.spec.quorum)
        return typed.to_builtins(found)

    def _turns(self) -> Sequence[CouncilTurn]:
        members = self.council.members
        if self.phase is CouncilPhase.PROPOSE:
            return [propose_turn(self.council, member, self.past, self.injections) for member in members]
        return [evaluate_turn(self.council, member, self.proposals, self.past, self.injections) for member in members]

    async def _ask_all(self, calls: Sequence[_MemberCall]) -> Sequence[Said]:
        """Wait for all members; a stop signal ends the waiting for those whose agent is not at work yet."""
        for one in calls:
            one.task = asyncio.ensure_future(self._member(one))
        tasks = [one.task for one in calls if one.task is not None]
        everybody = asyncio.ensure_future(_all_over(tasks))
        watch = asyncio.ensure_future(self.ctx.receive(f"{self._steps}/stop", STOP, aside=True))
        try:
            await asyncio.wait({everybody, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not everybody.done() and watch.result() is not None:
                self._stop(calls)
            await everybody
        finally:
            for task in (everybody, watch, *tasks):
                task.cancel()
            await asyncio.wait({everybody, watch, *tasks})
        for task in tasks:
            if not task.cancelled() and isinstance(task.exception(), StopRun):
                task.result()
        return [self._outcome(one, task) for one, task in zip(calls, tasks, strict=True)]

    def _stop(self, calls: Sequence[_MemberCall]) -> None:
        self._stopped = True
        for one in calls:
            if one.task is not None and not self.ctx.on_wire(one.key):
                one.task.cancel()

    def _outcome(self, one: _MemberCall, task: "asyncio.Task[Said]") -> Said:
        if task.cancelled():
            return self._abstention(
                one.member, AbstentionCause.NOT_STARTED, "the council was stopped before it answered"
            )
        return task.result()

    async def _member(self, one: _MemberCall) -> Said:
        """Ask one member, and read what it said."""
        left = None if one.member.person else self._left  # the time of a person is its own
        request = request_of(one.turn, seconds_left=left, session=self.ctx.run)
        try:
            said, text = await self._try(one, request)
            if isinstance(said, UnreadableAnswer) and not self._stopped:
                one.key += REPAIR
                said, _ = await self._try(one, repair_of(request, text, said.reason))
        except BudgetExhausted as error:
            if error.level.startswith("part:"):
                self._poor.append(one.member.name)
            else:
                self.shortage, self.refused_by = StopReason.BUDGET, error.level
            said = self._abstention(one.member, AbstentionCause.NOT_STARTED, error.message)
        except ReplayMiss:
            if self._left != 0:
                raise
            self.shortage = StopReason.TIME
            said = self._abstention(one.member, AbstentionCause.NOT_STARTED, "no time was left to ask it")
        except WireError as error:
            if isinstance(error, StopRun):
                raise
            cause = AbstentionCause.LATE if is_late(error) else AbstentionCause.FAILED
            if self._left == 0:
                self.shortage = StopReason.TIME
            said = self._abstention(one.member, cause, error.message)
        said = settled(said)
        if isinstance(said, UnreadableAnswer):
            said = self._abstention(one.member, AbstentionCause.UNREADABLE, said.reason)
        await self._tell(said)
        return said

    async def _try(self, one: _MemberCall, request: Request) -> tuple[Said | UnreadableAnswer, str]:
        """Make one call and read it; a program whose output is not of its protocol has answered, and badly."""
        try:
            reply = await self._call(one, request)
        except BadOutput as error:
            return UnreadableAnswer(reason=error.message), ""
        return self._read(one, reply), reply.text

    async def _call(self, one: _MemberCall, request: Request) -> Reply:
        return await self.ctx.call(
            one.member.name,
            request,
            key=one.key,
            known=call_seconds(None, self._left) == 0,
            allowance=one.member.allowance,
            optional=True,  # without the money for it a council stops, and what it has decided stands
        )

    def _read(self, one: _MemberCall, reply: Reply) -> Said | UnreadableAnswer:
        if self.phase is CouncilPhase.PROPOSE:
            schema, form, person = self.spec.proposal_schema, self.spec.verdict_form, one.member.person
            return read_proposal(reply, one.member.name, person=person, schema=schema, form=form)
        labels, member = one.turn.labels, one.member
        return read_evaluation(reply, labels, self.proposals, member.scale, person=member.person)

    def _abstention(self, member: CouncilMember, cause: AbstentionCause, reason: str) -> CouncilAbstention:
        return CouncilAbstention(agent=member.name, phase=self.phase, cause=cause, reason=reason)

    async def _tell(self, said: Said) -> None:
        kind, data = _event_of(said)
        key = f"{self._steps}/said/{said.agent}/{kind.rpartition('.')[2]}"
        await self.ctx.emit(key, kind, {"round": self.number, "phase": str(self.phase), "agent": said.agent, **data})

    @property
    def _elapsed(self) -> float:
        """Seconds since the phase began; a run that continues another has a clock of its own."""
        return max(0.0, self.ctx.seconds - self._began)

    @property
    def _left(self) -> float | None:
        return None if self.seconds is None else max(0.0, self.seconds - self._elapsed)


async def _all_over(tasks: Sequence["asyncio.Task[Said]"]) -> None:
    await asyncio.wait(tasks)


def is_late(error: MusterError) -> bool:
    """Return whether a call failed because its answer did not come in time."""
    if isinstance(error, RetriesExhausted):
        return isinstance(error.last, _LATE)
    if isinstance(error, RecordedFailure):
        return error.recorded.get("code") in {kind.code for kind in _LATE}
    return isinstance(error, _LATE)


def _event_of(said: Said) -> tuple[str, Mapping[str, Json]]:
    match said:
        case Proposal():
            return "council.proposed", {"characters": len(said.text), "claims": len(said.claims)}
        case Evaluation():
            return "council.evaluated", {"weights": {vote.target: vote.weight for vote in said.votes}}
        case CouncilAbstention(cause=AbstentionCause.SKIPPED):
            return "council.abstained", {"cause": str(said.cause), "reason": said.reason}
        case _:
            return BENCHED_EVENT, {"cause": str(said.cause), "reason": said.reason}


def counts(one: CouncilRound, spec: CouncilSpec, *, stopped: bool, decided: bool) -> bool:
    """Return whether a round counts: evaluations that were stopped below their quorum replace no earlier decision."""
    if not stopped:
        return True
    return bool(one.score.counted) and not (decided and below_quorum(one, spec))


def below_quorum(one: CouncilRound, spec: CouncilSpec) -> bool:
    """Return whether fewer evaluations count than a decision needs."""
    return one.score.counted < quorum_of(len(spec.members), spec.quorum)


def complete_round(
    number: int, proposed: PhaseRecord, evaluated: PhaseRecord, spec: CouncilSpec, seed: int | str, rules: DefaultRules
) -> CouncilRound:
    """Return a round with its score.

    Whoever stops a council wants the best so far, so that evaluations below the quorum decide; the result says so.
    """
    score = score_round(
        proposed.proposals,
        evaluated.evaluations,
        seed=seed,
        needed=quorum_of(len(spec.members), spec.quorum) if rules.strict_councils else 0,
        lenient=evaluated.stopped,
        orders=rules.orders_councils,
    )
    return CouncilRound(
        number=number,
        proposals=proposed.proposals,
        evaluations=evaluated.evaluations,
        abstentions=(*proposed.abstentions, *evaluated.abstentions),
        score=score,
    )


def require_quorum(found: PhaseRecord, number: int, members: int, share: float) -> None:
    """Raise CouncilFailed when too few members answered, or there are not two proposals to choose from."""
    needed = quorum_of(members, share)
    why = ""
    if found.answers < needed:
        why = f"{found.answers} of {members} members answered, and {needed} are needed"
    elif found.phase is CouncilPhase.PROPOSE and len(found.proposals) < _MIN_PROPOSALS:
        why = f"there are {len(found.proposals)} proposals, and {_MIN_PROPOSALS} are needed"
    if why:
        missing = "; ".join(f"{one.agent}: {one.cause} ({one.reason})" for one in found.abstentions)
        again = "resume the run to ask again those who failed"
        fewer = ("or set a lower quorum in the policy",) if _has_enough(found) else ()
        raise CouncilFailed(f"round {number}, phase {found.phase}: {why}; {missing}", suggestions=(again, *fewer))


def _has_enough(found: PhaseRecord) -> bool:
    """Return whether a lower quorum would let a phase go on that failed."""
    proposed = found.phase is CouncilPhase.EVALUATE or len(found.proposals) >= _MIN_PROPOSALS
    return proposed and found.answers >= MIN_QUORUM

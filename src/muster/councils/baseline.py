"""The baseline: one agent is asked the question alone, as often as the council's money allows, and both are compared.

The members of the council weigh the samples and the council's answer together, anonymously; who wrote one of these
has no vote, since nobody may weigh an answer of its own. The ledger holds all samples together to what the council
spent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.councils.members.answers import UnreadableAnswer, read_evaluation, read_proposal, settled
from muster.councils.members.prompts import repair_of, request_of
from muster.councils.members.turns import Council, evaluate_turn, propose_turn
from muster.councils.phase import PhaseRecord, Said, is_late, read_record
from muster.councils.rules.outcome import BaselineComparison, CouncilResult
from muster.councils.rules.scoring import score_round
from muster.councils.rules.values import (
    AbstentionCause,
    CouncilAbstention,
    CouncilMember,
    CouncilPhase,
    Evaluation,
    Proposal,
)
from muster.councils.spec import REPAIR, CouncilSpec
from muster.domain.budget import Allowance
from muster.domain.call import Reply, Request
from muster.domain.errors import BadOutput, BudgetExhausted, StopRun, WireError
from muster.domain.money import NOTHING, Microdollars
from muster.engine.context import Context
from muster.text import typed

KEY = "baseline"
MAX_SAMPLES = 8  # an evaluator that reads more of them weighs none with care
_COUNCIL = "the council"
# With a no-break space, which no name of a member may have, so that no member's own budget is this one.
_ALLOWANCE = "the\u00a0baseline"


async def compare_with_baseline(
    ctx: Context, spec: CouncilSpec, council: Council, result: CouncilResult, spent: Microdollars
) -> BaselineComparison | None:
    """Ask the agent alone and let the council's members weigh its answers beside the council's."""
    agent, winner = spec.baseline, result.winner
    if agent is None or winner is None:
        return None
    await ctx.emit(f"{KEY}/started", "council.comparing", {"agent": agent})
    free = len(result.rounds) * len(council.members)
    found = await _Sampling(ctx=ctx, council=council, agent=agent, cap=spent, free=free).draw()
    if not found.samples:
        return replace(found, flaw=_without_samples(found))
    compared = [*found.samples, replace(winner, agent=_COUNCIL)]
    judges = [member for member in council.members if member.name not in (winner.agent, agent)]
    if not judges:
        return replace(found, flaw="no member may weigh the answers, since each of them wrote one")
    weighed = await _weighed(ctx, replace(council, hidden=(agent,)), judges, compared)
    found = replace(found, missing=(*found.missing, *weighed.abstentions))
    if not weighed.evaluations:
        return replace(found, flaw="no member weighed the answers")
    return replace(found, score=score_round(compared, weighed.evaluations, seed=council.seed))


def _without_samples(found: BaselineComparison) -> str:
    """Return why there is no sample, and what to do where the money did not suffice for one."""
    why = "; ".join(dict.fromkeys(one.reason for one in found.missing))
    if all(one.cause is AbstentionCause.NOT_STARTED for one in found.missing):
        return (
            f"{found.agent} was not asked, since it may spend no more than the council did: {why}; lower the most that "
            "a call of it can cost: max_tokens of a model, budget_usd of another agent"
        )
    return f"{found.agent} gave no answer that can be read: {why}"


def samples_next(asked: int, spent: Microdollars, dearest: Microdollars, cap: Microdollars, free: int) -> int:
    """Return how many samples to ask for now: one while none has cost anything, and then what the money allows.

    `dearest` is what a sample cost at most so far, and `free` how often an agent is asked that costs nothing.
    """
    if dearest == NOTHING:
        return int(asked < min(free, MAX_SAMPLES))
    return max(0, min((cap - spent) // dearest, MAX_SAMPLES - asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What one agent is asked, and how its answer is read."""

    agent: str
    name: str  # under which its answer is listed
    phase: CouncilPhase
    request: Request
    key: str
    allowance: Allowance | None
    read: Callable[[Reply], Said | UnreadableAnswer]


@dataclass(slots=True, kw_only=True)
class _Sampling:
    """The samples of one agent that are being drawn."""

    ctx: Context
    council: Council
    agent: str
    cap: Microdollars  # what all of them may cost, failed ones included
    free: int

    async def draw(self) -> BaselineComparison:
        """Ask until the money or the number of samples is used up; every sample without an answer is named."""
        found = BaselineComparison(agent=self.agent)
        before = await self.ctx.funds(f"{KEY}/before")
        dearest = NOTHING
        while count := samples_next(found.asked, found.spent, dearest, self.cap, self.free):
            asked = found.asked
            record = await self._wave(range(asked + 1, asked + count + 1))
            after = await self.ctx.funds(f"{KEY}/spent/{asked + count:02}")
            spent = Microdollars(after.spent - before.spent)
            dearest = Microdollars(max(dearest, -(-(spent - found.spent) // count)))
            found = replace(
                found,
                samples=(*found.samples, *record.proposals),
                missing=(*found.missing, *record.abstentions),
                spent=spent,
            )
            if any(one.cause is AbstentionCause.NOT_STARTED for one in record.abstentions):
                break
        return found

    async def _wave(self, numbers: range) -> PhaseRecord:
        questions = [self._question(number) for number in numbers]
        return await _asked(self.ctx, f"{KEY}/samples/{numbers[0]:02}", CouncilPhase.PROPOSE, questions)

    def _question(self, number: int) -> _Question:
        """Return what a sample is asked; all ask the same, and are told apart by their keys."""
        alone, name = CouncilMember(name=self.agent), f"{self.agent}#{number}"
        turn = propose_turn(replace(self.council, members=(alone,), rounds=1), alone, ())
        return _Question(
            agent=self.agent,
            name=name,
            phase=CouncilPhase.PROPOSE,
            request=request_of(turn),
            key=f"{KEY}/{number:02}",
            allowance=Allowance(name=_ALLOWANCE, cap=self.cap),
            read=lambda reply: read_proposal(reply, name),
        )


async def _weighed(
    ctx: Context, council: Council, judges: Sequence[CouncilMember], compared: Sequence[Proposal]
) -> PhaseRecord:
    """Let members weigh all answers, and name those that did not."""
    await ctx.emit(f"{KEY}/weighing", "council.weighing", {"agents": [judge.name for judge in judges]})
    questions = [_weighing(council, judge, compared) for judge in judges]
    return await _asked(ctx, f"{KEY}/weighed", CouncilPhase.EVALUATE, questions)


def _weighing(council: Council, judge: CouncilMember, compared: Sequence[Proposal]) -> _Question:
    turn = evaluate_turn(council, judge, compared, ())
    return _Question(
        agent=judge.name,
        name=judge.name,
        phase=CouncilPhase.EVALUATE,
        request=request_of(turn),
        key=f"{KEY}/evaluate/{judge.name}",
        allowance=judge.allowance,
        read=lambda reply: read_evaluation(reply, turn.labels, compared, judge.scale, person=judge.person),
    )


async def _asked(ctx: Context, key: str, phase: CouncilPhase, questions: Sequence[_Question]) -> PhaseRecord:
    """Ask all at once and remember what became of it, so that a resumed run decides by the same answers."""

    async def work() -> Any:
        said = await ctx.gather(*(_ask(ctx, one) for one in questions))
        record = PhaseRecord(
            phase=phase,
            proposals=tuple(one for one in said if isinstance(one, Proposal)),
            evaluations=tuple(one for one in said if isinstance(one, Evaluation)),
            abstentions=tuple(one for one in said if isinstance(one, CouncilAbstention)),
        )
        return typed.to_builtins(record)

    return read_record(await ctx.step(key, work))


async def _ask(ctx: Context, one: _Question) -> Said:
    """Ask once, have an answer repaired once that cannot be read, and name why there is none."""
    try:
        said, text = await _try(ctx, one, one.request, one.key)
        if isinstance(said, UnreadableAnswer):
            said, _ = await _try(ctx, one, repair_of(one.request, text, said.reason), f"{one.key}{REPAIR}")
    except BudgetExhausted as error:
        return _abstention(one, AbstentionCause.NOT_STARTED, error.message)
    except WireError as error:
        if isinstance(error, StopRun):
            raise
        return _abstention(one, AbstentionCause.LATE if is_late(error) else AbstentionCause.FAILED, error.message)
    said = settled(said)
    return _abstention(one, AbstentionCause.UNREADABLE, said.reason) if isinstance(said, UnreadableAnswer) else said


async def _try(ctx: Context, one: _Question, request: Request, key: str) -> tuple[Said | UnreadableAnswer, str]:
    try:
        reply = await ctx.call(one.agent, request, key=key, allowance=one.allowance, optional=True)
    except BadOutput as error:
        return UnreadableAnswer(reason=error.message), ""
    return one.read(reply), reply.text


def _abstention(one: _Question, cause: AbstentionCause, reason: str) -> CouncilAbstention:
    return CouncilAbstention(agent=one.name, phase=one.phase, cause=cause, reason=reason)

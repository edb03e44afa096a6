"""The workload of councils: rounds of propose and evaluate until the council is convinced, or something runs out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muster.councils.baseline import compare_with_baseline
from muster.councils.deadlines import PhaseTime, phase_seconds
from muster.councils.members.turns import Council
from muster.councils.phase import (
    STOP,
    CouncilPhaseRun,
    PhaseRecord,
    below_quorum,
    complete_round,
    counts,
    round_key,
    steps_key,
)
from muster.councils.rules.outcome import CouncilOutcome, CouncilResult, CouncilRound
from muster.councils.rules.stopping import Conditions, StopDecision, StopReason, conviction_of, decide
from muster.councils.rules.values import CouncilPhase, Proposal
from muster.councils.spec import WORKLOAD, CouncilSpec, read_spec
from muster.councils.synthesis import synthesize
from muster.domain.advice import ArgumentAdvice
from muster.domain.budget import Funds
from muster.domain.errors import BudgetExhausted, CouncilFailed
from muster.domain.money import Microdollars
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.text import typed

SEED = "seed"
INJECT = "inject"  # the channel on which a person tells all members something
INJECTED = "council.injected"  # the event that tells when they were told


@workload(WORKLOAD, check=read_spec)
async def deliberation(ctx: Context, spec: Any) -> Any:
    """Let the members argue, and return what they came to."""
    wanted = read_spec(spec)
    drawn = ctx.random("council").getrandbits(31)
    seed = int(await ctx.step(SEED, lambda: drawn if wanted.seed is None else wanted.seed))
    council = Council(
        question=wanted.question, members=wanted.members, rounds=wanted.rounds, seed=seed, media=wanted.media
    )
    before = await ctx.funds("funds")
    result = await _Deliberation(ctx=ctx, spec=wanted, council=council, funds=before).argue()
    after = await ctx.funds("argued/funds")
    spent = Microdollars(after.spent - before.spent)
    outcome = CouncilOutcome(
        result=result,
        seed=seed,
        spent=spent,
        synthesis=await synthesize(ctx, wanted, council, result),
        baseline=await compare_with_baseline(ctx, wanted, council, result, spent),
    )
    return typed.to_builtins(outcome)


@dataclass(slots=True, kw_only=True)
class _Deliberation:
    """A council that is being held."""

    ctx: Context
    spec: CouncilSpec
    council: Council
    funds: Funds  # before the round
    rounds: list[CouncilRound] = field(default_factory=list)
    times: list[PhaseTime] = field(default_factory=list)
    injections: list[str] = field(default_factory=list)
    _stopped: bool = False
    _shortage: StopReason | None = None  # in the last phase
    _refused_by: str = ""  # the level of the budget, if it was money
    _poor: frozenset[str] = frozenset()  # whose own budget is used up
    _open_round: int | None = None  # in which it ended before the round was complete

    async def argue(self) -> CouncilResult:
        """Hold rounds until there is a reason to stop."""
        while True:
            stop = await self._round()
            if stop is not None:
                await self.ctx.emit("stopped", "council.stopped", {"reason": str(stop.reason), "detail": stop.detail})
                return CouncilResult(
                    question=self.council.question,
                    members=self.council.members,
                    rounds=tuple(self.rounds),
                    stop=stop,
                    open_round=self._open_round,
                )

    async def _round(self) -> StopDecision | None:
        """Hold one round; returns why the council stops, or None for another round."""
        number = len(self.rounds) + 1
        told = {"round": number, "rounds": self.council.rounds, "members": list(self.council.names)}
        await self.ctx.emit(f"{round_key(number)}/started", "council.round.started", told)
        try:
            proposed = await self._phase(CouncilPhase.PROPOSE)
            evaluated = None if self._stopped else await self._phase(CouncilPhase.EVALUATE, proposed.proposals)
        except CouncilFailed as error:
            if not self.rounds and self._shortage is StopReason.BUDGET:
                raise BudgetExhausted(
                    error.message,
                    level=self._refused_by,
                    suggestions=(ArgumentAdvice("budget", "USD", words="resume the run with {}"),),
                ) from error
            if not self.rounds:
                raise
            self._open_round = number
            return self._ended(self._shortage or StopReason.MEMBERS, error.message)
        if evaluated is None or not self._complete(number, proposed, evaluated):
            # A signal that came before anybody was asked ended the council after the round before.
            self._open_round = number if proposed.proposals or proposed.abstentions else None
            return self._ended(StopReason.STOPPED, f"a stop signal came in round {number}, before it was complete")
        return await self._decide(number, evaluated)

    async def _phase(self, phase: CouncilPhase, proposals: Sequence[Proposal] = ()) -> PhaseRecord:
        number = len(self.rounds) + 1
        key = steps_key(number, phase)
        for signal in await self.ctx.collect(f"{key}/injected", INJECT):
            self.injections.append(str(signal.payload))
            told = {"round": number, "phase": str(phase), "text": str(signal.payload)}
            await self.ctx.emit(f"{key}/told/{len(self.injections)}", INJECTED, told)
        if await self.ctx.collect(f"{key}/ended", STOP):
            self._stopped = True
            return PhaseRecord(phase=phase, stopped=True)
        held = CouncilPhaseRun(
            ctx=self.ctx,
            spec=self.spec,
            council=self.council,
            number=number,
            phase=phase,
            past=tuple(self.rounds),
            proposals=proposals,
            injections=tuple(self.injections),
            seconds=phase_seconds(self._seconds_left, phase, self.council.rounds - number + 1, self.times),
        )
        try:
            record = await held.hold()
        finally:
            self._shortage, self._refused_by = held.shortage, held.refused_by
        self.times.append(PhaseTime(phase=phase, seconds=record.seconds))
        self._stopped = self._stopped or record.stopped
        self._poor = frozenset(record.out_of_money)
        return record

    def _complete(self, number: int, proposed: PhaseRecord, evaluated: PhaseRecord) -> bool:
        """Add a round with its score, and return whether it counts."""
        one = complete_round(number, proposed, evaluated, self.spec, self.council.seed, self.ctx.rules)
        decided = any(before.score.winner is not None for before in self.rounds)
        is_counted = counts(one, self.spec, stopped=evaluated.stopped, decided=decided)
        self.rounds += [one] if is_counted else []
        return is_counted

    async def _decide(self, number: int, evaluated: PhaseRecord) -> StopDecision | None:
        score, key = self.rounds[-1].score, round_key(number)
        funds = await self.ctx.funds(f"{key}/funds")
        cost, self.funds = Microdollars(funds.spent - self.funds.spent), funds
        convictions = [conviction_of(one.score) for one in self.rounds]
        conditions = Conditions(
            candidates=len(score.standings),
            members=len(self.council.members) - len(self._poor),
            stop_signal=self._stopped,
            money_left=funds.left,
            last_round_cost=cost,
            seconds_left=self._seconds_left,
            last_round_seconds=sum(one.seconds for one in self.times[-2:]),
        )
        decision = decide(self.spec.rule, convictions, conditions)
        told = {
            "round": number,
            "winner": score.winner,
            "support": {one.agent: one.support for one in score.standings},
            "conviction": convictions[-1],
            "evidence": decision.evidence,
            "needed": decision.needed,
        }
        await self.ctx.emit(f"{key}/scored", "council.scored", told)
        return self._told(decision, evaluated) if decision.reason is not None else None

    def _told(self, decision: StopDecision, evaluated: PhaseRecord) -> StopDecision:
        """Return a decision that says so when a stop signal left fewer evaluations than a quorum."""
        last = self.rounds[-1]
        if not evaluated.stopped or not below_quorum(last, self.spec):
            return decision
        few = f"decided by {last.score.counted} of {len(self.council.members)} evaluations; the council was stopped"
        return replace(decision, detail=few)

    def _ended(self, reason: StopReason, detail: str) -> StopDecision:
        """Return the decision to stop in a round that is not complete: what was complete before stands."""
        candidates = len(self.rounds[-1].proposals) if self.rounds else len(self.council.members)
        conditions = Conditions(candidates=candidates, members=len(self.council.members))
        known = decide(self.spec.rule, [conviction_of(one.score) for one in self.rounds], conditions)
        return StopDecision(reason=reason, evidence=known.evidence, needed=known.needed, detail=detail)

    @property
    def _seconds_left(self) -> float | None:
        if self.spec.timeout_secs is None:
            return None
        return max(0.0, self.spec.timeout_secs - sum(one.seconds for one in self.times))

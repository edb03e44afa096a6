"""A council as JSON: what it came to, and every round with its matrix."""

from collections.abc import Mapping, Sequence
from typing import Literal

from muster.councils.rules.anonymity import PositionBias
from muster.councils.rules.outcome import AssessedClaim, CouncilRound, Dissent, Synthesis
from muster.councils.rules.scoring import Contribution, Rejection, Standing, TieBreak
from muster.councils.rules.stopping import StopDecision, conviction_of
from muster.councils.rules.values import (
    ClaimStance,
    CouncilAbstention,
    CouncilMember,
    CouncilPhase,
    Evaluation,
    Proposal,
)
from muster.councils.summary import AgentCost, CouncilReport, Injection, UncountedPhase
from muster.domain.canonical import Json
from muster.domain.money import to_usd
from muster.domain.run import RunState
from muster.text.views import UNSET, UnsetType, View
from muster.text.words import moment


class ProposalView(View):
    """What a member proposes."""

    agent: str
    text: str
    claims: Sequence[str]


class CritiqueView(View):
    """What a member says of a proposal."""

    evaluator: str
    target: str
    weight: float | None
    critique: str


class AssessmentView(View):
    """What an evaluator says of a claim."""

    agent: str
    stance: ClaimStance
    reason: str


class ContestedClaimView(View):
    """A claim of the winner, and what evaluators say of it."""

    agent: str
    claim: str
    said: Sequence[AssessmentView]


class CouncilBaselineView(View):
    """One agent asked alone, and its best answer beside the council's."""

    agent: str
    samples: int
    asked: int
    missing: Sequence[CouncilAbstention]
    best: str | None
    support: Mapping[str, float]
    ahead: str | None
    tied: Sequence[str]
    council_usd: float
    baseline_usd: float
    flaw: str | None


class InjectionView(View):
    """What a council was told from outside."""

    round: int
    phase: CouncilPhase
    text: str


class MissingVoteView(View):
    """A proposal that an evaluator did not weigh."""

    evaluator: str
    target: str


class RoundView(View):
    """A round with its score matrix."""

    number: int
    winner: str | None
    tied: Sequence[str]
    tie_break: TieBreak | None
    conviction: float
    counted: int
    needed: int
    alike: Sequence[str]
    standings: Sequence[Standing]
    matrix: Sequence[Contribution]
    proposals: Sequence[ProposalView]
    critiques: Sequence[CritiqueView]
    abstentions: Sequence[CouncilAbstention]
    rejections: Sequence[Rejection]
    missing: Sequence[MissingVoteView]


class OpenPhaseView(View):
    """A phase of a round that is not complete."""

    round: int
    phase: CouncilPhase
    counts: Literal[False]
    over: bool
    proposals: Sequence[ProposalView]
    critiques: Sequence[CritiqueView]
    abstentions: Sequence[CouncilAbstention]


class PositionBiasView(View):
    """How much places in the list of candidates weigh with an evaluator; null: with all."""

    evaluator: str | None
    evaluations: int
    effect: float
    interval: Sequence[float]
    shown: bool


class MemberCostView(View):
    """What a member has written and cost."""

    agent: str
    calls: int
    tokens: int
    cost_usd: float


class CouncilView(View):
    """All that is known of a council; `withheld_for` names the persons for whose sake nothing is told of members."""

    run: str
    name: str | None
    state: RunState
    error: Mapping[str, Json] | None
    started_at: str | None
    ended_at: str | None
    question: str
    members: Sequence[CouncilMember]
    moderator: CouncilMember | None
    max_rounds: int
    verdict: str
    winner: ProposalView | None
    stop: StopDecision | None
    dissent: Sequence[Dissent]
    contested: Sequence[ContestedClaimView]
    synthesis: Synthesis | None
    baseline: CouncilBaselineView | None
    injections: Sequence[InjectionView]
    rounds: Sequence[RoundView]
    open_round: Sequence[OpenPhaseView]
    open_calls: Sequence[str]
    position_bias: Sequence[PositionBiasView]
    costs: Sequence[MemberCostView]
    spent_usd: float
    imputed_usd: float
    uncertain_usd: float
    withheld_for: Sequence[str] | UnsetType = UNSET


def council_view(report: CouncilReport) -> CouncilView:
    """Return all that is known of a council."""
    run, spec, result, outcome = report.run, report.spec, report.result, report.outcome
    return CouncilView(
        run=run.id,
        name=run.name,
        state=run.state,
        error=run.failure,
        started_at=moment(run.started_at),
        ended_at=moment(run.ended_at),
        question=spec.question,
        members=spec.members,
        moderator=spec.moderator,
        max_rounds=spec.rounds,
        verdict=report.verdict,
        winner=None if report.winner is None else _proposal_view(report.winner),
        stop=None if result is None else result.stop,
        dissent=[] if result is None else result.dissent,
        contested=[] if result is None else [_claim_view(claim) for claim in result.contested],
        synthesis=None if outcome is None else outcome.synthesis,
        baseline=_baseline_view(report),
        injections=[_injection_view(injection) for injection in report.injections],
        rounds=[_round_view(past) for past in report.rounds],
        open_round=[_phase_view(phase) for phase in report.open_round],
        open_calls=report.open_calls,
        position_bias=[_bias_view(bias) for bias in report.biases],
        costs=[_cost_view(cost) for cost in report.costs],
        spent_usd=to_usd(run.spent.billed),
        imputed_usd=to_usd(run.spent.imputed),
        uncertain_usd=to_usd(run.spent.uncertain),
    )


def _injection_view(injection: Injection) -> InjectionView:
    return InjectionView(round=injection.round_number, phase=injection.phase, text=injection.text)


def _bias_view(bias: PositionBias) -> PositionBiasView:
    return PositionBiasView(
        evaluator=bias.evaluator or None,
        evaluations=bias.evaluations,
        effect=bias.effect,
        interval=[bias.interval.low, bias.interval.high],
        shown=bias.is_shown,
    )


def _cost_view(cost: AgentCost) -> MemberCostView:
    return MemberCostView(agent=cost.agent, calls=cost.calls, tokens=cost.tokens, cost_usd=to_usd(cost.cost))


def _round_view(past: CouncilRound) -> RoundView:
    score = past.score
    return RoundView(
        number=past.number,
        winner=score.winner,
        tied=score.tied,
        tie_break=score.tie_break,
        conviction=conviction_of(score),
        counted=score.counted,
        needed=score.needed,
        alike=score.alike,
        standings=score.standings,
        matrix=score.contributions,
        proposals=_proposal_views(past.proposals),
        critiques=_critique_views(past.evaluations),
        abstentions=past.abstentions,
        rejections=score.rejections,
        missing=[MissingVoteView(evaluator=evaluator, target=target) for evaluator, target in score.missing],
    )


def _phase_view(phase: UncountedPhase) -> OpenPhaseView:
    record = phase.record
    return OpenPhaseView(
        round=phase.round_number,
        phase=record.phase,
        counts=False,
        over=phase.is_over,
        proposals=_proposal_views(record.proposals),
        critiques=_critique_views(record.evaluations),
        abstentions=record.abstentions,
    )


def _proposal_views(proposals: Sequence[Proposal]) -> Sequence[ProposalView]:
    return [_proposal_view(proposal) for proposal in proposals]


def _proposal_view(proposal: Proposal) -> ProposalView:
    return ProposalView(agent=proposal.agent, text=proposal.text, claims=proposal.claims)


def _critique_views(evaluations: Sequence[Evaluation]) -> Sequence[CritiqueView]:
    return [
        CritiqueView(evaluator=evaluation.agent, target=vote.target, weight=vote.weight, critique=vote.critique)
        for evaluation in evaluations
        for vote in evaluation.votes
    ]


def _claim_view(claim: AssessedClaim) -> ContestedClaimView:
    said = [AssessmentView(agent=who, stance=what.stance, reason=what.reason) for who, what in claim.said]
    return ContestedClaimView(agent=claim.agent, claim=claim.claim, said=said)


def _baseline_view(report: CouncilReport) -> CouncilBaselineView | None:
    outcome = report.outcome
    if outcome is None or outcome.baseline is None:
        return None
    compared = outcome.baseline
    score, best = compared.score, compared.best
    return CouncilBaselineView(
        agent=compared.agent,
        samples=len(compared.samples),
        asked=compared.asked,
        missing=compared.missing,
        best=None if best is None else best.text,
        support={} if score is None else {standing.agent: standing.support for standing in score.standings},
        ahead=None if score is None or score.tied else score.winner,
        tied=[] if score is None else score.tied,
        council_usd=to_usd(outcome.spent),
        baseline_usd=to_usd(compared.spent),
        flaw=compared.flaw or None,
    )

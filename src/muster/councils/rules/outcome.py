"""The outcome of a council: its rounds, the winning proposal, contested claims, and who dissents. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from muster.councils.rules.scoring import RoundScore
from muster.councils.rules.stopping import StopDecision
from muster.councils.rules.values import (
    ClaimAssessment,
    ClaimStance,
    CouncilAbstention,
    CouncilMember,
    CouncilPhase,
    Evaluation,
    Proposal,
)
from muster.domain.money import NOTHING, Microdollars


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilRound:
    """One complete round."""

    number: int  # from 1
    proposals: tuple[Proposal, ...]
    evaluations: tuple[Evaluation, ...]
    abstentions: tuple[CouncilAbstention, ...]
    score: RoundScore

    def proposal_of(self, agent: str) -> Proposal | None:
        """Return what an agent proposed in this round."""
        return next((one for one in self.proposals if one.agent == agent), None)

    @property
    def counted(self) -> tuple[Evaluation, ...]:
        """The evaluations that count, by the names of their agents."""
        names = {cell.evaluator for cell in self.score.contributions}
        return tuple(sorted((one for one in self.evaluations if one.agent in names), key=lambda one: one.agent))


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessedClaim:
    """A claim of a proposal, and what each evaluator said about it."""

    agent: str  # whose claim it is
    claim: str
    said: tuple[tuple[str, ClaimAssessment], ...]  # evaluator and assessment, by evaluator

    @property
    def is_contested(self) -> bool:
        """Return whether anybody contests it; else somebody verified it."""
        return any(one.stance is ClaimStance.CONTESTED for _, one in self.said)

    @property
    def opinions(self) -> tuple[tuple[ClaimStance, str, tuple[str, ...]], ...]:
        """Each stance and reason once, with all evaluators that gave it; contesting ones first."""
        found: dict[tuple[ClaimStance, str], list[str]] = {}
        for evaluator, one in self.said:
            found.setdefault((one.stance, one.reason), []).append(evaluator)
        ranked = sorted(found.items(), key=lambda item: (item[0][0], -len(item[1]), item[1]))
        return tuple((stance, reason, tuple(names)) for (stance, reason), names in ranked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dissent:
    """An evaluator that is against the winner, or prefers another proposal."""

    agent: str
    weight: float  # that it gave to the winner
    preferred: str  # the proposal that it gave the highest weight; "" when it is against every one
    critique: str  # of the winner


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilResult:
    """What a council came to."""

    question: str
    members: tuple[CouncilMember, ...]
    rounds: tuple[CouncilRound, ...]  # those that are complete
    stop: StopDecision
    open_round: int | None = None  # the one that was begun after them, in which it ended before it was complete

    @property
    def winner(self) -> Proposal | None:
        """The winning proposal of the last round that has one, as it stands."""
        deciding = self.deciding
        return None if deciding is None else deciding.proposal_of(deciding.score.winner or "")

    @property
    def deciding(self) -> CouncilRound | None:
        """The last round that has a winner."""
        return next((one for one in reversed(self.rounds) if one.score.winner is not None), None)

    @property
    def undecided(self) -> str:
        """Why no proposal won, by the last round; empty when one did, or no round is complete."""
        if self.deciding is not None:
            return ""
        return self.rounds[-1].score.undecided if self.rounds else ""

    @property
    def overturned(self) -> str:
        """Which round decided, where a later one has no winner: the members were against its proposal in the end."""
        deciding, last = self.deciding, self.rounds[-1] if self.rounds else None
        if deciding is None or last is None or deciding is last:
            return ""
        return f"in round {deciding.number}; round {last.number}, the last, has no winner: {last.score.undecided}"

    @property
    def decided_by(self) -> str:
        """How many evaluations decided, where some members gave none that counts.

        Empty where a stop left fewer than the quorum: its reason says so.
        """
        score = None if self.deciding is None else self.deciding.score
        if score is None or not score.needed <= score.counted < len(self.members) or not score.needed:
            return ""
        return f"decided by {score.counted} of {len(self.members)} evaluations"

    @property
    def dissent(self) -> tuple[Dissent, ...]:
        """Who does not agree with the winner in the deciding round."""
        return () if self.deciding is None else dissent_in(self.deciding)

    @property
    def contested(self) -> tuple[AssessedClaim, ...]:
        """Claims of the deciding round that somebody contests."""
        return () if self.deciding is None else tuple(one for one in claims_in(self.deciding) if one.is_contested)


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """What an agent made of the winning proposal and the objections to it."""

    agent: str
    text: str = ""
    kept: tuple[str, ...] = ()  # who dissents and is quoted in it
    lost: tuple[str, ...] = ()  # who dissents and is not
    flaw: str = ""  # why there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineComparison:
    """One agent asked alone, as often as the council's money allows, and its best answer beside the council's."""

    agent: str
    samples: tuple[Proposal, ...] = ()  # named agent#1, agent#2 …
    missing: tuple[CouncilAbstention, ...] = ()  # samples without an answer, and members that did not weigh them
    score: RoundScore | None = None  # of the samples and the council's answer, by the members of the council
    spent: Microdollars = NOTHING  # for the samples, failed ones included
    flaw: str = ""  # why there is no comparison

    @property
    def asked(self) -> int:
        """How many samples were asked for, those without an answer included."""
        return len(self.samples) + sum(one.phase is CouncilPhase.PROPOSE for one in self.missing)

    @property
    def undecided(self) -> str:
        """Why no answer is ahead; empty when one is."""
        if self.score is None or (self.score.winner is not None and not self.score.tied):
            return ""
        return f"tie of {', '.join(self.score.tied)}" if self.score.tied else "no answer is supported"

    @property
    def best(self) -> Proposal | None:
        """The sample with the highest support."""
        by_name = {one.agent: one for one in self.samples}
        ranked = () if self.score is None else self.score.standings
        return next((by_name[one.agent] for one in ranked if one.agent in by_name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilOutcome:
    """All that the run of a council leaves: its result, and what was made of it."""

    result: CouncilResult
    seed: int  # of labels and draws
    spent: Microdollars = NOTHING  # by the rounds
    synthesis: Synthesis | None = None
    baseline: BaselineComparison | None = None


def claims_in(one: CouncilRound) -> tuple[AssessedClaim, ...]:
    """Return all claims of a round that were assessed in an evaluation that counts, by author and claim."""
    said: dict[tuple[str, str], dict[str, ClaimAssessment]] = {}
    for evaluator, author, assessment in _assessments(one):
        said.setdefault((author, assessment.claim), {})[evaluator] = assessment
    return tuple(
        AssessedClaim(agent=author, claim=claim, said=tuple(sorted(by.items(), key=lambda item: item[0])))
        for (author, claim), by in sorted(said.items(), key=lambda item: item[0])
    )


def _assessments(one: CouncilRound) -> Iterator[tuple[str, str, ClaimAssessment]]:
    for evaluation in one.counted:
        for vote in evaluation.votes:
            if vote.target != evaluation.agent:
                yield from ((evaluation.agent, vote.target, assessment) for assessment in vote.claims)


def dissent_in(one: CouncilRound) -> tuple[Dissent, ...]:
    """Return every evaluator that weighed the winner below zero or below another proposal, by name."""
    return tuple(found for evaluation in one.counted if (found := _dissent(evaluation, one)) is not None)


def _dissent(evaluation: Evaluation, one: CouncilRound) -> Dissent | None:
    weights = {vote.target: vote.weight for vote in evaluation.votes if vote.target != evaluation.agent}
    given = {target: weight for target, weight in weights.items() if weight is not None}
    winner = one.score.winner
    if winner is None or winner not in given:
        return None
    best = min(given, key=lambda target: (-given[target], target != winner, target))
    if given[winner] >= 0 and best == winner:
        return None
    critique = next(vote.critique for vote in evaluation.votes if vote.target == winner)
    return Dissent(
        agent=evaluation.agent,
        weight=given[winner],
        preferred=best if given[best] >= 0 else "",
        critique=critique,
    )

"""What a member knows when it is asked: its own past, the candidates under labels, and what people said. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from random import Random

from muster.councils.rules.anonymity import CandidateLabels, labels_for, without_labels, without_names
from muster.councils.rules.outcome import AssessedClaim, CouncilRound, claims_in
from muster.councils.rules.scoring import RoundScore
from muster.councils.rules.values import BENCHED, CouncilMember, CouncilPhase, Proposal
from muster.domain.media import Media


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCandidate:
    """A proposal as a member sees it, without the names of agents."""

    label: str
    text: str
    claims: tuple[str, ...] = ()
    score: float | None = None  # from -1 to 1, where it was evaluated already


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMemory:
    """What a member is told about its own last proposal, and about phases that it missed."""

    proposal: str = ""
    score: float | None = None  # from -1 to 1
    critiques: tuple[str, ...] = ()
    contested: tuple[str, ...] = ()  # claims, with the reasons
    verified: tuple[str, ...] = ()
    scratchpad: str = ""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Council:
    """What stays the same in all rounds."""

    question: str
    members: tuple[CouncilMember, ...]
    rounds: int  # at most
    seed: int | str
    hidden: tuple[str, ...] = ()  # agents besides the members whose names nobody reads
    media: tuple[Media, ...] = ()  # that belong to the question

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all members."""
        return tuple(member.name for member in self.members)

    def anonymous(self, text: str) -> str:
        """Return a text without the names of agents."""
        return without_names(text, (*self.names, *self.hidden))


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilTurn:
    """All that one member is asked with in one phase of one round."""

    council: Council
    member: CouncilMember
    phase: CouncilPhase
    round_number: int
    labels: CandidateLabels
    candidates: tuple[ShownCandidate, ...]
    memory: MemberMemory
    injections: tuple[str, ...] = ()


def propose_turn(
    council: Council, member: CouncilMember, past: Sequence[CouncilRound], injections: Sequence[str] = ()
) -> CouncilTurn:
    """Return the turn of a member that is to propose: from the second round on it sees what the others proposed."""
    proposals = past[-1].proposals if past else ()
    return _turn(council, member, CouncilPhase.PROPOSE, proposals, past, injections)


def evaluate_turn(
    council: Council,
    member: CouncilMember,
    proposals: Sequence[Proposal],
    past: Sequence[CouncilRound],
    injections: Sequence[str] = (),
) -> CouncilTurn:
    """Return the turn of a member that is to evaluate the proposals of the others in the round after the past ones."""
    return _turn(council, member, CouncilPhase.EVALUATE, proposals, past, injections)


def _turn(
    council: Council,
    member: CouncilMember,
    phase: CouncilPhase,
    proposals: Sequence[Proposal],
    past: Sequence[CouncilRound],
    injections: Sequence[str],
) -> CouncilTurn:
    number, authors = len(past) + 1, [one.agent for one in proposals]
    labels = labels_for(member.name, authors, round_number=number, phase=phase, seed=council.seed)
    score = past[-1].score if phase is CouncilPhase.PROPOSE and past else None
    return CouncilTurn(
        council=council,
        member=member,
        phase=phase,
        round_number=number,
        labels=labels,
        candidates=tuple(_shown(council, labels, proposals, score)),
        memory=memory_of(council, member, past),
        injections=tuple(injections),
    )


def _shown(
    council: Council, labels: CandidateLabels, proposals: Sequence[Proposal], score: RoundScore | None
) -> Iterator[ShownCandidate]:
    by_agent = {one.agent: one for one in proposals}
    for label, agent in labels.shown:
        proposal = by_agent[agent]
        yield ShownCandidate(
            label=label,
            text=council.anonymous(proposal.text),
            claims=tuple(council.anonymous(claim) for claim in proposal.claims),
            score=None if score is None else mean_score(score, agent),
        )


def mean_score(score: RoundScore, agent: str) -> float | None:
    """Return the mean of what evaluators contributed to a proposal, from -1 to 1; None when nobody weighed it."""
    given = [cell.value for cell in score.contributions if cell.target == agent]
    return round(fsum(given) / len(given), 6) if given else None


def memory_of(council: Council, member: CouncilMember, past: Sequence[CouncilRound]) -> MemberMemory:
    """Return what a member is told of the rounds so far; critiques come in a drawn order and without names."""
    notices = tuple(_notices(member.name, past[-1])) if past else ()
    own = next((one for one in reversed(past) if one.proposal_of(member.name) is not None), None)
    proposal = None if own is None else own.proposal_of(member.name)
    if own is None or proposal is None:
        return MemberMemory(notices=notices)
    claims = [one for one in claims_in(own) if one.agent == member.name]
    return MemberMemory(
        proposal=proposal.text,
        score=mean_score(own.score, member.name),
        critiques=tuple(_critiques(council, member.name, own)),
        contested=tuple(_claim(council, claim, own) for claim in claims if claim.is_contested),
        verified=tuple(_claim(council, claim, own) for claim in claims if not claim.is_contested),
        scratchpad=proposal.scratchpad,
        notices=notices,
    )


def _critiques(council: Council, agent: str, one: CouncilRound) -> list[str]:
    said = [_anonymous(council, evaluator, agent, one, text) for evaluator, text in _said_of(agent, one)]
    draw = Random(f"{council.seed}/critiques/{one.number}/{agent}")  # noqa: S311 - an order, no secret
    draw.shuffle(said)
    return [text for text in said if text]


def _said_of(agent: str, one: CouncilRound) -> Iterator[tuple[str, str]]:
    for evaluation in one.counted:
        if evaluation.agent != agent:
            yield from ((evaluation.agent, vote.critique) for vote in evaluation.votes if vote.target == agent)


def _anonymous(council: Council, evaluator: str, agent: str, one: CouncilRound, text: str) -> str:
    authors = [proposal.agent for proposal in one.proposals]
    labels = labels_for(evaluator, authors, round_number=one.number, phase=CouncilPhase.EVALUATE, seed=council.seed)
    return without_labels(council.anonymous(text), labels, agent).strip()


def _claim(council: Council, assessed: AssessedClaim, one: CouncilRound) -> str:
    said = set()
    for evaluator, assessment in assessed.said:
        reason = _anonymous(council, evaluator, assessed.agent, one, assessment.reason)
        said.add(f"{assessment.stance}: {reason}" if reason else str(assessment.stance))
    return f"{assessed.claim} ({'; '.join(sorted(said))})"


def _notices(agent: str, last: CouncilRound) -> Iterator[str]:
    """Yield what a member is told about phases of the last round in which it had no part."""
    for one in last.abstentions:
        if one.agent == agent and one.cause in BENCHED:
            why = one.reason or str(one.cause).replace("_", " ")
            yield f"You had no part in the phase {one.phase} of round {last.number}: {why}"

"""What a council is made of: members, and what each of them said in one phase of a round. Decides nothing."""

from dataclasses import dataclass
from enum import StrEnum

from muster.councils.order import MemberFields
from muster.domain.budget import Allowance
from muster.domain.money import from_usd

MAX_SCRATCHPAD = 32 * 1024  # bytes in UTF-8, as the exec protocol has it
MIN_WEIGHT, MAX_WEIGHT = -100, 100


class CouncilPhase(StrEnum):
    """The two halves of a round."""

    PROPOSE = "propose"  # every member writes a proposal
    EVALUATE = "evaluate"  # every member weighs the proposals of the others


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilMember(MemberFields):
    """One agent of a council, with what only this council tells it about itself: a member, or the moderator."""

    name: str  # the agent's name, unique in its council
    person: bool = False  # answers in plain text

    @property
    def allowance(self) -> Allowance | None:
        """What all its calls may cost together; None: as much as the council has."""
        return None if self.budget_usd is None else Allowance(name=self.name, cap=from_usd(self.budget_usd))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a member proposes in one round."""

    agent: str
    text: str
    claims: tuple[str, ...] = ()  # statements that others can contest or verify one by one
    scratchpad: str = ""  # notes to itself, which come back in its next round
    tokens: int = 0  # that were written for it; the fewest decide a tie


class ClaimStance(StrEnum):
    """What an evaluator says about one claim."""

    CONTESTED = "contested"
    VERIFIED = "verified"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimAssessment:
    """What an evaluator says about one claim of a proposal, and why."""

    claim: str
    stance: ClaimStance
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """What an evaluator says about one proposal."""

    target: str  # the agent that wrote the proposal
    weight: float | None  # from -100 to 100, neutral is 0; None: it abstains from this one
    critique: str = ""
    claims: tuple[ClaimAssessment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedVote:
    """A vote that was left out of an evaluation when it was read, and why."""

    target: str  # the agent that wrote the proposal, or what was named instead
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a member says about the proposals of one round."""

    agent: str
    votes: tuple[Vote, ...]
    coerced: bool = False  # made of a text that holds no evaluation: shown, never counted
    rejected: tuple[RejectedVote, ...] = ()


class AbstentionCause(StrEnum):
    """Why a member has no part in a phase."""

    SKIPPED = "skipped"  # it said so itself
    UNREADABLE = "unreadable"  # its answer could not be read, nor could the repaired one
    FAILED = "failed"  # the call failed
    LATE = "late"  # it did not answer in time
    NOT_STARTED = "not_started"  # there was no time or money left to ask it


# The council decided these, not the member: it is told in the next round.
BENCHED = frozenset(AbstentionCause) - {AbstentionCause.SKIPPED}


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilAbstention:
    """A member without a part in one phase, and the reason."""

    agent: str
    phase: CouncilPhase
    cause: AbstentionCause
    reason: str = ""

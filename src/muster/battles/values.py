"""What a battle is made of: messages, decisions and endings. Decides nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby

from muster.battles.kind import BATTLE
from muster.domain.call import Reply, Role
from muster.domain.errors import BudgetExhausted
from muster.domain.money import NOTHING, Microdollars
from muster.domain.run import TERMINAL, Run, RunState

WORKLOAD = BATTLE.workload
# How the reasons of validators begin that gave no verdict; a judge that gave none has no confidence.
_FAILED_VALIDATORS = (
    "no verdict: ",
    "the answer of the program is not valid: ",
    "the validators of this reply took too long together",
)
MESSAGE_EVENT, DECISION_EVENT = "battle.message", "battle.decision"


class BattleEnding(StrEnum):
    """Why a battle ended."""

    GOAL = "goal"  # its goal was reached
    LIMIT = "limit"  # the agent under test has said all that it may, or nothing gets better
    ERROR = "error"  # a side could not answer
    MANUAL = "manual"  # somebody canceled it
    TIMEOUT = "timeout"  # its time is over
    BUDGET = "budget"  # its money is used up


PLAYED = frozenset({BattleEnding.GOAL, BattleEnding.LIMIT})  # it came to an end by its own rules
PLATEAU = "plateau"  # the detail of a battle that ended because nothing got better


class GoalVerdict(StrEnum):
    """Whether a goal is reached."""

    YES = "yes"
    NO = "no"
    UNCERTAIN = "uncertain"


class DecisionSource(StrEnum):
    """Who decided, in the order in which they are asked."""

    VALIDATOR = "validator"  # a deterministic check, or a program; final when it says yes or no
    JUDGE = "judge"  # a small model
    CONFIRM = "confirm"  # the one that a yes of the small model needs


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleMessage:
    """One message of a conversation; the agent under test is the assistant, its counterpart the user."""

    seq: int  # from one
    role: Role
    content: str
    agent: str = ""  # who wrote it; empty: it was given
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Microdollars = NOTHING
    latency_ms: int = 0
    quality: str = "good"
    created_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleDecision:
    """What one source said after one reply of the agent under test."""

    turn: int
    source: DecisionSource
    verdict: GoalVerdict
    confidence: float | None = None  # that the goal is reached, from 0 to 1; None: it did not say
    criteria: tuple[str, ...] = ()  # that were applied
    reason: str = ""
    model: str = ""
    latency_ms: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Microdollars = NOTHING
    created_at: float = 0.0

    @property
    def has_failed(self) -> bool:
        """Return whether its source gave no verdict: it could not be asked, or its answer cannot be used."""
        if self.verdict is not GoalVerdict.UNCERTAIN or self.confidence is not None:
            return False
        return self.source is not DecisionSource.VALIDATOR or self.reason.startswith(_FAILED_VALIDATORS)

    def paid(self, replies: Sequence[Reply]) -> "BattleDecision":
        """Return it with the tokens, the cost and the time of the replies that it took."""
        return replace(
            self,
            latency_ms=round(1000 * sum(one.timings.shown for one in replies)),
            tokens_in=sum(one.usage.all_input for one in replies),
            tokens_out=sum(one.usage.output for one in replies),
            cost=Microdollars(sum(one.cost for one in replies)),
        )


def failed_verdict(decisions: Iterable[BattleDecision]) -> str:
    """Return why nobody has judged all replies of a battle; empty where each was judged.

    A judge is shown the whole conversation, so that what it says of a reply holds for those before it too. A validator
    is shown one reply, and one that leaves it to the next does not replace another that failed.
    """
    flaw = ""
    for _, turn in groupby(decisions, key=lambda one: one.turn):
        made = list(turn)
        *_, last = made
        if last.source is not DecisionSource.VALIDATOR and not last.has_failed:
            flaw = ""
        elif last.verdict is GoalVerdict.UNCERTAIN:
            flaw = next((one.reason for one in reversed(made) if one.has_failed), flaw)
    return flaw


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleOutcome:
    """The result of a battle that came to its end by its own rules."""

    ending: BattleEnding
    turns: int
    conversation: str  # the id of its run
    detail: str = ""
    closing: tuple[tuple[str, str], ...] = ()  # the last messages, shortened: role and text
    unjudged: str = ""  # why nobody could say whether its goal was reached


_ENDINGS: Mapping[RunState, BattleEnding] = {
    RunState.CANCELED: BattleEnding.MANUAL,
    RunState.TIMEOUT: BattleEnding.TIMEOUT,
}


def ending_of(run: Run) -> BattleEnding | None:
    """Return why the battle of a run ended; None while it goes on."""
    if run.state not in TERMINAL:
        return None
    if run.state is RunState.COMPLETED:
        found = run.result.get("ending") if isinstance(run.result, Mapping) else None
        return BattleEnding(found) if found in tuple(BattleEnding) else BattleEnding.ERROR
    if run.state is RunState.FAILED:
        return BattleEnding.BUDGET if run.ended_reason == BudgetExhausted.code else BattleEnding.ERROR
    return _ENDINGS[run.state]


def detail_of(run: Run) -> str | None:
    """Return more about the end of a battle: `plateau`, or what went wrong."""
    if run.state is RunState.COMPLETED and isinstance(run.result, Mapping):
        return str(run.result.get("detail") or "") or None
    return None if run.error is None else str(run.error.get("message", "")) or None


def message_key(seq: int) -> str:
    """Return the key of the event of a message."""
    return f"message/{seq:03}"


def decision_key(turn: int, number: int) -> str:
    """Return the key of the event of a decision; decisions of a turn are numbered from one."""
    return f"decision/{turn:02}/{number:02}"

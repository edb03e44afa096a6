"""What was seen when a case was run, and what was said about it: checks, judgements, results."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.domain.call import Quality, ToolCall
from muster.domain.canonical import Json
from muster.domain.case import Status
from muster.domain.money import NOTHING, Microdollars
from muster.suites.values.case import Evaluator

NOT_RUN = frozenset({Status.SKIPPED, Status.WAITING})
OUT_OF_TIME = frozenset({"out_of_time", "timed_out", "stalled"})  # codes of failures that were a matter of time


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What an agent did with a case once."""

    answers: tuple[str, ...] = ()  # one for each turn of the user's; the last one counts where nothing else is said
    tool_calls: tuple[ToolCall, ...] = ()  # observed, in order, over all turns
    quality: Quality = Quality.GOOD  # of the first answer that is not good, if there is one
    error: Mapping[str, Json] | None = None  # as recorded; then there is no last answer
    timed_out: bool = False
    seconds: float = 0.0  # on the wire
    cost: Microdollars = NOTHING
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0  # of these
    model: str = ""
    keys: tuple[str, ...] = ()  # of its calls in the journal, in order

    @property
    def text(self) -> str:
        """The last answer."""
        return self.answers[-1] if self.answers else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a check found."""

    name: str  # "contains", "tool_sequence", "golden", "quality", …
    passed: bool
    expected: str = ""  # short, for a person
    why: str = ""  # what was found instead, with evidence; empty when it passed
    broken: bool = False  # the check could not be done at all: a pattern that takes for ever, a damaged schema


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemScore:
    """What one rubric item came to; without a score it was not judged."""

    id: str
    weight: float = 1.0
    critical: bool = False
    score: float | None = None
    by: str = ""  # "auto_check", "judge", "process"
    rationale: str = ""
    evidence: str = ""  # quoted from the answer
    quoted: bool | None = None  # whether the evidence really stands in the answer; None: none was given
    samples: tuple[float, ...] = ()  # the scores of all samples, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberVerdict:
    """The verdict of one member of a council that judges, as it stood in the deciding round."""

    member: str
    score: float | None = None  # the weighted mean of what it scored; None: it gave no verdict that can be read
    passed: bool | None = None
    won: bool = False  # its verdict is that of the council
    flaw: str = ""  # why there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a judge, or a command of the user's, said about one answer. One that failed is a value too."""

    by: str  # the judge's name, or the command
    version: str = ""  # of the way it is asked
    model: str = ""
    items: tuple[ItemScore, ...] = ()
    passed: bool | None = None  # said outright, by a command
    samples: int = 1  # how many were asked for
    failures: tuple[str, ...] = ()  # why samples gave nothing, after repair
    # Share of pairs of samples, or of members of a council, that agree on passing; None with fewer than two.
    agreement: float | None = None
    cost: Microdollars = NOTHING
    keys: tuple[str, ...] = ()  # of its calls in the journal; of a council that of its run
    members: tuple[MemberVerdict, ...] = ()  # of a council
    votes: str = ""  # how many evaluations of a council decided, if not all: "decided by 2 of 3 evaluations"
    tie: str = ""  # how a council decided between verdicts with the same support: "tie, decided by draw"

    @property
    def failed(self) -> bool:
        """Return whether it gave nothing that counts."""
        return not self.items and self.passed is None

    @property
    def spread(self) -> float | None:
        """How far the scores of the members of a council are apart; None with fewer than two."""
        scores = [one.score for one in self.members if one.score is not None]
        return max(scores) - min(scores) if len(scores) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case, asked of one subject in one epoch, with everything that led to its status."""

    case: str
    subject: str
    epoch: int
    status: Status
    score: float | None = None
    threshold: float = 0.0
    why: str = ""  # one sentence, empty when it passed
    evaluators: tuple[Evaluator, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    items: tuple[ItemScore, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    golden: float | None = None  # likeness
    quality: Quality = Quality.GOOD
    seconds: float = 0.0
    cost: Microdollars = NOTHING  # of the agent
    judge_cost: Microdollars = NOTHING
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0  # of these
    model: str = ""
    tools: tuple[str, ...] = ()  # names of the tools that were called, in order
    keys: tuple[str, ...] = ()  # of the agent's calls in the journal
    error: Mapping[str, Json] | None = field(default=None)

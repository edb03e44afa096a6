"""A chain as values: its steps, its inputs, and one run of it as it is stored."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from muster.domain.canonical import Json
from muster.domain.effort import with_effort
from muster.domain.isolation import Isolation
from muster.pool.chains.kind import CHAIN
from muster.pool.setup import TreeSetup

WORKLOAD = CHAIN.workload
MAX_STEPS = 200
MAX_ITEMS = 1_000  # of one for_each
MAX_ROWS = 10_000
MAX_RETRIES = 100
MAX_BACKOFF = 3_600.0  # seconds
USUAL_BACKOFF = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainInput:
    """One input of a chain."""

    required: bool = False
    default: Json = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainStep:
    """One step: a prompt for an agent, or a command."""

    name: str
    prompt: str = ""
    command: tuple[str, ...] = ()
    agent: str = ""  # of a prompt, and of the recovery of a command
    system: str = ""
    model: str = ""  # of a CLI agent or Claude Code, for this step
    tools: tuple[str, ...] = ()
    max_tokens: int | None = None
    budget_usd: float | None = None
    timeout_secs: float | None = None
    dispatch: str | None = None  # live, flex or batch; None: as the run is
    when: str = ""
    for_each: str = ""
    extract: Mapping[str, str] = field(default_factory=dict)  # variables and their paths
    schema: Mapping[str, Json] | None = None
    retries: int = 0
    backoff_secs: float = USUAL_BACKOFF
    recovery: str = ""
    check: tuple[str, ...] = ()

    @property
    def is_command(self) -> bool:
        """Return whether it runs a command."""
        return bool(self.command)

    @property
    def asks_agent(self) -> bool:
        """Return whether an agent is asked in it, be it only to recover."""
        return not self.command or bool(self.recovery)

    def with_agent(self, agent: str) -> "ChainStep":
        """Return the step with an agent, if it asks one and names none."""
        return replace(self, agent=agent) if self.asks_agent and not self.agent else self

    def with_effort(self, effort: str) -> "ChainStep":
        """Return the step whose agent is asked with an effort, if it asks one."""
        return replace(self, agent=with_effort(self.agent, effort)) if self.asks_agent else self

    @property
    def settings(self) -> dict[str, Json] | None:
        """Return what it sets of its agent."""
        model: dict[str, Json] = {"model": self.model} if self.model else {}
        return model | ({"tools": list(self.tools)} if self.tools else {}) or None

    @property
    def most_tries(self) -> int:
        """Return how often one item of it is tried in one run."""
        return 1 + self.retries + bool(self.recovery)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The steps of a chain in groups: those of one group are run at the same time."""

    name: str
    groups: tuple[tuple[ChainStep, ...], ...]
    inputs: Mapping[str, ChainInput] = field(default_factory=dict)
    isolation: Isolation | None = None  # None: nothing is said

    @property
    def steps(self) -> tuple[ChainStep, ...]:
        """Return all steps in order."""
        return tuple(step for group in self.groups for step in group)

    def with_effort(self, effort: str | None) -> "Chain":
        """Return the chain whose agents are asked with an effort; those that name their own keep it."""
        if effort is None:
            return self
        return replace(self, groups=tuple(tuple(step.with_effort(effort) for step in group) for group in self.groups))


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownValues:
    """What the steps before gave, by the names that templates and conditions use."""

    previous: str | None = None
    steps: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)

    def after(self, records: "tuple[StepRecord, ...]") -> "KnownValues":
        """Return what is known after the steps of a group; a skipped step leaves the output before it in place."""
        done = [record for record in records if record.status is StepStatus.COMPLETED]
        previous = "\n\n".join(record.output for record in done) if done else self.previous
        found = {record.name: {**record.values, "output": record.output} for record in done}
        return KnownValues(previous=previous, steps={**self.steps, **found})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSpec:
    """One run of a chain: with one input, or with rows of them, each in a child run."""

    chain: Chain
    folder: str = "."  # in which commands are run
    input: Mapping[str, Json] = field(default_factory=dict)
    rows: tuple[Mapping[str, Json], ...] = ()
    # Of a part of a chain: the steps before it with their variables, and what they gave.
    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    known: KnownValues = field(default_factory=KnownValues)
    tree: str = ""  # the folder in the working tree of the chain, once it is there
    compares: bool = False  # the user's repository, before and after
    # Of a chain with a working tree; the first also of one that compares.
    git_environment: Mapping[str, str] = field(default_factory=dict)
    copy: tuple[str, ...] = ()  # files that the tree gets
    setup: TreeSetup = field(default_factory=TreeSetup)

    def part(self, step: ChainStep) -> "ChainSpec":
        """Return the spec of a child run that does one step, with what is known before it."""
        before = dict(self.before)
        for group in self.chain.groups:
            if step in group:
                break
            before |= {one.name: tuple(one.extract) for one in group}
        alone = replace(step, budget_usd=None, when="")
        chain = Chain(name=self.chain.name, groups=((alone,),), inputs=self.chain.inputs)
        return replace(self, chain=chain, before=before, compares=False)

    def row(self, index: int) -> "ChainSpec":
        """Return the spec of the child run for one row."""
        return replace(self, input={**self.input, **self.rows[index]}, rows=(), compares=False)


class StepStatus(StrEnum):
    """How a step of a run stands."""

    PENDING = "pending"  # its turn has not come
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"  # its condition did not hold, or the chain ended before


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """What became of a step."""

    name: str
    status: StepStatus
    output: str = ""
    values: Mapping[str, Json] = field(default_factory=dict)  # extracted
    cost: int = 0  # microdollars, of all tries
    retries_used: int = 0
    items: int | None = None  # of a for_each
    error: str = ""
    skipped: str = ""  # why


def step_key(name: str) -> str:
    """Return the key below which everything of a step is."""
    return f"step/{name}"


def record_key(name: str) -> str:
    """Return the key of the record of a step that was completed or skipped."""
    return f"{step_key(name)}/record"


def try_key(name: str, item: int | None, number: int) -> str:
    """Return the key of a call: which step, which item, and which try."""
    within = "" if item is None else f"/item/{item}"
    return f"{step_key(name)}{within}/try/{number}"


def row_key(index: int) -> str:
    """Return the key of the child run for a row."""
    return f"row/{index}"


def numbered(chain: Chain) -> Iterator[tuple[int, ChainStep]]:
    """Yield the steps with their numbers, from one."""
    return enumerate(chain.steps, 1)

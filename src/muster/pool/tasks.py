"""A task: what a slot is to do, where it stands, and what it came to. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.domain.run import Run, RunState
from muster.git.layout import Isolation
from muster.text import typed
from muster.text.words import choice_error

WORKLOAD = "task"
REVIEW = "review"  # the channel on which a task hears what a person thinks of it
INBOX = "inbox"  # the channel of a slot's messages
TREE_KEY = "tree/told"  # in the journal of a task: its working tree
SLOT_KEY = "slot"  # in the journal of a task: the slot that it was given, with its settings at that time

MOST_PROMPT = 1_000_000  # characters
MOST_REJECTIONS = 100


class OnPermission(StrEnum):
    """What a task does whose agent asks for a person's permission."""

    FAIL = "fail"
    ASK = "ask"  # it waits for a decision, and the agent's session is continued with it


class TaskState(StrEnum):
    """Where a task stands."""

    PENDING = "pending"
    RUNNING = "running"
    PENDING_REVIEW = "pending_review"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"


_STATES: Mapping[RunState, TaskState] = {
    RunState.QUEUED: TaskState.PENDING,
    RunState.INTERRUPTED: TaskState.PENDING,
    RunState.RUNNING: TaskState.RUNNING,
    RunState.WAITING: TaskState.PENDING_REVIEW,
    RunState.COMPLETED: TaskState.COMPLETED,
    RunState.FAILED: TaskState.FAILED,
    RunState.TIMEOUT: TaskState.FAILED,
    RunState.CANCELED: TaskState.CANCELED,
}


def task_state(run: Run) -> TaskState:
    """Return where the task of a run stands; the states of runs and their transitions are those of `domain.run`."""
    return _STATES[run.state]


def run_states(state: TaskState) -> tuple[RunState, ...]:
    """Return the states of runs whose tasks stand so."""
    return tuple(of for of, is_ in _STATES.items() if is_ is state)


def task_title(run: Run) -> str:
    """Return the id of the task of a run, with its name where it has one."""
    return f"{task_id(run)} ({run.name})" if run.name else task_id(run)


def task_id(run: Run) -> str:
    """Return the id of a task: that of its first run, whichever run it was last resumed or retried as."""
    kind, _, name = run.lineage_level.partition(":")
    return name if kind == "lineage" else run.id


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """What is to be done, by whom, and how."""

    prompt: str
    agent: str | None = None  # None: that of the slot, else of the pool
    slot: str | None = None  # wants the slot with this name or id
    role: str | None = None  # wants a slot with this role
    tags: tuple[str, ...] = ()  # wants a slot that has all of these
    system: str = ""
    schema: Mapping[str, Json] | None = None
    settings: Mapping[str, Json] = field(default_factory=dict)  # of the agent, over those of slot and pool
    cwd: str = ""  # a folder below the project
    isolation: str | None = None  # None: that of the pool
    on_permission: str | None = None  # None: that of the slot, else of the pool
    ref: str | None = None  # the commit at which its working tree begins; None: HEAD
    watched: tuple[str, ...] = ()  # files and folders elsewhere that are compared like the user's repository
    review: bool = False
    max_rejections: int = 3
    after: tuple[str, ...] = ()  # ids of tasks that must be completed first
    priority: int = 0  # the highest goes first
    session: str | None = None  # of the agent, to go on with
    budget_usd: float | None = None

    def __post_init__(self) -> None:
        """Refuse what nobody can do."""
        if not self.prompt.strip():
            raise BadArgument("the prompt of a task is empty")
        if len(self.prompt) > MOST_PROMPT:
            raise BadArgument(f"the prompt of a task must have at most {MOST_PROMPT:,} characters")
        if self.isolation not in (None, *Isolation):
            raise BadArgument(choice_error(tuple(Isolation), self.isolation), argument="isolation")
        if self.on_permission not in (None, *OnPermission):
            raise BadArgument(choice_error(tuple(OnPermission), self.on_permission), argument="on_permission")
        if not 1 <= self.max_rejections <= MOST_REJECTIONS:
            raise BadArgument(
                f"must be between 1 and {MOST_REJECTIONS}, not {self.max_rejections}", argument="max_rejections"
            )

    def stored(self) -> dict[str, Any]:
        """Return the spec of its run; what is not said is left out."""
        found: dict[str, Any] = typed.to_builtins(self)
        return {name: value for name, value in found.items() if value not in (None, "", (), [], {}, False, 0)}


def read_task(spec: Any) -> TaskSpec:
    """Return the task that the spec of a run holds; raises BadArgument for any other."""
    try:
        return typed.convert(spec, TaskSpec)
    except typed.ValidationError as error:
        raise BadArgument(f"not a valid task: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotProfile:
    """A slot as its agent is told who it is, and what it is set to."""

    id: str  # slot-1
    name: str  # the declared one, else the id
    role: str = ""
    description: str = ""
    agent: str | None = None
    system: str = ""
    tags: tuple[str, ...] = ()
    settings: Mapping[str, Json] = field(default_factory=dict)
    on_permission: str | None = None  # None: that of the pool

    def fits(self, task: TaskSpec) -> bool:
        """Return whether a task may be given to this slot."""
        named = task.slot in (None, self.name, self.id)
        return named and task.role in (None, self.role) and set(task.tags) <= set(self.tags)


def merged(*levels: Mapping[str, Json]) -> dict[str, Json]:
    """Merge settings, the strongest first; lists are joined without doubles."""
    found: dict[str, Json] = {}
    for level in levels:
        for name, value in level.items():
            if isinstance(value, list) and isinstance(found.get(name), list):
                found[name] = list(dict.fromkeys([*found[name], *value]))
            else:
                found.setdefault(name, value)
    return found

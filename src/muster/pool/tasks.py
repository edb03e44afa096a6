"""A task: what a slot is to do, where it stands, and what it came to. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.domain.canonical import Json, JsonObject
from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.domain.isolation import Isolation
from muster.domain.order import field_flaws
from muster.domain.run import Run, RunState
from muster.domain.task import TaskState
from muster.pool.handover import Handover
from muster.pool.kind import TASK
from muster.pool.order import TaskFields
from muster.text import typed
from muster.text.declared_values import read_value

WORKLOAD = TASK.workload
NO_TASK = "not a valid task"
REVIEW = "review"  # the channel on which a task hears what a person thinks of it
INBOX = "inbox"  # the channel of a slot's messages
TREE_KEY = "tree/told"  # in the journal of a task: its working tree
SETUP_SECONDS = 900.0  # that each command may take which prepares a tree
SLOT_KEY = "slot"  # in the journal of a task: the slot that it was given, with its settings at that time


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
class TaskSpec(TaskFields):
    """A task as it is stored.

    Without an agent it is that of the slot, else of the pool; without an isolation that of the pool; what is to become
    of permissions is as the slot says, else the pool.
    """

    tags: tuple[str, ...] = ()  # wants a slot that has all of these
    schema: Mapping[str, Json] | None = None
    settings: Mapping[str, Json] = field(default_factory=dict)  # of the agent, over those of slot and pool
    ref: str | None = None  # the commit at which its working tree begins; None: HEAD
    watched: tuple[str, ...] = ()  # files and folders elsewhere that are compared like the user's repository
    session: str | None = None  # of the agent, to go on with

    def __post_init__(self) -> None:
        """Refuse what nobody can do; what is out of bounds is refused before a task is stored, not when it is read."""
        flaws = [flaw for flaw in field_flaws(self) if flaw.code is not FlawCode.OUT_OF_BOUNDS]
        prompt: object = self.prompt
        if isinstance(prompt, str) and not prompt.strip():
            flaws.append(FieldFlaw(path="prompt", message="is empty", code=FlawCode.OUT_OF_BOUNDS))
        if flaws:
            raise BadArgument.of(flaws)

    def stored(self) -> JsonObject:
        """Return the spec of its run; what is not said is left out."""
        found: JsonObject = typed.to_builtins(self)
        return {name: value for name, value in found.items() if value not in (None, "", (), [], {}, False, 0)}


def read_task(spec: Any) -> TaskSpec:
    """Return the task that the spec of a run holds; raises BadArgument for any other."""
    try:
        return typed.convert(spec, TaskSpec)
    except typed.ValidationError as error:
        raise BadArgument(f"{NO_TASK}: {error}") from None


def require_task(spec: Any) -> None:
    """Raise BadArgument with everything that is wrong with a spec: what is stored is only read from then on."""
    read_value(spec, TaskSpec, about=NO_TASK, rules=field_flaws)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedSlot:
    """The slot that a task was given, with its settings at that time, and where the task works.

    It is stored in the journal of the task; what older journals lack has a default.
    """

    id: str
    name: str
    agent: str
    role: str = ""
    description: str = ""
    system: tuple[str, ...] = ()  # what pool and slot add to the system prompt
    settings: Mapping[str, Json] = field(default_factory=dict)  # of the agent
    on_permission: str | None = None
    context: Mapping[str, str] = field(default_factory=dict)  # shared by all slots
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str  # where the task works, or the folder of the repository of its tree
    isolation: Isolation = Isolation.NONE
    compares: bool | None = None  # whether the user's repository is compared; None: where there is a tree
    task: str = ""  # its id
    tree: str = ""  # the name of its working tree
    base_dir: str | None = None  # in which trees lie
    ref: str | None = None  # the commit at which the tree begins
    watched: tuple[str, ...] = ()
    after: tuple[Handover, ...] = ()  # by the tasks on which it depends
    copy: tuple[str, ...] = ()  # files that a new tree gets
    setup: tuple[tuple[str, ...], ...] = ()  # commands that prepare a new tree
    setup_secs: float = SETUP_SECONDS
    git_environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_tree(self) -> bool:
        """Return whether the task works in a tree of its own."""
        return self.isolation is not Isolation.NONE

    @property
    def is_compared(self) -> bool:
        """Return whether the user's repository is compared before and after a round of the task."""
        return self.has_tree if self.compares is None else self.compares

    def stored(self) -> Mapping[str, Json]:
        """Return what the journal of the task keeps."""
        kept: dict[str, Json] = typed.decode(typed.encode(self))
        return kept


def read_slot(kept: Any) -> AssignedSlot:
    """Return the slot that the journal of a task keeps; raises BadArgument for anything else."""
    try:
        return typed.convert(kept, AssignedSlot)
    except typed.ValidationError as error:
        raise BadArgument(f"not a valid slot of a task: {error}") from None


def merged(*levels: Mapping[str, Json]) -> Mapping[str, Json]:
    """Merge settings, the strongest first; lists are joined without doubles."""
    found: dict[str, Any] = {}
    for level in levels:
        for name, value in level.items():
            if isinstance(value, list) and isinstance(found.get(name), list):
                found[name] = list(dict.fromkeys([*found[name], *value]))
            else:
                found.setdefault(name, value)
    return found

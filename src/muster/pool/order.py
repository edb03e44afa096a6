"""What is said to submit a task, or many: every field, once. Quick to load: commands read it for their help."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar

from muster.domain.canonical import Json
from muster.domain.doors import EVERYWHERE, LOCAL, REMOTE, Door
from muster.domain.isolation import Isolation
from muster.domain.order import MAX_NAME, MAX_TEXT, FieldForm, Name, OrderField, ValueBounds
from muster.domain.run_order import MAX_TAGS, RUN, BudgetField, TimedRunOrder

MAX_PROMPT = 1_000_000  # characters
MAX_REJECTIONS = 100
MAX_PRIORITY = 1_000_000
MAX_TURNS = 10_000
CONFIRMED_ABOVE = 50  # tasks of a fan-out that are started without being asked twice
TASK = "Task"  # a heading
_OF_AGENT = "that of the slot or the agent"


class OnPermission(StrEnum):
    """What a task does whose agent asks for a person's permission."""

    FAIL = "fail"
    ASK = "ask"  # it waits for a decision, and the agent's session is continued with it


@dataclass(frozen=True, kw_only=True)  # without slots: orders have several bases
class PromptField:
    """What is to be done."""

    prompt: Annotated[
        str,
        OrderField(
            help="What is to be done.",
            tool="What is to be done: the agent sees only this and results of `after`.",
            option_help="The prompt; - is standard input.",
            argument=True,
            metavar="PROMPT",
            when_more="quote the prompt",
            piped=True,
            min_length=1,
            max_length=MAX_PROMPT,
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class AssignmentFields(BudgetField):
    """By whom something is done, on what terms: shared by a task and the tasks of a fan-out."""

    said: ClassVar = {
        "budget_usd": {
            "help": "The budget of a task in dollars, a hard cap.",
            "tool": "The most that a task may cost, in US dollars: a hard limit.",
            "shown": "default_task_budget_usd in muster.toml, else none",
            "heading": TASK,
        }
    }

    agent: Annotated[
        str | None,
        OrderField(
            help="The agent that does it.",
            tool="Who does it; `overview` lists agents. Default: the slot's.",
            form=FieldForm.AGENT,
            metavar="AGENT",
            shown="that of the slot",
            heading=TASK,
            min_length=1,
            max_length=200,
        ),
    ] = None
    role: Annotated[
        str | None,
        OrderField(
            help="Only a slot with this role may do it.",
            tool="Only a slot with this role may do it.",
            metavar="ROLE",
            heading=TASK,
            min_length=1,
            max_length=200,
        ),
    ] = None
    system: Annotated[
        str,
        OrderField(
            help="Added to the system prompt.",
            tool="Standing instructions for the agent.",
            metavar="TEXT",
            heading=TASK,
            max_length=MAX_TEXT,
        ),
    ] = ""
    review: Annotated[
        bool,
        OrderField(
            help="When the work is done, wait for `task approve` or `task reject`.",
            tool="Wait for `review_task` before it counts as done.",
            heading=TASK,
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class PlacementFields:
    """Where, when and how one task is done."""

    slot: Annotated[
        str | None,
        OrderField(
            help="Only this slot may do it.",
            tool="Only the slot with this name may do it.",
            metavar="NAME",
            heading=TASK,
            min_length=1,
            max_length=200,
        ),
    ] = None
    isolation: Annotated[
        Isolation | None,
        OrderField(
            help="Where the agent works: in the project, or in a separate git worktree or clone.",
            shown="worktree for CLI agents in a git repository, else none",
            heading=TASK,
            doors=LOCAL,
        ),
    ] = None
    on_permission: Annotated[
        OnPermission | None,
        OrderField(
            help="When its agent asks for permission: fail, or wait for `task allow` or `task deny`.",
            shown="that of the slot, else of the pool",
            heading=TASK,
            doors=LOCAL,
        ),
    ] = None
    cwd: Annotated[
        str,
        OrderField(
            help="The folder to work in, below the project.",
            form=FieldForm.PATH,
            metavar="DIR",
            shown="the project",
            heading=TASK,
            doors=LOCAL,
        ),
    ] = ""
    max_rejections: Annotated[
        int,
        OrderField(
            help="The task fails after this many rejections.",
            tool="With review: it fails when rejected so often.",
            metavar="N",
            heading=TASK,
            min=1,
            max=MAX_REJECTIONS,
        ),
    ] = 3
    after: Annotated[
        tuple[Name, ...],
        OrderField(
            help="Start when this task has completed, from its work and with its result; repeatable.",
            tool="Tasks to complete first: it begins with their changes in its tree and their results in its prompt, "
            "which says what could not be handed over.",
            metavar="TASK",
            heading=TASK,
            max_length=100,
        ),
    ] = ()
    priority: Annotated[
        int,
        OrderField(
            help="Tasks with a higher number start first.",
            tool="Higher ones begin first.",
            metavar="N",
            heading=TASK,
            min=-MAX_PRIORITY,
            max=MAX_PRIORITY,
        ),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class TaskFields(PromptField, AssignmentFields, PlacementFields):
    """What is to be done, by whom and how: shared by an order and the spec that it becomes."""


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """What is set about the agent of a task, over what its slot and the pool say."""

    model: Annotated[
        Name | None, OrderField(help="The model of a CLI agent.", metavar="MODEL", shown=_OF_AGENT, heading=TASK)
    ] = None
    effort: Annotated[
        Name | None,
        OrderField(
            help="The effort of Claude Code: low, medium, high, xhigh or max.",
            metavar="EFFORT",
            shown=_OF_AGENT,
            heading=TASK,
        ),
    ] = None
    permission_mode: Annotated[
        Name | None,
        OrderField(
            help="The permission mode of Claude Code: default, acceptEdits, plan, dontAsk or bypassPermissions.",
            metavar="MODE",
            shown=_OF_AGENT,
            heading=TASK,
            doors=LOCAL,
        ),
    ] = None
    tools: Annotated[
        tuple[Name, ...],
        OrderField(
            help="Tools that Claude Code may use without asking.",
            metavar="A,B",
            joined=True,
            heading=TASK,
            doors=LOCAL,
        ),
    ] = ()
    max_turns: Annotated[
        int | None,
        OrderField(
            help="Maximum number of turns of Claude Code.",
            metavar="N",
            shown=_OF_AGENT,
            heading=TASK,
            min=1,
            max=MAX_TURNS,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class TaskRunOrder(TimedRunOrder):
    """What is said of the run of a task: its calls are live, and its tags are those of the task."""

    without: ClassVar = dict.fromkeys(("id", "run_tags", "dispatch", "fallback", "cache"), EVERYWHERE)

    tags: Annotated[
        tuple[Name, ...],
        OrderField(
            help="A tag of the task; repeatable.",
            tool="Words of yours to find it by later.",
            option=("--tag",),
            metavar="TAG",
            heading=RUN,
            max_length=MAX_TAGS,
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOrder(TaskFields, AgentSettings, TaskRunOrder):
    """A task for a slot of the pool; where and with which rights it works is the operator's choice."""

    example: ClassVar = {"prompt": "Write a haiku about bridges."}

    slot_tags: Annotated[
        tuple[Name, ...],
        OrderField(
            help="Only a slot with this tag may do it; repeatable.",
            option=("--slot-tag",),
            metavar="TAG",
            heading=TASK,
            max_length=MAX_TAGS,
        ),
    ] = ()
    output_schema: Annotated[
        Mapping[str, Json] | None,
        OrderField(
            help="A JSON Schema that the answer must match.",
            tool="A JSON Schema that the output must fit.",
            alias="schema",
            doors=REMOTE | {Door.PYTHON},
        ),
    ] = None
    schema_file: Annotated[
        Path | None,
        OrderField(
            help="A JSON Schema that the answer must match.",
            form=FieldForm.PATH,
            option=("--schema",),
            metavar="FILE",
            heading=TASK,
            doors=LOCAL,
        ),
    ] = None
    continues: Annotated[
        Name | None,
        OrderField(
            help="Continue the agent session of this earlier task.",
            tool="A completed task whose session the agent goes on with.",
            alias="continue",
            option=("--continue",),
            metavar="TASK",
            heading=TASK,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOutOrder(AssignmentFields, TaskRunOrder):
    """One task for each of many prompts; what is said here counts before what the file says."""

    without: ClassVar = {**TaskRunOrder.without, "timeout_secs": frozenset({Door.TOOL})}

    file: Annotated[
        Path | None,
        OrderField(
            help="A YAML file with an agent and prompts.",
            form=FieldForm.PATH,
            argument=True,
            metavar="FILE",
            doors=LOCAL,
            required_at=LOCAL,
        ),
    ] = None
    prompts: Annotated[
        tuple[Annotated[str, ValueBounds(min_length=1, max_length=MAX_PROMPT)], ...],
        OrderField(
            help="What is to be done: one task for each.",
            tool=f"One task for each, at most {CONFIRMED_ABOVE}. Each must be complete in itself.",
            min_length=1,
            max_length=CONFIRMED_ABOVE,
            doors=REMOTE,
            required_at=REMOTE,
        ),
    ] = ()
    name: Annotated[
        Annotated[str, ValueBounds(min_length=1, max_length=MAX_NAME - 10)] | None,
        OrderField(
            help="A name for the tasks, which are called NAME-1, NAME-2 and so on.",
            tool="A name of yours: the tasks are called NAME-1, NAME-2 and so on, in the order of prompts.",
            metavar="NAME",
            heading=RUN,
        ),
    ] = None

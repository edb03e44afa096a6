"""What tools are called with: read strictly, and told to clients as JSON Schema. No field is a path or a command."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(min_length=1, max_length=200, description="An id or a name that another tool returned.")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=100_000)]
Prompts = Annotated[list[Text], Field(min_length=1, max_length=50)]
Agent = Annotated[Name, Field(description="The name of an agent; `overview` lists them.")]
Agents = Annotated[list[Agent], Field(max_length=50)]
Usd = Annotated[float, Field(gt=0, le=1_000_000)]
Budget = Annotated[Usd | None, Field(description="The most that this may cost, in US dollars: a hard limit.")]
Seconds = Annotated[float, Field(gt=0, le=86_400 * 30)]
Tags = Annotated[list[Name], Field(max_length=100)]
Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=100,
        description="Any word of yours. The same call again with the same key returns what the first one started.",
    ),
]
Dispatch = Annotated[
    Literal["live", "batch"],
    Field(description="`batch` costs half at most providers and can take hours."),
]


class ToolInput(BaseModel):
    """Arguments in which nothing may be misspelled."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NoInput(ToolInput):
    """Nothing."""


class StartInput(ToolInput):
    """What everything that is started takes."""

    budget_usd: Budget = None
    name: Annotated[Name | None, Field(description="A name of yours by which it can be referred to.")] = None
    request_key: Key = None


class TaskInput(StartInput):
    """A task for the pool."""

    prompt: Annotated[Text, Field(description="What is to be done, complete in itself: the agent sees nothing else.")]
    agent: Agent | None = None
    role: Annotated[Name | None, Field(description="Only a slot with this role may do it.")] = None
    slot: Annotated[Name | None, Field(description="Only the slot with this name may do it.")] = None
    system: Annotated[str, Field(max_length=100_000, description="Standing instructions for the agent.")] = ""
    review: Annotated[bool, Field(description="Wait for `review_task` before it counts as done.")] = False
    max_rejections: Annotated[int, Field(ge=1, le=100)] = 3
    output_schema: Annotated[dict[str, Any] | None, Field(description="A JSON Schema that the output must fit.")] = None
    after: Annotated[list[Id], Field(max_length=100, description="Tasks that must be completed first.")] = []
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000, description="Higher ones begin first.")] = 0
    continues: Annotated[Id | None, Field(description="A completed task whose session the agent goes on with.")] = None
    timeout_secs: Seconds | None = None
    tags: Tags = []


class FanOutInput(StartInput):
    """Many tasks of one kind."""

    prompts: Annotated[Prompts, Field(description="One task for each, at most 50.")]
    agent: Agent | None = None
    role: Name | None = None
    system: Annotated[str, Field(max_length=100_000)] = ""
    review: bool = False
    tags: Tags = []


class AskInput(StartInput):
    """One question to one agent."""

    agent: Agent
    prompt: Text
    system: Annotated[str, Field(max_length=100_000)] = ""
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    output_schema: Annotated[dict[str, Any] | None, Field(description="A JSON Schema that the reply must fit.")] = None
    dispatch: Dispatch = "live"


class ChainRunInput(StartInput):
    """A chain of the library."""

    chain: Annotated[Name, Field(description="The name of a chain; `overview` lists them.")]
    input: Annotated[dict[str, Any], Field(description="The inputs that the chain declares, by their names.")] = {}


class SuiteInput(StartInput):
    """A suite of the library."""

    suites: Annotated[list[Name], Field(min_length=1, max_length=20, description="Names of suites from `overview`.")]
    agents: Annotated[Agents, Field(description="Who is tested; several are compared.")] = []
    judge: Annotated[Name | None, Field(description="An agent that judges, or `council:NAME`.")] = None
    epochs: Annotated[int, Field(ge=1, le=1000, description="How often each case is run.")] | None = None
    filter: Annotated[Name | None, Field(description="Only cases whose id fits this pattern, such as `greeter/*`.")] = (
        None
    )
    dispatch: Dispatch = "live"


class CouncilInput(StartInput):
    """A council: of a policy of the library, or of named agents."""

    question: Text
    agents: Annotated[Agents, Field(description="The members, at least two; not needed with a policy.")] = []
    policy: Annotated[Name | None, Field(description="The name of a council of the library.")] = None
    rounds: Annotated[int, Field(ge=1, le=20)] | None = None
    synthesis: Annotated[Agent | None, Field(description="Who writes one answer from the best proposals.")] = None
    dispatch: Dispatch = "live"


class BattleInput(StartInput):
    """A battle, or a scale test of several."""

    agent: Annotated[Agent, Field(description="Who is tested.")]
    counterpart: Annotated[Agent | None, Field(description="Who plays the user.")] = None
    goal: Annotated[Text | None, Field(description="What the counterpart wants; a judge says when it is reached.")] = (
        None
    )
    system_prompt: Annotated[Text | None, Field(description="The instructions of the agent under test.")] = None
    message_limit: Annotated[int, Field(ge=1, le=25, description="The most replies of the agent.")] | None = None
    judge: Agent | None = None
    runs: Annotated[int, Field(ge=1, le=100, description="More than 1: a scale test with figures over all.")] = 1


class ListInput(ToolInput):
    """A list of what was started."""

    kind: Annotated[
        Literal["any", "task", "ask", "chain", "suite", "council", "battle", "scale", "verification", "batch"],
        Field(description="`batch` lists the batches at providers that hold calls of many runs."),
    ] = "any"
    needs_you: Annotated[bool, Field(description="Only what waits for a review, a permission or an answer.")] = False
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    after: Annotated[Id | None, Field(description="`next` of the page before.")] = None


class WaitInput(ToolInput):
    """What is waited for, and for how long."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=50)]
    until: Annotated[Literal["all", "any"], Field(description="Return when all, or any, of them are at rest.")] = "all"
    timeout_secs: Annotated[float, Field(ge=0, le=300)] = 45.0


class ResultInput(ToolInput):
    """What one wants to know of a task, a run or a batch."""

    id: Id
    part: Annotated[
        Literal["summary", "output", "report", "events", "calls", "call", "log", "diff", "messages", "decisions"],
        Field(
            description="`summary`: state, cost and output. `output`: the whole output. `report`: of a suite, council, "
            "battle, scale test or verification, as Markdown. `events`: what happened. `calls`: the calls to agents; "
            "`call` with `key`: one of them in full. `log`, `diff`: of a task. `messages`, `decisions`: of a battle."
        ),
    ] = "summary"
    key: Annotated[str | None, Field(max_length=1000, description="Of a call.")] = None
    compare_with: Annotated[
        Id | None,
        Field(description="An earlier run of the same suites: what changed from it (A, before) to `id` (B, after)."),
    ] = None
    offset: Annotated[int, Field(ge=0, le=2**53, description="`next_offset` of the page before.")] = 0


class ReviewInput(ToolInput):
    """A decision about a task that waits for one."""

    id: Id
    decision: Annotated[
        Literal["approve", "reject", "allow", "deny"],
        Field(description="approve or reject finished work; allow or deny the tool that the task asks for."),
    ]
    feedback: Annotated[
        str, Field(max_length=10_000, description="Needed to reject: what to do differently. With deny: why.")
    ] = ""


class AnswerInput(ToolInput):
    """The answer to a question that a run asks a person."""

    id: Id
    text: Text
    key: Annotated[str | None, Field(max_length=1000, description="Which question, when the run asks several.")] = None


class SteerInput(ToolInput):
    """What is done to a council that goes on."""

    id: Id
    action: Annotated[
        Literal["inject", "stop"],
        Field(description="inject: tell all members `text`. stop: end with the best proposal so far."),
    ]
    text: Annotated[str, Field(max_length=100_000)] = ""


class ControlInput(ToolInput):
    """What is done to a task, a run or a batch."""

    id: Id
    action: Annotated[
        Literal["cancel", "resume"],
        Field(description="cancel: stop it for good. resume: go on where it stopped; replies it has are not paid."),
    ]
    budget_usd: Annotated[Usd | None, Field(description="With resume: a new total for its budget.")] = None


class PoolInput(ToolInput):
    """The crew of slots."""

    action: Annotated[
        Literal["status", "scale", "drain", "metrics"],
        Field(description="status: slots and counts. scale: change the number of slots. drain: take no new tasks."),
    ] = "status"
    slots: Annotated[str, Field(pattern=r"^[+-]?[0-9]{1,6}$", description="With scale: N, +N or -N.")] | None = None
    timeout_secs: Annotated[float, Field(ge=0, le=300, description="With drain: how long tasks may go on.")] = 60.0


class MessageInput(ToolInput):
    """Messages to slots."""

    action: Annotated[
        Literal["send", "unread"],
        Field(description="send: to one slot or, without `slot`, to all. unread: what a slot has not read yet."),
    ]
    slot: Annotated[Name | None, Field(description="The name of a slot; `pool` lists them.")] = None
    text: Annotated[str, Field(max_length=100_000)] = ""


class ContextInput(ToolInput):
    """Texts that every slot is told."""

    action: Literal["list", "set", "delete"]
    name: Name | None = None
    text: Annotated[str, Field(max_length=100_000)] = ""

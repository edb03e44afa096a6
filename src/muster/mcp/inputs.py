"""What tools are called with: read strictly, and told to clients as JSON Schema. No field is a path or a command."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from muster.app.serving.order_models import OrderModel, order_model
from muster.battles.order import BattleOrder
from muster.domain.order import Door, OrderField, given_fields

LARGEST_INPUT = 1_000_000  # characters of all inputs of a chain, as JSON
NUMBERED = ("events", "log", "messages", "decisions")  # parts of a run whose rows have numbers
RUN_KINDS = ("any", "task", "question", "chain", "suite", "council", "battle", "scale test", "verification")

Id = Annotated[str, Field(min_length=1, max_length=200, description="An id or a name that another tool returned.")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=100_000)]
Prompts = Annotated[list[Text], Field(min_length=1, max_length=50)]
Agent = Annotated[Name, Field(description="The name of an agent; `overview` lists them.")]
Agents = Annotated[list[Agent], Field(max_length=50)]
Usd = Annotated[float, Field(gt=0, le=1_000_000)]
Budget = Annotated[Usd | None, Field(description="The most that this may cost, in US dollars: a hard limit.")]
Seconds = Annotated[float, Field(gt=0, le=86_400 * 30)]
Tags = Annotated[list[Name], Field(max_length=100, description="Words of yours to find it by later.")]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GoesWith:
    """A parameter that means something only with some values of another one, of which some need it."""

    parameter: str
    other: str
    values: tuple[str, ...]
    needed: tuple[str, ...] = ()

    def flaw(self, given: BaseModel) -> str | None:
        """Return what is wrong; a parameter that was given as null, empty or what it is by default was not given."""
        usual = type(given).model_fields[self.parameter].default
        is_given = getattr(given, self.parameter) not in (None, "", usual)
        other = getattr(given, self.other)
        if is_given and other not in self.values:
            return f"{self.parameter}: it goes only with {self.other}={' or '.join(repr(one) for one in self.values)}"
        if not is_given and other in self.needed:
            return f"{self.parameter}: it is needed with {self.other}={other!r}"
        return None


class ToolInput(BaseModel):
    """Arguments in which nothing may be misspelled, and none is ignored."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    rules: ClassVar[tuple[GoesWith, ...]] = ()

    @model_validator(mode="after")
    def _require_meaning(self) -> Self:
        for rule in self.rules:
            if wrong := rule.flaw(self):
                raise PydanticCustomError("goes_with", "{wrong}", {"wrong": wrong})
        return self


def _bounded(value: Mapping[str, Any]) -> Mapping[str, Any]:
    size = len(json.dumps(value))
    if size > LARGEST_INPUT:
        message = "It should have at most {most} characters as JSON, not {size}"
        raise PydanticCustomError("too_long", message, {"most": LARGEST_INPUT, "size": size})
    return value


class OverviewInput(ToolInput):
    """What is looked over."""

    rules = (GoesWith(parameter="after", other="part", values=("agents", "library")),)
    part: Annotated[
        Literal["all", "agents", "library"],
        Field(description="`agents` or `library`: only these, in pages, where `all` has left some out."),
    ] = "all"
    after: Annotated[str, Field(max_length=1000, description="`next_after` of the page before.")] = ""


class KeyedInput(ToolInput):
    """What everything that is started takes."""

    request_key: Key = None


class StartInput(KeyedInput):
    """What everything that is started takes, where it is not declared by an order."""

    budget_usd: Budget = None
    name: Annotated[
        Name | None,
        Field(description="A name of yours, which other tools take in place of the id; the newest of a name counts."),
    ] = None


class OrderInput(KeyedInput, OrderModel):
    """An order as a tool takes it."""

    def order(self) -> Any:
        """Return the order; what is only about the call is not part of it."""
        given = {name: value for name, value in self if name != "request_key"}
        return self.order_kind(**given_fields(self.order_kind, given))


def tool_input(kind: Any, name: str) -> Any:
    """Return the input of a tool that takes an order."""
    return order_model(kind, Door.TOOL, name=name, base=OrderInput)


_PROMPT = "What is to be done: the agent sees only this and results of `after`."
_AFTER = (
    "Tasks to complete first: it begins with their changes in its tree and their results in its prompt, "
    "which says what could not be handed over."
)


class TaskInput(StartInput):
    """A task for the pool."""

    prompt: Annotated[
        Text,
        Field(description=_PROMPT),
    ]
    agent: Annotated[Agent | None, Field(description="Who does it; `overview` lists agents. Default: the slot's.")] = (
        None
    )
    role: Annotated[Name | None, Field(description="Only a slot with this role may do it.")] = None
    slot: Annotated[Name | None, Field(description="Only the slot with this name may do it.")] = None
    system: Annotated[str, Field(max_length=100_000, description="Standing instructions for the agent.")] = ""
    review: Annotated[bool, Field(description="Wait for `review_task` before it counts as done.")] = False
    max_rejections: Annotated[int, Field(ge=1, le=100, description="With review: it fails when rejected so often.")] = 3
    output_schema: Annotated[dict[str, Any] | None, Field(description="A JSON Schema that the output must fit.")] = None
    after: Annotated[list[Id], Field(max_length=100, description=_AFTER)] = []
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000, description="Higher ones begin first.")] = 0
    continues: Annotated[Id | None, Field(description="A completed task whose session the agent goes on with.")] = None
    timeout_secs: Annotated[Seconds | None, Field(description="How long the work may take, in seconds.")] = None
    tags: Tags = []


class FanOutInput(StartInput):
    """Many tasks of one kind."""

    budget_usd: Annotated[Usd | None, Field(description="The most that each task may cost, in US dollars.")] = None
    name: Annotated[
        Annotated[str, Field(min_length=1, max_length=190)] | None,
        Field(description="A name of yours: the tasks are called NAME-1, NAME-2 and so on, in the order of prompts."),
    ] = None
    prompts: Annotated[Prompts, Field(description="One task for each, at most 50. Each must be complete in itself.")]
    agent: Annotated[
        Agent | None, Field(description="Who does them; `overview` lists agents. Default: the slot's.")
    ] = None
    role: Annotated[Name | None, Field(description="Only slots with this role may do them.")] = None
    system: Annotated[str, Field(max_length=100_000, description="Standing instructions for the agents.")] = ""
    review: Annotated[bool, Field(description="Each waits for `review_task` before it counts as done.")] = False
    tags: Tags = []


class AskInput(StartInput):
    """One question to one agent."""

    agent: Agent
    prompt: Annotated[Text, Field(description="The whole question: the agent sees nothing else.")]
    system: Annotated[str, Field(max_length=100_000, description="Standing instructions for the agent.")] = ""
    max_tokens: Annotated[
        Annotated[int, Field(ge=1, le=1_000_000)] | None, Field(description="The most tokens that the reply may have.")
    ] = None
    output_schema: Annotated[dict[str, Any] | None, Field(description="A JSON Schema that the reply must fit.")] = None
    dispatch: Dispatch = "live"


class ChainRunInput(StartInput):
    """A chain of the library."""

    chain: Annotated[Name, Field(description="The name of a chain; `overview` lists them.")]
    input: Annotated[
        dict[str, Any],
        AfterValidator(_bounded),
        Field(description="Values for the inputs that the chain declares, by name; `overview` lists them."),
    ] = {}


class SuiteInput(StartInput):
    """A suite of the library."""

    suites: Annotated[list[Name], Field(min_length=1, max_length=20, description="Names of suites from `overview`.")]
    agents: Annotated[Agents, Field(description="Who is tested; several are compared.")] = []
    judge: Annotated[
        Name | None, Field(description="An agent that judges, or `council:NAME`. Needed when cases have a rubric.")
    ] = None
    epochs: Annotated[Annotated[int, Field(ge=1, le=1000)] | None, Field(description="How often each case is run.")] = (
        None
    )
    filter: Annotated[Name | None, Field(description="Only cases whose id fits this pattern, such as `greeter/*`.")] = (
        None
    )
    dispatch: Dispatch = "live"


class CouncilInput(StartInput):
    """A council: of a policy of the library, or of named agents."""

    question: Annotated[Text, Field(description="The whole question: the members see nothing else.")]
    agents: Annotated[
        Agents, Field(description="The members, at least two different ones; with a policy they are added to its own.")
    ] = []
    policy: Annotated[
        Name | None, Field(description="The name of a council of the library, which says who is a member.")
    ] = None
    rounds: Annotated[
        Annotated[int, Field(ge=1, le=20)] | None, Field(description="The most rounds of proposing and scoring.")
    ] = None
    synthesis: Annotated[Agent | None, Field(description="Who writes one answer from the best proposals.")] = None
    dispatch: Dispatch = "live"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBattleOrder(BattleOrder):
    """A battle, or a scale test of several."""

    runs: Annotated[
        int,
        OrderField(help="How many battles.", tool="More than 1: a scale test with figures over all.", min=1),
    ] = 1


BattleInput = tool_input(ToolBattleOrder, "BattleInput")


class ListInput(ToolInput):
    """A list of what was started."""

    rules = (
        GoesWith(parameter="needs_you", other="kind", values=RUN_KINDS),
        GoesWith(parameter="search", other="kind", values=RUN_KINDS),
        GoesWith(parameter="after", other="kind", values=RUN_KINDS),
    )
    kind: Annotated[
        Literal[
            "any", "task", "question", "chain", "suite", "council", "battle", "scale test", "verification", "batch"
        ],
        Field(description="`batch` lists the batches at providers that hold calls of many runs."),
    ] = "any"
    needs_you: Annotated[bool, Field(description="Only what waits for a review, a permission or an answer.")] = False
    search: Annotated[
        str, Field(max_length=200, description="Only those that have this in their id, name, kind or a tag.")
    ] = ""
    limit: Annotated[int, Field(ge=1, le=100, description="The most that are listed.")] = 20
    after: Annotated[Id | None, Field(description="`next` of the page before.")] = None


class WaitInput(ToolInput):
    """What is waited for, and for how long."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=50, description="Of tasks and runs; not of batches.")]
    until: Annotated[Literal["all", "any"], Field(description="Return when all, or any, of them are at rest.")] = "all"
    timeout_secs: Annotated[float, Field(ge=0, le=300, description="0 looks once and does not wait.")] = 45.0
    full: Annotated[bool, Field(description="Whole results.")] = False


class ResultInput(ToolInput):
    """What one wants to know of a task, a run or a batch."""

    rules = (
        GoesWith(parameter="key", other="part", values=("call", *NUMBERED), needed=("call",)),
        GoesWith(parameter="after", other="part", values=("calls", *NUMBERED)),
        GoesWith(parameter="compare_with", other="part", values=("summary",)),
    )
    id: Id
    part: Annotated[
        Literal["summary", "output", "report", "events", "calls", "call", "log", "diff", "messages", "decisions"],
        Field(
            description="`summary`: state, cost and output. `output`: all of it. `report`: of a suite, council, "
            "battle, scale test or verification, as Markdown. `events`: what happened. `calls`: to agents; "
            "`call` with `key`: one in full. `log`, `diff`: of a task. `messages`, `decisions`: of a battle."
        ),
    ] = "summary"
    key: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=1000,
            description="Of a call, as part='calls' lists it. Of events, log, messages and decisions: the number "
            "of one in full.",
        ),
    ] = None
    field: Annotated[
        str,
        Field(
            max_length=1000,
            description="Of a summary, or with `key`: one field in full, as the answer that has cut it names it.",
        ),
    ] = ""
    compare_with: Annotated[
        Id | None,
        Field(
            description="An earlier run of the same suites: what changed from it (A) to `id` (B). "
            "`gate`: `passed`, `failed`, or `blind`: inconclusive, unlikely to notice a drop of `notice`."
        ),
    ] = None
    # Of `compare_with`; bounds are those of its terms.
    margin: Annotated[float | None, Field(description="How much worse B may be.")] = None
    notice: Annotated[float, Field(description="A drop of the pass rate.")] = 0.20
    inconclusive: Annotated[Literal["ok", "fail"] | None, Field(description="Does it pass?")] = None
    offset: Annotated[int, Field(ge=0, description="Of a text: `next_offset` of the page before.")] = 0
    after: Annotated[
        Annotated[str, Field(max_length=1000)] | Annotated[int, Field(ge=0)] | None,
        Field(description="Of a list: `next_after` of the page before; with events, log and messages any number."),
    ] = None

    @model_validator(mode="after")
    def _require_place(self) -> Self:
        """Refuse a place in what has none: rows have keys, texts have offsets, and a summary has fields."""
        listed = self.part in ("calls", *NUMBERED) and self.key is None
        if self.field and (listed or self.compare_with or self.part in ("output", "report", "diff")):
            raise PydanticCustomError("place", "field: it goes only with part='summary', or with key")
        if self.offset and (listed or (self.part == "summary" and not self.field and self.compare_with is None)):
            raise PydanticCustomError("place", "offset: it goes only with a text: a part that is one, field or key")
        if self.after is not None and self.key is not None:
            raise PydanticCustomError("place", "after: it does not go with key")
        return self

    @model_validator(mode="after")
    def _require_comparison(self) -> Self:
        """Refuse terms of a comparison where nothing is compared."""
        usual = type(self).model_fields
        for name in ("margin", "notice", "inconclusive"):
            if self.compare_with is None and getattr(self, name) != usual[name].default:
                raise PydanticCustomError("goes_with", "{name}: it goes only with compare_with", {"name": name})
        return self

"""What the tools are called with that decide about what goes on, and that direct the pool."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from muster.mcp.inputs import GoesWith, Id, Name, Text, ToolInput, Usd


class ReviewInput(ToolInput):
    """A decision about a task that waits for one."""

    rules = (
        GoesWith(parameter="feedback", other="decision", values=("reject", "deny")),
        GoesWith(parameter="budget_usd", other="decision", values=("reject",)),
    )
    id: Id
    decision: Annotated[
        Literal["approve", "reject", "allow", "deny"],
        Field(description="approve or reject finished work; allow or deny the tool that the task asks for."),
    ]
    feedback: Annotated[
        str, Field(max_length=10_000, description="Needed to reject: what to do differently. With deny: why.")
    ] = ""
    budget_usd: Annotated[
        Usd | None,
        Field(description="With reject: a new total for its budget in US dollars, what it has spent included."),
    ] = None


class AnswerInput(ToolInput):
    """The answer to a question that a run asks a person."""

    id: Id
    text: Annotated[Text, Field(description="The answer; it must fit `schema` of the question where there is one.")]
    key: Annotated[str | None, Field(max_length=1000, description="Which question, when the run asks several.")] = None


class SteerInput(ToolInput):
    """What is done to a council that goes on."""

    rules = (GoesWith(parameter="text", other="action", values=("inject",), needed=("inject",)),)
    id: Id
    action: Annotated[
        Literal["inject", "stop"],
        Field(description="inject: tell all members `text`. stop: end with the best proposal so far."),
    ]
    text: Annotated[str, Field(max_length=100_000, description="With inject: what all members are told.")] = ""


class ControlInput(ToolInput):
    """What is done to a task, a run or a batch."""

    rules = (GoesWith(parameter="budget_usd", other="action", values=("resume",)),)
    id: Id
    action: Annotated[
        Literal["cancel", "resume"],
        Field(description="cancel: stop it. resume: go on where it stopped; replies it has are not paid for again."),
    ]
    budget_usd: Annotated[
        Usd | None,
        Field(description="With resume: a new total for its budget in US dollars, what it has spent included."),
    ] = None


class PoolInput(ToolInput):
    """The crew of slots."""

    rules = (
        GoesWith(parameter="slots", other="action", values=("scale",), needed=("scale",)),
        GoesWith(parameter="timeout_secs", other="action", values=("drain",)),
    )
    action: Annotated[
        Literal["status", "scale", "drain", "metrics"],
        Field(
            description="status: slots and counts. scale: change the number of slots. drain: take no new tasks, let "
            "running ones end; the operator starts it again. metrics: times and costs of tasks."
        ),
    ] = "status"
    slots: Annotated[
        Annotated[int, Field(ge=0, le=999_999)] | Annotated[str, Field(pattern=r"^[+-]?[0-9]{1,6}$")] | None,
        Field(description='With scale: how many there are to be, or how many more or fewer: 4, "+2" or "-1".'),
    ] = None
    timeout_secs: Annotated[float, Field(ge=0, le=300, description="With drain: how long tasks may go on.")] = 60.0


class MessageInput(ToolInput):
    """Messages to slots."""

    rules = (
        GoesWith(parameter="text", other="action", values=("send",), needed=("send",)),
        GoesWith(parameter="slot", other="action", values=("send", "unread"), needed=("unread",)),
        GoesWith(parameter="after", other="action", values=("unread",)),
        GoesWith(parameter="key", other="action", values=("unread",)),
        GoesWith(parameter="offset", other="action", values=("unread",)),
    )
    action: Annotated[
        Literal["send", "unread"],
        Field(description="send: to one slot or, without `slot`, to all. unread: what a slot has not read yet."),
    ]
    slot: Annotated[Name | None, Field(description="The name of a slot; `pool` lists them.")] = None
    text: Annotated[str, Field(max_length=100_000, description="With send: the message.")] = ""
    after: Annotated[int, Field(ge=0, description="With unread: `next_after` of the page before.")] = 0
    key: Annotated[Annotated[int, Field(ge=1)] | None, Field(description="With unread: the id of one, in full.")] = None
    offset: Annotated[int, Field(ge=0, description="With key: `next_offset` of the page before.")] = 0

    @model_validator(mode="after")
    def _require_place(self) -> Self:
        if self.offset and self.key is None:
            raise PydanticCustomError("place", "offset: it goes only with key")
        if self.after and self.key is not None:
            raise PydanticCustomError("place", "after: it does not go with key")
        return self


class ContextInput(ToolInput):
    """Texts that every slot is told."""

    rules = (
        GoesWith(parameter="name", other="action", values=("read", "set", "delete"), needed=("read", "set", "delete")),
        GoesWith(parameter="text", other="action", values=("set",), needed=("set",)),
        GoesWith(parameter="after", other="action", values=("list",)),
        GoesWith(parameter="offset", other="action", values=("read",)),
    )
    action: Annotated[
        Literal["list", "read", "set", "delete"], Field(description="read: one in full. set: add or replace one.")
    ]
    name: Annotated[Name | None, Field(description="With read, set and delete: of the text.")] = None
    text: Annotated[str, Field(max_length=100_000, description="With set: the text.")] = ""
    after: Annotated[str, Field(max_length=200, description="With list: `next_after` of the page before.")] = ""
    offset: Annotated[int, Field(ge=0, description="With read: `next_offset` of the page before.")] = 0

"""What tools are called with: read strictly, and told to clients as JSON Schema. No field is a path or a command."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from muster.app.kinds import KINDS
from muster.app.serving.order_models import OrderModel, order_model, usual_names
from muster.domain.canonical import JsonObject
from muster.domain.doors import Door
from muster.domain.money import MAX_USD

NUMBERED = ("events", "log", "messages", "decisions")  # parts of a run whose rows have numbers
RUN_KINDS = ("any", *(known.kind.word for known in KINDS if known.page.is_listed))
if TYPE_CHECKING:
    ListedKind = str
else:  # made from the list of kinds
    ListedKind = Literal[(*RUN_KINDS, "batch")]

Id = Annotated[str, Field(min_length=1, max_length=200, description="An id or a name that another tool returned.")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=100_000)]
Usd = Annotated[float, Field(gt=0, le=MAX_USD)]
Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=100,
        description="Any word of yours. The same call again with the same key returns what the first one started.",
    ),
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

    newer: ClassVar[frozenset[str]] = frozenset()  # than the calls whose digests counted defaults
    request_key: Key = None

    def spellings(self) -> Sequence[JsonObject]:
        """Return what is asked for, without what is left out, null or as usual; then what older programs made of it."""
        said = self.model_dump(mode="json", exclude_defaults=True)
        said = {name: value for name, value in said.items() if value is not None}
        whole = self.model_dump(mode="json", exclude=set(self.newer))  # defaults counted when older runs were started
        return said, whole


class OrderInput(KeyedInput, OrderModel):
    """An order as a tool takes it."""

    def spellings(self) -> Sequence[JsonObject]:
        """Return the same, without a default that is written out though its help tells it in words."""
        said, whole = super().spellings()
        usual = usual_names(self, self.order())
        return {name: value for name, value in said.items() if name not in usual}, said, whole


def tool_input(kind: Any, name: str, *, newer: Iterable[str] = ()) -> Any:
    """Return the input of a tool that takes an order; `newer` are fields that it did not always have."""
    made = order_model(kind, Door.TOOL, name=name, base=OrderInput)
    made.newer = frozenset(newer)
    return made


class ListInput(ToolInput):
    """A list of what was started."""

    rules = (
        GoesWith(parameter="needs_you", other="kind", values=RUN_KINDS),
        GoesWith(parameter="search", other="kind", values=RUN_KINDS),
        GoesWith(parameter="after", other="kind", values=RUN_KINDS),
    )
    kind: Annotated[
        ListedKind,
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

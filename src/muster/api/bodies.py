"""What clients send: bodies that are read strictly, with the names of docs/HTTP.md."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from muster.app.runs.options import chosen_dispatch
from muster.domain.run import Dispatch, Fallback, Mode

Text = Annotated[str, Field(min_length=1, max_length=100_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Usd = Annotated[float, Field(gt=0, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0, le=86_400 * 30)]
Names = Annotated[list[Name], Field(max_length=100)]
Opinion = Literal["right", "wrong", "borderline"]
ModeName = Literal["live", "batch"]
FallbackName = Literal["fail", "live"]
ClientId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


def example(**fields: Any) -> ConfigDict:
    """Return the configuration of a body whose schema shows one that every server understands."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


class StrictBody(BaseModel):
    """A body in which nothing may be misspelled."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @property
    def chosen_id(self) -> str | None:
        """The id that the client chose for the run; None: the server chooses."""
        return None

    @property
    def names(self) -> dict[str, str]:
        """The names of fields in requests, where they are not those of errors."""
        return {}

    def asked(self) -> dict[str, Any]:
        """Return what is asked for, spelled in one way: equal requests have equal values.

        What is left out, null or as usual does not count, so a field that is new later changes no stored digest.
        """
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


class StartBody(StrictBody):
    """What every run can be started with."""

    id: ClientId | None = None  # of the run; the same request with the same id starts nothing
    name: Name | None = None
    run_tags: Names = []
    budget_usd: Usd | None = None
    timeout_secs: Seconds | None = None
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 20
    fallback: FallbackName = "fail"
    cache: bool = True

    @property
    def chosen_id(self) -> str | None:
        """The id that the client chose for the run; None: the server chooses."""
        return self.id

    def options(self) -> dict[str, Any]:
        """Return the options of a run by their names."""
        return {
            "name": self.name,
            "tags": self.run_tags,
            "budget_usd": self.budget_usd,
            "timeout": self.timeout_secs,
            "concurrency": self.concurrency,
        }


class RunBody(StartBody):
    """A start whose calls are all sent in one way."""

    dispatch: ModeName = "live"

    def options(self) -> dict[str, Any]:
        """Return the options of a run by their names."""
        return super().options() | {
            "dispatch": chosen_dispatch(Mode(self.dispatch), Fallback(self.fallback), cache=self.cache)
        }


class SuiteBody(RunBody):
    """A run of suites of the library."""

    model_config = example(suites=["smoke"], agents=["sim/echo"])

    suites: Annotated[list[Name], Field(min_length=1, max_length=100)]
    agents: Names = []
    judge: Name | None = None
    judge_samples: Annotated[int, Field(ge=1, le=25)] | None = None
    judge_dispatch: ModeName | None = None
    epochs: Annotated[int, Field(ge=1, le=1000)] | None = None
    filter: Name | None = None
    tags: Names = []
    evaluator: Literal["rules", "golden", "process", "judge", "all"] | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    seed: Seed | None = None
    only_failed: Name | None = None  # a run whose cases that did not pass are run again
    replay: Name | None = None  # a run that every answer is taken from
    reuse: Name | None = None  # a run whose answers to equal requests are taken over

    def chosen(self, paths: list[str], judge: str | None) -> dict[str, Any]:
        """Return what was chosen by the names of a suite run's spec, with files and a judge of the library."""
        other = set(RunBody.model_fields) | {"suites", "judge", "only_failed", "replay", "reuse"}
        own = self.model_dump(exclude=other, exclude_defaults=True)
        return {"path": paths, **own, **({} if judge is None else {"judge": judge})}


class AskBody(RunBody):
    """One question to one agent."""

    model_config = example(agent="sim/echo", prompt="Hello")

    agent: Name
    prompt: Text
    system: Annotated[str, Field(max_length=100_000)] = ""
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    seed: Seed | None = None


class ChainBody(RunBody):
    """A run of a chain of the library."""

    model_config = example(chain="greet", input={"topic": "bridges"})

    chain: Name
    input: dict[str, Any] = {}


class MemberBody(StrictBody):
    """A member of a council."""

    agent: Name
    role: Annotated[str, Field(max_length=200)] = ""
    persona: Annotated[str, Field(max_length=10_000)] = ""
    budget_usd: Usd | None = None


class CouncilBody(RunBody):
    """A council: with the members of a policy of the library, or with named ones.

    The time limit is that of its rounds: the best proposal by then stands.
    """

    model_config = example(question="Which bridge first?", agents=["sim/echo", "sim/slow"], rounds=1)

    question: Text
    policy: Name | None = None
    agents: Annotated[list[Name | MemberBody], Field(max_length=50)] = []
    rounds: Annotated[int, Field(ge=1, le=100)] | None = None
    min_rounds: Annotated[int, Field(ge=1, le=100)] | None = None
    effort: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: Seed | None = None
    synthesis: Name | None = None
    baseline: Name | None = None

    def options(self) -> dict[str, Any]:
        """Return the options of a run by their names; the run itself has no time limit."""
        return super().options() | {"timeout": None}


class VerifyBody(StartBody):
    """A verification of the files of the project that have changed, are staged, or are marked as pending."""

    files: Literal["changed", "staged", "pending"] = "changed"
    ref: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./@^~{}-]{0,199}$")] | None = None
    dispatch: ModeName | None = None  # None: as the agents are declared
    model: Name | None = None
    agents: Names = []
    waves: Annotated[list[Annotated[int, Field(ge=1)]], Field(max_length=100)] = []
    keep_going: bool = False

    def options(self) -> dict[str, Any]:
        """Return the options of a run by their names."""
        fallback = Fallback(self.fallback)
        if self.dispatch is None:  # some of its agents may be asked in batches
            return super().options() | {"dispatch": Dispatch(fallback=fallback, cache=self.cache)}
        # The prompt cache of a provider is used by live calls too.
        dispatch = chosen_dispatch(Mode(self.dispatch), fallback)
        return super().options() | {"dispatch": replace(dispatch, cache=self.cache)}


class TaskBody(StrictBody):
    """A task for a slot of the pool; where and with which rights it works is the operator's choice."""

    model_config = example(prompt="Write a haiku about bridges.")

    prompt: Text
    agent: Name | None = None
    slot: Name | None = None
    role: Name | None = None
    slot_tags: Names = []
    system: Annotated[str, Field(max_length=100_000)] = ""
    model: Name | None = None
    effort: Name | None = None
    max_turns: Annotated[int, Field(ge=1, le=10_000)] | None = None
    output_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    review: bool = False
    max_rejections: Annotated[int, Field(ge=1, le=100)] = 3
    budget_usd: Usd | None = None
    timeout_secs: Seconds | None = None
    name: Name | None = None
    tags: Names = []
    after: Names = []
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    continues: Name | None = Field(default=None, alias="continue")


class FeedbackBody(StrictBody):
    """Why a task is rejected, and a new total of its budget if that leaves too little for another round."""

    feedback: Text
    budget_usd: Usd | None = None


class AllowBody(StrictBody):
    """What is granted instead of the tool that a task asks for."""

    tool: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class DenyBody(StrictBody):
    """Why permission is denied."""

    reason: Annotated[str, Field(max_length=10_000)] = ""


class AmendBody(StrictBody):
    """What is changed about a task that has not begun."""

    prompt: Text | None = None
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] | None = None


class ResumeBody(StrictBody):
    """How a run goes on: with a new total of its budget, if one is given."""

    budget_usd: Usd | None = None


class ForkBody(StrictBody):
    """From which key on a run is repeated."""

    from_key: Annotated[str, Field(min_length=1, max_length=1000, alias="from")]
    budget_usd: Usd | None = None


class AnswerBody(StrictBody):
    """The answer of a person to a question of a run."""

    text: Text
    key: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    client_id: Name | None = None


class TextBody(StrictBody):
    """A text that is sent or set."""

    text: Text


class ReviewBody(StrictBody):
    """What a person thinks of the verdict on a case."""

    run: Name
    case: Annotated[str, Field(min_length=1, max_length=1000)]
    opinion: Opinion
    note: Annotated[str, Field(max_length=10_000)] = ""
    epoch: Annotated[int, Field(ge=1)] | None = None
    subject: Name | None = None


class ScaleSlotsBody(StrictBody):
    """How many slots there are to be: a number, or +N or -N."""

    slots: Annotated[str, Field(pattern=r"^[+-]?[0-9]{1,6}$")] | Annotated[int, Field(ge=0, le=1_000_000)]


class DrainBody(StrictBody):
    """For how long tasks that run are waited for."""

    timeout_secs: Annotated[float, Field(ge=0, le=3600)] = 60.0

"""What clients send: bodies that are read strictly, with the names of docs/HTTP.md."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Text = Annotated[str, Field(min_length=1, max_length=100_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Usd = Annotated[float, Field(gt=0, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0, le=86_400 * 30)]
Names = Annotated[list[Name], Field(max_length=100)]
Opinion = Literal["right", "wrong", "borderline"]
ClientId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


class StrictBody(BaseModel):
    """A body in which nothing may be misspelled."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RunBody(StrictBody):
    """What every run can be started with."""

    id: ClientId | None = None  # of the run; the same request with the same id starts nothing
    name: Name | None = None
    run_tags: Names = []
    budget_usd: Usd | None = None
    timeout_secs: Seconds | None = None
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 20
    dispatch: Literal["live", "batch"] = "live"

    def options(self) -> dict[str, Any]:
        """Return the options of a run by their names."""
        return {
            "name": self.name,
            "tags": self.run_tags,
            "budget_usd": self.budget_usd,
            "timeout": self.timeout_secs,
            "concurrency": self.concurrency,
            "dispatch": self.dispatch,
        }


class SuiteBody(RunBody):
    """A run of suites of the library."""

    suites: Annotated[list[Name], Field(min_length=1, max_length=100)]
    agents: Names = []
    judge: Name | None = None
    judge_samples: Annotated[int, Field(ge=1, le=25)] | None = None
    judge_dispatch: Literal["live", "batch"] | None = None
    epochs: Annotated[int, Field(ge=1, le=1000)] | None = None
    filter: Name | None = None
    tags: Names = []
    evaluator: Literal["rules", "golden", "process", "judge", "all"] | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    seed: int | None = None

    def chosen(self, paths: list[str], judge: str | None) -> dict[str, Any]:
        """Return what was chosen by the names of a suite run's spec, with files and a judge of the library."""
        own = self.model_dump(exclude=set(RunBody.model_fields) | {"suites", "judge"}, exclude_defaults=True)
        return {"path": paths, **own, **({} if judge is None else {"judge": judge})}


class AskBody(RunBody):
    """One question to one agent."""

    agent: Name
    prompt: Text
    system: Annotated[str, Field(max_length=100_000)] = ""
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    seed: int | None = None


class ChainBody(RunBody):
    """A run of a chain of the library."""

    chain: Name
    input: dict[str, Any] = {}


class MemberBody(StrictBody):
    """A member of a council."""

    agent: Name
    role: Annotated[str, Field(max_length=200)] = ""
    persona: Annotated[str, Field(max_length=10_000)] = ""
    budget_usd: Usd | None = None


class CouncilBody(RunBody):
    """A council: with the members of a policy of the library, or with named ones."""

    question: Text
    policy: Name | None = None
    agents: Annotated[list[Name | MemberBody], Field(max_length=50)] = []
    rounds: Annotated[int, Field(ge=1, le=100)] | None = None
    min_rounds: Annotated[int, Field(ge=1, le=100)] | None = None
    effort: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: int | None = None
    synthesis: Name | None = None
    baseline: Name | None = None


class VerifyBody(RunBody):
    """A verification of the files of the project that git says have changed, or that are marked as pending."""

    files: Literal["changed", "pending"] = "changed"
    agents: Names = []
    waves: Annotated[list[Annotated[int, Field(ge=1)]], Field(max_length=100)] = []
    keep_going: bool = False


class TaskBody(StrictBody):
    """A task for a slot of the pool; where and with which rights it works is the operator's choice."""

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
    """Why a task is rejected."""

    feedback: Text


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


Prompt = Annotated[str, Field(min_length=1, max_length=100_000)]


class CamelBody(StrictBody):
    """A body with the names that battles have had from the start."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=False)


class BattleBody(CamelBody):
    """A battle: who is tested, against whom, and when it ends."""

    id: ClientId | None = None
    job_id: ClientId | None = None  # another name of id
    run_id: ClientId | None = None  # another name of id
    agent_id: Name
    provider: Name | None = None
    model: Name | None = None
    counterpart: Name | None = None
    system_prompt: Prompt | None = None
    goal: Prompt | None = None
    message_limit: Annotated[int, Field(ge=1, le=25)] | None = None
    user_message: Prompt | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    budget_usd: Usd | None = None
    validators: Annotated[list[dict[str, Any]], Field(max_length=50)] = []
    judge: Name | None = None
    confirm_judge: Name | None = None
    timeout_secs: Seconds | None = None
    plateau_turns: Annotated[int, Field(ge=1, le=25)] | None = None

    @property
    def client_id(self) -> str | None:
        """The id that the client chose, by whichever name."""
        return self.id or self.job_id or self.run_id

    @property
    def agent(self) -> str:
        """The agent under test: that with the id, or a model of a provider."""
        if self.model is None:
            return self.agent_id
        return self.model if self.provider is None else f"{self.provider}/{self.model}"


class GoalBody(CamelBody):
    """One goal of a scale test, and who wants it."""

    goal: Prompt
    persona: Annotated[str, Field(max_length=100_000)] = ""
    user_message: Annotated[str, Field(max_length=100_000)] = ""


class ScaleBody(BattleBody):
    """A scale test: many battles of one kind."""

    run_count: Annotated[int, Field(ge=1, le=10_000)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=1000)] | None = None
    goals: Annotated[list[GoalBody], Field(max_length=1000)] = []
    min_goal_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    reviser: Name | None = None
    try_revised: bool = False

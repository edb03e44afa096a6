"""What is said to start a battle or a scale test: every field, once. Quick to load: commands read it for their help."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from muster.domain.canonical import Json
from muster.domain.doors import LOCAL, WIRE, Door
from muster.domain.errors import ConflictingArguments
from muster.domain.order import DEFAULT, MAX_TEXT, FieldForm, Name, OrderField, Text, shared_fields
from muster.domain.run_order import RUN_ID, EffortField, FilesField, RunOrder, SamplingFields, TimeLimitField

MAX_REPLIES = 25  # of the agent under test; held in the workload too, whoever made the spec
MAX_VALIDATORS = 20
MAX_GOALS = 1000
DEFAULT_TOKENS = 512
DEFAULT_SECONDS = 600.0
JUDGING, SCALE_TEST, MODEL = "Judging", "Scale test", "A model by its name"  # headings
_REQUEST = frozenset({Door.REQUEST})
_SAME_ID = OrderField(help="Another name of id.", same_as="id", form=FieldForm.ID, pattern=RUN_ID, doors=_REQUEST)


@dataclass(frozen=True, kw_only=True)  # without slots: orders have several bases
class BattleFields(SamplingFields, TimeLimitField):
    """Who talks to whom, about what, who judges it, when it ends: shared by an order and the spec that it becomes."""

    said: ClassVar = {
        "max_tokens": {"help": "Maximum number of tokens in a message.", "shown": str(DEFAULT_TOKENS)},
        "timeout_secs": {
            "help": "Time limit of a battle in seconds. Waiting in a queue, in a batch or for a person does not count.",
            "tool": "",
            "shown": f"{DEFAULT_SECONDS:g}",
        },
    }

    agent: Annotated[
        str,
        OrderField(
            help="The agent under test.",
            tool="Who is tested; `overview` lists agents.",
            form=FieldForm.AGENT,
            alias="agentId",
            option=("--agent", "-a"),
            metavar="A",
            min_length=1,
            max_length=200,
        ),
    ]
    counterpart: Annotated[
        str,
        OrderField(
            help="Who talks with the agent under test: a model, a script, a program, or a person.",
            tool="Who plays the user. Default: what the operator set, else the agent itself.",
            form=FieldForm.AGENT,
            option=("--counterpart", "-c"),
            metavar="B",
            shown="counterpart in muster.toml, else the agent itself",
            min_length=1,
            max_length=200,
        ),
    ] = ""
    system_prompt: Annotated[
        str,
        OrderField(
            help="The system prompt of the agent under test.",
            tool="The instructions of the agent under test.",
            option=("--system",),
            metavar="TEXT",
            shown="system of the agent",
            min_length=1,
            max_length=MAX_TEXT,
        ),
    ] = ""
    persona: Annotated[
        str,
        OrderField(
            help="The role that the counterpart plays.",
            metavar="TEXT",
            shown="none",
            min_length=1,
            max_length=MAX_TEXT,
        ),
    ] = ""
    goal: Annotated[
        str,
        OrderField(
            help="The goal, in words; without one the battle runs to its limit.",
            tool="What the counterpart wants; a judge says when it is reached.",
            metavar="TEXT",
            shown="none",
            min_length=1,
            max_length=MAX_TEXT,
        ),
    ] = ""
    user_message: Annotated[
        str,
        OrderField(
            help="The first message of the conversation.",
            metavar="TEXT",
            shown="the goal, else Begin.",
            min_length=1,
            max_length=MAX_TEXT,
        ),
    ] = ""
    message_limit: Annotated[
        int,
        OrderField(
            help="Maximum replies of the agent under test.",
            tool="The most replies of the agent.",
            metavar="N",
            shown=DEFAULT,
            min=1,
            max=MAX_REPLIES,
        ),
    ] = MAX_REPLIES
    judge: Annotated[
        str,
        OrderField(
            help="The agent that decides after each reply whether the goal is reached.",
            tool="A model that says whether the goal is reached. Default: what the operator set, else a small model of "
            "the agent's provider.",
            form=FieldForm.AGENT,
            option=("--judge", "-j"),
            metavar="J",
            heading=JUDGING,
            shown="judge in muster.toml, else a small model of the same provider",
            min_length=1,
            max_length=200,
        ),
    ] = ""
    confirm_judge: Annotated[
        str,
        OrderField(
            help="Confirms a yes of the judge, with stricter instructions.",
            form=FieldForm.AGENT,
            metavar="J",
            heading=JUDGING,
            shown="the judge",
            min_length=1,
            max_length=200,
        ),
    ] = ""
    plateau_turns: Annotated[
        int | None,
        OrderField(
            help="End the battle when the judge's confidence has not risen for N turns.",
            metavar="N",
            heading=JUDGING,
            shown="off",
            min=1,
            max=MAX_REPLIES,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleOrder(BattleFields, FilesField, EffortField, RunOrder):
    """What is said to start a battle."""

    example: ClassVar = {"agent": "sim/echo", "counterpart": "sim/echo", "user_message": "Hello", "message_limit": 2}

    without: ClassVar = {"dispatch": frozenset({Door.TOOL})}

    validators: Annotated[
        tuple[Mapping[str, Json], ...],
        OrderField(
            help="Checks of each reply that decide before a judge is asked.",
            heading=JUDGING,
            max_length=MAX_VALIDATORS,
            doors=WIRE,
        ),
    ] = ()
    validator_texts: Annotated[
        tuple[str, ...],
        OrderField(
            help="Counts the goal as reached if the reply matches, without asking a judge: regex=PATTERN, "
            "contains=TEXT, json_schema=FILE or program=AGENT; repeatable.",
            form=FieldForm.PATH,
            option=("--validator",),
            metavar="KIND=VALUE",
            heading=JUDGING,
            doors=LOCAL,
        ),
    ] = ()
    validators_file: Annotated[
        Path | None,
        OrderField(
            help="A JSON file with a list of validators, which can also decide no; used after those of --validator.",
            form=FieldForm.PATH,
            option=("--validators",),
            metavar="FILE",
            heading=JUDGING,
            doors=LOCAL,
        ),
    ] = None
    job_id: Annotated[str | None, _SAME_ID] = None
    run_id: Annotated[str | None, _SAME_ID] = None
    provider: Annotated[
        Name | None,
        OrderField(help="The provider of `model`, where its name does not say it.", heading=MODEL, doors=_REQUEST),
    ] = None
    model: Annotated[
        Name | None,
        OrderField(help="The model under test; agentId then is a tag of the run.", heading=MODEL, doors=_REQUEST),
    ] = None

    @property
    def subject(self) -> str:
        """The agent under test: that with the name, or a model of a provider."""
        if self.model is None:
            return self.agent
        return self.model if self.provider is None else f"{self.provider}/{self.model}"

    @property
    def stored_tags(self) -> tuple[str, ...]:
        """The tags of the run: with a model, the name of the agent that it stands for."""
        return self.run_tags if self.model is None else (*self.run_tags, f"agent:{self.agent}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptVariant:
    """One system prompt that is measured."""

    name: Annotated[Name, OrderField(help="Its name in reports.")]
    text: Annotated[Text, OrderField(help="The system prompt.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleGoal:
    """One goal, and who wants it."""

    goal: Annotated[Text, OrderField(help="The goal, in words.")]
    persona: Annotated[str, OrderField(help="The role that the counterpart plays.", max_length=MAX_TEXT)] = ""
    user_message: Annotated[str, OrderField(help="The first message.", max_length=MAX_TEXT)] = ""


@dataclass(frozen=True, kw_only=True)  # without slots: orders have several bases
class Measurement:
    """How many battles, with what, and what is asked of them: shared by an order and the spec that it becomes."""

    runs: Annotated[
        int,
        OrderField(
            help="How many battles; at most 10, unless runs under [battles] in muster.toml allows more.",
            alias="runCount",
            heading=SCALE_TEST,
            metavar="N",
            shown="one for each agent, prompt and goal; 10 if there is one of each",
            min=1,
        ),
    ] = 0
    concurrency: Annotated[
        int,
        OrderField(
            help="How many battles at the same time; at most 3, unless muster.toml allows more.",
            heading=SCALE_TEST,
            metavar="N",
            shown="3",
            min=1,
        ),
    ] = 0
    agents: Annotated[
        tuple[Name, ...],
        OrderField(
            help="An agent under test; several take turns.",
            form=FieldForm.AGENT,
            alias="agentIds",
            option=("--agent", "-a"),
            heading=SCALE_TEST,
            metavar="A",
            max_length=100,
            required_at=frozenset({Door.COMMAND}),
        ),
    ] = ()
    prompts: Annotated[
        tuple[PromptVariant, ...],
        OrderField(
            help="System prompts of the agent under test, which are compared: objects with `name` and `text`.",
            heading=SCALE_TEST,
            max_length=100,
            doors=WIRE,
        ),
    ] = ()
    goals: Annotated[
        tuple[BattleGoal, ...],
        OrderField(
            help="Goals and personas, played in turn: objects with `goal`, `persona` and `userMessage`.",
            heading=SCALE_TEST,
            max_length=MAX_GOALS,
            doors=WIRE,
        ),
    ] = ()
    min_goal_rate: Annotated[
        float | None,
        OrderField(
            help="The share of the battles that must reach the goal.",
            option_help="Exit 1 if a smaller share of the battles reaches the goal.",
            heading=SCALE_TEST,
            metavar="X",
            shown="none",
            min=0,
            max=1,
        ),
    ] = None
    reviser: Annotated[
        str,
        OrderField(
            help="The agent that proposes a better system prompt at the end.",
            form=FieldForm.AGENT,
            heading=SCALE_TEST,
            metavar="AGENT",
            shown="the confirming judge",
            min_length=1,
            max_length=200,
        ),
    ] = ""
    try_revised: Annotated[
        bool, OrderField(help="Run the same goals with the proposed prompt, and compare the pairs.", heading=SCALE_TEST)
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOrder(BattleOrder, Measurement):
    """What is said to start a scale test: a battle, and how it is measured."""

    example: ClassVar = {**BattleOrder.example, "runs": 2}

    agent: Annotated[
        str,
        OrderField(
            help="The agent under test; with agentIds they take turns.",
            form=FieldForm.AGENT,
            alias="agentId",
            min_length=1,
            max_length=200,
            doors=WIRE,
        ),
    ] = ""
    goals_file: Annotated[
        Path | None,
        OrderField(
            help="A file with goals and personas, as YAML or JSON lines.",
            form=FieldForm.PATH,
            option=("--goals",),
            heading=SCALE_TEST,
            metavar="FILE",
            doors=LOCAL,
        ),
    ] = None
    prompt_files: Annotated[
        tuple[Path, ...],
        OrderField(
            help="A system prompt of the agent under test; several are compared.",
            form=FieldForm.PATH,
            option=("--prompt",),
            heading=SCALE_TEST,
            metavar="FILE",
            doors=LOCAL,
        ),
    ] = ()
    revision: Annotated[
        bool,
        OrderField(
            help="Ask for a better prompt at the end.",
            heading=SCALE_TEST,
            option=("--no-revision",),
            option_help="Do not ask for a better prompt.",
        ),
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BattlesOrder(BattleOrder):
    """A battle, or a scale test of several."""

    runs: Annotated[
        int,
        OrderField(help="How many battles.", tool="More than 1: a scale test with figures over all.", min=1),
    ] = 1

    @property
    def meant(self) -> BattleOrder:
        """The order of one battle, or of a scale test."""
        return self if self.runs == 1 else ScaleOrder(**shared_fields(self, ScaleOrder))


def require_consistent(order: ScaleOrder) -> None:
    """Raise ConflictingArguments for fields that say the same thing twice."""
    if (order.goals or order.goals_file is not None) and order.goal:
        raise ConflictingArguments("goals" if order.goals else "goals_file", "goal")
    if (order.prompts or order.prompt_files) and order.system_prompt:
        raise ConflictingArguments("prompts" if order.prompts else "prompt_files", "system_prompt")
    if not order.revision and (order.reviser or order.try_revised):
        raise ConflictingArguments("revision", "reviser", "try_revised")

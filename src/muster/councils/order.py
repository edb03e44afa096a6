"""What is said to start a council: every field, once. Quick to load: commands read it for their help."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar

from muster.domain.doors import LOCAL, REMOTE
from muster.domain.order import MAX_TEXT, FieldForm, Name, OrderField, Text
from muster.domain.run_order import BudgetField, EffortField, FilesField, LimitedRunOrder, SeedField, TimeLimitField

MAX_MEMBERS = 50
MAX_COUNCIL_ROUNDS = 50
DEFAULT_ROUNDS, DEFAULT_MIN_ROUNDS = 3, 1
DEFAULT_EFFORT = 0.6
DEFAULT_QUORUM = 2 / 3


class ScoreScale(StrEnum):
    """The scale on which a program of the exec protocol gives its scores."""

    UNIT = "0..1"  # neutral is 0.5
    SIGNED = "-1..1"  # neutral is 0

    @property
    def lowest(self) -> int:
        """The lowest score; the highest is always 1."""
        return 0 if self is ScoreScale.UNIT else -1


@dataclass(frozen=True, kw_only=True)  # without slots: values have several bases
class MemberFields(BudgetField):
    """What only this council tells an agent about itself: shared by an order, a policy and the spec."""

    said: ClassVar = {
        "budget_usd": {
            "help": "What all calls of the member may cost together, in dollars.",
            "tool": "The most that all its calls may cost, in US dollars.",
            "shown": "",
            "heading": "",
        }
    }

    role: Annotated[
        str, OrderField(help="The role of the member.", tool="Its role, such as skeptic.", max_length=MAX_TEXT)
    ] = ""
    persona: Annotated[
        str, OrderField(help="The persona of the member.", tool="Who it is, in words.", max_length=MAX_TEXT)
    ] = ""
    scale: Annotated[
        ScoreScale, OrderField(help="The scale on which a program of the exec protocol gives its scores.")
    ] = ScoreScale.UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOrder(EffortField, MemberFields):
    """A member of a council."""

    said: ClassVar = {"model_effort": {"help": "How much its model thinks.", "shown": "as the others", "heading": ""}}

    agent: Annotated[Name, OrderField(help="The agent.", tool="The name of an agent.", form=FieldForm.AGENT)]


@dataclass(frozen=True, kw_only=True)  # without slots: orders have several bases
class CouncilFields(TimeLimitField, SeedField):
    """When a council ends, and who else is asked: shared by an order, a policy and the spec that they become.

    None is what the policy says, else what is usual.
    """

    said: ClassVar = {
        "timeout_secs": {"help": "Time limit for all rounds in seconds; the best proposal so far wins.", "tool": ""},
        "seed": {"help": "The random seed for labels, orders and ties.", "shown": "random", "heading": ""},
    }

    rounds: Annotated[
        int | None,
        OrderField(
            help="Maximum number of rounds.",
            tool="The most rounds of proposing and scoring.",
            metavar="N",
            shown=str(DEFAULT_ROUNDS),
            min=1,
            max=MAX_COUNCIL_ROUNDS,
        ),
    ] = None
    min_rounds: Annotated[
        int | None,
        OrderField(
            help="Minimum number of rounds.",
            metavar="N",
            shown=str(DEFAULT_MIN_ROUNDS),
            min=1,
            max=MAX_COUNCIL_ROUNDS,
        ),
    ] = None
    effort: Annotated[
        float | None,
        OrderField(
            help="How much agreement is needed to stop early, from 0 to 1.",
            metavar="X",
            shown=f"{DEFAULT_EFFORT:g}",
            min=0,
            max=1,
        ),
    ] = None
    quorum: Annotated[
        float | None,
        OrderField(
            help="The share of the members that must answer for a phase to go on, and at least two.",
            tool="The share of the members that must answer in each phase.",
            metavar="X",
            shown="2/3",
            above=0,
            max=1,
        ),
    ] = None
    synthesis: Annotated[
        Name | None,
        OrderField(
            help="The agent that writes the final answer, including dissent.",
            tool="Who writes one answer from the best proposals.",
            form=FieldForm.AGENT,
            metavar="AGENT",
        ),
    ] = None
    baseline: Annotated[
        Name | None,
        OrderField(help="Also ask this agent alone, and compare the answers.", form=FieldForm.AGENT, metavar="AGENT"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilOrder(CouncilFields, FilesField, EffortField, LimitedRunOrder):
    """A council: with the members of a policy, with named ones, or with both.

    The time limit is that of its rounds: the best proposal by then stands.
    """

    said: ClassVar = {"files": {"help": "Add a file to the question: a text, an image or a PDF; repeatable."}}

    example: ClassVar = {"question": "Which bridge first?", "agents": ["sim/echo", "sim/slow"], "rounds": 1}

    question: Annotated[
        Text | None,
        OrderField(
            help="The question. If it is - or left out, it is read from standard input.",
            tool="The whole question: the members see nothing else.",
            argument=True,
            metavar="QUESTION|-",
            piped=True,
            required_at=REMOTE,
        ),
    ] = None
    agents: Annotated[
        tuple[Name | MemberOrder, ...],
        OrderField(
            help="Members by the names of their agents, or with a role, a persona and a budget.",
            tool="The members, at least two different ones; with a policy they are added to its own.",
            form=FieldForm.AGENT,
            option=("--agent", "-a"),
            option_help="A member; repeat it for each, at least two.",
            metavar="A",
            max_length=MAX_MEMBERS,
        ),
    ] = ()
    policy: Annotated[
        Name | None,
        OrderField(
            help="A council of the library, which says who is a member.",
            tool="The name of a council of the library, which says who is a member.",
            form=FieldForm.COUNCIL,
            doors=REMOTE,
        ),
    ] = None
    policy_file: Annotated[
        Path | None,
        OrderField(
            help="A council.yaml with members, roles and limits.",
            form=FieldForm.PATH,
            option=("--policy",),
            metavar="FILE",
            doors=LOCAL,
        ),
    ] = None

    @property
    def time_limit(self) -> float | None:
        """The time limit of the run: none besides that of the rounds."""
        return None

    @property
    def names(self) -> tuple[str | None, ...]:
        """The agents that are named; None where none is."""
        members = (one if isinstance(one, str) else one.agent for one in self.agents)
        return (*members, self.synthesis, self.baseline)

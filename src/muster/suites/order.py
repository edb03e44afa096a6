"""What is said to start a suite run or to have cases written: every field, once. Quick to load: commands read it."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from muster.domain.dispatch import Mode
from muster.domain.doors import EVERYWHERE, LOCAL, REMOTE, Door
from muster.domain.order import MAX_GLOB, MAX_NAME, FieldForm, Name, OrderField, ValueBounds
from muster.domain.run_order import MAX_TAGS, EffortField, LimitedRunOrder, PlannedRun, SamplingFields
from muster.suites.values.rules import DEFAULT_THRESHOLD

CASES, JUDGING = "Cases", "Judging"  # headings
MAX_EPOCHS = 1000
MAX_SAMPLES = 25
MAX_SUBJECTS = 1000
MAX_SUITES = 100
MAX_REFERENCE = 5000  # characters: a name, or at this machine a path
MAX_CASES = 200  # that are written at once

EvaluatorChoice = Literal["rules", "golden", "process", "judge", "all"]
JudgingEvaluator = Literal["judge", "all"]
Tag = Annotated[str, ValueBounds(max_length=MAX_NAME)]

_EARLIER_RUN = OrderField(
    help="", form=FieldForm.RUN, metavar="RUN|FILE", heading=CASES, min_length=1, max_length=MAX_REFERENCE
)
_INHERITED = "as in that run"


@dataclass(frozen=True, kw_only=True)  # without slots: orders have several bases
class JudgingFields:
    """Who judges, and how."""

    judge: Annotated[
        str | None,
        OrderField(
            help="The agent that judges, or council:NAME for a council of the library.",
            tool="An agent that judges, or `council:NAME`. Needed when cases have a rubric.",
            form=FieldForm.AGENT,
            option_help="The agent that judges, or council:FILE with the policy of a council.",
            metavar="J",
            heading=JUDGING,
            shown="none",
            min_length=1,
            max_length=MAX_REFERENCE,
        ),
    ] = None
    judge_samples: Annotated[
        int | None,
        OrderField(
            help="How often the judge is asked about each answer.",
            metavar="N",
            heading=JUDGING,
            shown="1",
            min=1,
            max=MAX_SAMPLES,
        ),
    ] = None
    evaluator: Annotated[
        EvaluatorChoice | None,
        OrderField(help="How every answer is evaluated.", metavar="E", heading=JUDGING, shown="that of each case"),
    ] = None
    threshold: Annotated[
        float | None,
        OrderField(
            help="The lowest score that passes.",
            metavar="X",
            heading=JUDGING,
            shown=f"{DEFAULT_THRESHOLD:g}",
            min=0,
            max=1,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)  # without slots: orders have several bases
class SuiteFields(JudgingFields, EffortField, SamplingFields):
    """Which cases are run, on whom, and who judges: shared by an order and the spec that it becomes.

    What is not said is as in the run whose cases or answers are taken, else as usual.
    """

    agents: Annotated[
        tuple[Name, ...],
        OrderField(
            help="An agent to test, in place of that of the suite; several are ranked.",
            tool="Who is tested; several are compared.",
            form=FieldForm.AGENT,
            option=("--agent", "-a"),
            metavar="A",
            max_length=MAX_SUBJECTS,
        ),
    ] = ()
    prompts: Annotated[
        tuple[str, ...],
        OrderField(
            help="A system prompt to test instead of prompt.md; several are ranked.",
            form=FieldForm.PATH,
            option=("--prompt",),
            metavar="FILE",
            max_length=MAX_SUBJECTS,
            doors=LOCAL,
        ),
    ] = ()
    judge_dispatch: Annotated[
        Mode | None,
        OrderField(
            help="Whether the judge is asked live or in batches.", heading=JUDGING, shown="as the agents are asked"
        ),
    ] = None
    epochs: Annotated[
        int | None,
        OrderField(
            help="How often each case is run.",
            tool="How often each case is run.",
            metavar="N",
            shown="1",
            min=1,
            max=MAX_EPOCHS,
        ),
    ] = None
    filter: Annotated[
        str | None,
        OrderField(
            help="Only cases whose id matches.",
            tool="Only cases whose id fits this pattern, such as `greeter/*`.",
            metavar="GLOB",
            shown="all",
            max_length=MAX_GLOB,
        ),
    ] = None
    tags: Annotated[
        tuple[Tag, ...],
        OrderField(
            help="Only cases with one of these tags.", metavar="A,B", joined=True, shown="all", max_length=MAX_TAGS
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)  # without slots: orders have several bases
class SuiteChoice(SuiteFields):
    """Cases of suites, or those of an earlier run that did not pass."""

    suites: Annotated[
        tuple[Name, ...],
        OrderField(
            help="Suites of the library.",
            tool="Names of suites from `overview`.",
            form=FieldForm.SUITE,
            min_length=1,
            max_length=MAX_SUITES,
            doors=REMOTE,
            required_at=REMOTE,
        ),
    ] = ()
    paths: Annotated[
        tuple[str, ...],
        OrderField(
            help="Suites: files, or folders with suites.",
            form=FieldForm.PATH,
            argument=True,
            metavar="PATH…",
            doors=LOCAL,
            required_at=frozenset({Door.COMMAND}),
        ),
    ] = ()
    only_failed: Annotated[
        str | None,
        replace(
            _EARLIER_RUN,
            help="Run only the cases that did not pass in that run; agents, judge and threshold default to its own.",
        ),
    ] = None

    @property
    def repeats(self) -> bool:
        """Return whether cases of an earlier run are run again."""
        return self.only_failed is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOrder(SuiteChoice, LimitedRunOrder):
    """A run of suites."""

    example: ClassVar = {"suites": ["smoke"], "agents": ["sim/echo"]}

    replay: Annotated[
        str | None, replace(_EARLIER_RUN, help="Take every answer from a run or a file; calls no agent.")
    ] = None
    reuse: Annotated[
        str | None,
        replace(_EARLIER_RUN, help="Reuse that run's answers to identical requests; send only the rest."),
    ] = None

    @property
    def references(self) -> tuple[str, ...]:
        """The earlier runs that are named, or the files that they were exported to."""
        return tuple(one for one in (self.only_failed, self.replay, self.reuse) if one is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlanOrder(PlannedRun, SuiteOrder):
    """A run of suites that is only planned."""

    without: ClassVar = dict.fromkeys(
        ("name", "run_tags", "concurrency", "timeout_secs", "replay", "reuse"), EVERYWHERE
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RejudgeOrder(JudgingFields, LimitedRunOrder):
    """The answers of a suite run, judged again."""

    said: ClassVar = {
        "judge": {"shown": "", "heading": ""},
        "judge_samples": {"shown": _INHERITED, "heading": ""},
        "evaluator": {
            "help": "Judge every case, including those that rules decided.",
            "shown": _INHERITED,
            "heading": "",
        },
        "threshold": {"shown": _INHERITED, "heading": ""},
    }

    run: Annotated[
        str,
        OrderField(
            help="A suite run, or a file it was exported to.",
            form=FieldForm.RUN,
            argument=True,
            metavar="RUN|FILE",
            doors=LOCAL,
        ),
    ]
    judge: str = field()  # without the default of its base
    evaluator: JudgingEvaluator | None = None


@dataclass(frozen=True, kw_only=True)  # without slots: orders have several bases
class GenerationFields:
    """Which cases are written, and by whom: shared by an order and the spec that it becomes."""

    agent: Annotated[
        Name, OrderField(help="The agent that writes the cases.", form=FieldForm.AGENT, metavar="AGENT", doors=LOCAL)
    ]
    skill: Annotated[str, OrderField(help="The name of a new suite, in kebab-case.", metavar="NAME", doors=LOCAL)] = ""
    description: Annotated[
        str,
        OrderField(help="What the new suite tests, in a sentence; needed with --skill.", metavar="TEXT", doors=LOCAL),
    ] = ""
    count: Annotated[int, OrderField(help="How many cases.", metavar="N", min=1, max=MAX_CASES, doors=LOCAL)] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOrder(GenerationFields, LimitedRunOrder):
    """Cases that a model writes, for a new suite or at the end of one."""

    without: ClassVar = dict.fromkeys(("dispatch", "fallback", "cache"), EVERYWHERE)

    extend: Annotated[
        Path | None,
        OrderField(help="Add the cases to this suite.", form=FieldForm.PATH, metavar="DIR", doors=LOCAL),
    ] = None
    dry_run: Annotated[bool, OrderField(help="Print the cases; write no file.", doors=LOCAL)] = False
    output: Annotated[
        Path | None,
        OrderField(
            help="The folder of a new suite.",
            form=FieldForm.PATH,
            option=("--output", "-o"),
            metavar="DIR",
            shown="./NAME",
            doors=LOCAL,
        ),
    ] = None

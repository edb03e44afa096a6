"""The options of commands for suites, quick to load: their helps are written from here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from muster.cli.line import Argument, Bundle, Option
from muster.cli.line.parameters import files
from muster.cli.options import (
    MaxTokensOption,
    PatienceOptions,
    PlanBudgetOption,
    PlannedOptions,
    PlanUnpricedOption,
    SeedOption,
    SendingOptions,
    TemperatureOption,
    TermsOptions,
)
from muster.domain.run import Mode

CASES, JUDGING = "Cases", "Judging"  # headings
SuiteRunReference = Annotated[
    str,
    Argument(
        metavar="RUN",
        complete="run_names",
        help="Its id, the beginning of the id, its name, or `last`: the last suite run.",
    ),
]
EVALUATORS = ("rules", "golden", "process", "judge", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenCases:
    """What was said about cases and their judging, by the names of the spec; what was not is None."""

    given: Mapping[str, Any]
    only_failed: str | None = None


def chosen_of(
    paths: Annotated[
        list[str], Argument(metavar="PATH…", complete=files, help="Suites: files, or folders with suites.")
    ],
    agent: Annotated[
        list[str] | None,
        Option(
            "--agent",
            "-a",
            metavar="A",
            complete="agent_names",
            shown="that of the suite",
            help="The agent to test; several are ranked.",
        ),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        Option(
            "--prompt",
            metavar="FILE",
            complete=files,
            help="A system prompt to test instead of prompt.md; several are ranked.",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        Option(
            "--judge",
            metavar="J",
            complete="agent_names",
            heading=JUDGING,
            shown="none",
            help="The agent that judges, or council:FILE with the policy of a council.",
        ),
    ] = None,
    judge_samples: Annotated[
        int | None,
        Option(
            "--judge-samples",
            metavar="N",
            min=1,
            shown="1",
            heading=JUDGING,
            help="How often the judge is asked about each answer.",
        ),
    ] = None,
    judge_dispatch: Annotated[
        str | None,
        Option(
            "--judge-dispatch",
            values=Mode,
            heading=JUDGING,
            shown="as --dispatch",
            help="Whether the judge is asked live or in batches.",
        ),
    ] = None,
    epochs: Annotated[
        int | None, Option("--epochs", metavar="N", min=1, shown="1", help="How often each case is run.")
    ] = None,
    case_filter: Annotated[
        str | None, Option("--filter", metavar="GLOB", shown="all", help="Only cases whose id matches.")
    ] = None,
    tags: Annotated[
        str | None, Option("--tags", metavar="A,B", shown="all", help="Only cases with one of these tags.")
    ] = None,
    evaluator: Annotated[
        str | None,
        Option(
            "--evaluator",
            metavar="E",
            values=EVALUATORS,
            heading=JUDGING,
            shown="that of each case",
            help="How every answer is evaluated.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        Option(
            "--threshold", metavar="X", min=0, max=1, shown="0.7", heading=JUDGING, help="The lowest score that passes."
        ),
    ] = None,
    max_tokens: MaxTokensOption = None,
    temperature: TemperatureOption = None,
    seed: SeedOption = None,
    only_failed: Annotated[
        str | None,
        Option(
            "--only-failed",
            metavar="RUN|FILE",
            complete="run_names_or_files",
            help="Run only the cases that did not pass in that run; agents, judge and threshold default to its own.",
        ),
    ] = None,
) -> ChosenCases:
    """Collect what was given."""
    given = {
        "path": paths,
        "agents": agent,
        "prompts": prompt,
        "judge": judge,
        "judge_samples": judge_samples,
        "judge_dispatch": judge_dispatch,
        "epochs": epochs,
        "filter": case_filter,
        "tags": None if tags is None else [tag.strip() for tag in tags.split(",") if tag.strip()] or [""],
        "evaluator": evaluator,
        "threshold": threshold,
        "max_tokens": max_tokens,
        "temperature": temperature,
        "seed": seed,
    }
    return ChosenCases(given=given, only_failed=only_failed)


ChosenOptions = Annotated[ChosenCases, Bundle(chosen_of, CASES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """What `muster run` takes."""

    chosen: ChosenOptions
    terms: TermsOptions
    sending: SendingOptions
    patience: PatienceOptions
    replay: Annotated[
        str | None,
        Option(
            "--replay",
            heading=CASES,
            metavar="RUN|FILE",
            complete="run_names_or_files",
            help="Take every answer from a run or a file; calls no agent.",
        ),
    ] = None
    reuse: Annotated[
        str | None,
        Option(
            "--reuse",
            heading=CASES,
            metavar="RUN|FILE",
            complete="run_names_or_files",
            help="Reuse that run's answers to identical requests; send only the rest.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanArguments:
    """What `muster plan` takes."""

    chosen: ChosenOptions
    sending: PlannedOptions
    budget: PlanBudgetOption = None
    allow_unpriced: PlanUnpricedOption = False

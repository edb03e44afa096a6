"""The options of `muster council`; quick to load."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from muster.cli.line import Argument, Bundle, Option
from muster.cli.line.parameters import files
from muster.cli.options import PatienceOptions, RunBudgetOption, SendingOptions

COUNCIL_FORMATS = "terminal, json, markdown or html"


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilChoice:
    """Who argues about what, and when it ends; None: as the policy has it."""

    question: str | None
    files: tuple[Path, ...] = ()
    agents: tuple[str, ...] = ()
    policy: Path | None = None
    rounds: int | None = None
    min_rounds: int | None = None
    effort: float | None = None
    timeout: float | None = None
    seed: int | None = None
    synthesis: str | None = None
    baseline: str | None = None


def choice_of(
    question: Annotated[
        str | None,
        Argument(metavar="QUESTION|-", help="The question. If it is - or left out, it is read from standard input."),
    ] = None,
    file: Annotated[
        list[Path] | None,
        Option("--file", metavar="FILE", complete=files, help="Add a file to the question; repeatable."),
    ] = None,
    agent: Annotated[
        list[str] | None,
        Option(
            "--agent", "-a", metavar="A", complete="agent_names", help="A member; repeat it for each, at least two."
        ),
    ] = None,
    policy: Annotated[
        Path | None,
        Option("--policy", metavar="FILE", complete=files, help="A council.yaml with members, roles and limits."),
    ] = None,
    rounds: Annotated[
        int | None, Option("--rounds", metavar="N", min=1, shown="3", help="Maximum number of rounds.")
    ] = None,
    min_rounds: Annotated[
        int | None, Option("--min-rounds", metavar="N", min=1, shown="1", help="Minimum number of rounds.")
    ] = None,
    effort: Annotated[
        float | None,
        Option(
            "--effort",
            metavar="X",
            min=0,
            max=1,
            shown="0.6",
            help="How much agreement is needed to stop early, from 0 to 1.",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        Option(
            "--timeout",
            metavar="S",
            shown="none",
            help="Time limit for all rounds in seconds; the best proposal so far wins.",
        ),
    ] = None,
    seed: Annotated[
        int | None, Option("--seed", metavar="N", shown="random", help="The random seed for labels, orders and ties.")
    ] = None,
    synthesis: Annotated[
        str | None,
        Option(
            "--synthesis",
            metavar="AGENT",
            complete="agent_names",
            help="The agent that writes the final answer, including dissent.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        Option(
            "--baseline",
            metavar="AGENT",
            complete="agent_names",
            help="Also ask this agent alone, and compare the answers.",
        ),
    ] = None,
) -> CouncilChoice:
    """Collect what was given."""
    return CouncilChoice(
        question=question,
        files=tuple(file or ()),
        agents=tuple(agent or ()),
        policy=policy,
        rounds=rounds,
        min_rounds=min_rounds,
        effort=effort,
        timeout=timeout,
        seed=seed,
        synthesis=synthesis,
        baseline=baseline,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilTerms:
    """How the run is done."""

    budget: str | None = None
    name: str | None = None
    concurrency: int = 20
    reports: tuple[str, ...] = ()
    allow_unpriced: bool = False


def council_terms_of(
    budget: RunBudgetOption = None,
    name: Annotated[str | None, Option("--name", metavar="NAME", help="A name for the run.")] = None,
    concurrency: Annotated[
        int, Option("--concurrency", metavar="N", min=1, help="Maximum number of concurrent calls.")
    ] = 20,
    report: Annotated[
        list[str] | None,
        Option(
            "--report",
            metavar="FORMAT=FILE",
            help=f"Write a report: {COUNCIL_FORMATS}. - is standard output; repeatable.",
        ),
    ] = None,
    allow_unpriced: Annotated[bool, Option("--allow-unpriced", help="Allow models without a known price.")] = False,
) -> CouncilTerms:
    """Collect what was given."""
    return CouncilTerms(
        budget=budget,
        name=name,
        concurrency=concurrency,
        reports=tuple(report or ()),
        allow_unpriced=allow_unpriced,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilArguments:
    """What `muster council` takes."""

    choice: Annotated[CouncilChoice, Bundle(choice_of, "Council")]
    sending: SendingOptions
    terms: Annotated[CouncilTerms, Bundle(council_terms_of, "Run")]
    patience: PatienceOptions

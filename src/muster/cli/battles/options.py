"""The options of `muster battle` and `muster scale`; quick to load."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from muster.cli.line import Bundle, Option
from muster.cli.line.parameters import files
from muster.cli.options import (
    REPORT_HELP,
    PatienceOptions,
    RunBudgetOption,
    RunNameOption,
    SeedOption,
    SendingOptions,
    TemperatureOption,
    UnpricedOption,
)

BATTLE_FORMATS = "terminal, json, markdown or html"
JUDGING = "Judging"  # a heading


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleChoice:
    """Who talks about what, who judges it, and when it ends; None: as usual."""

    counterpart: str | None = None
    goal: str = ""
    system: str | None = None
    persona: str | None = None
    user_message: str | None = None
    message_limit: int | None = None
    judge: str | None = None
    confirm_judge: str | None = None
    validators: tuple[str, ...] = ()
    validators_file: Path | None = None
    plateau_turns: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    timeout: float | None = None


def battle_choice_of(
    counterpart: Annotated[
        str | None,
        Option(
            "--counterpart",
            "-c",
            metavar="B",
            complete="agent_names",
            shown="counterpart in muster.toml, else the agent itself",
            help="Who talks with the agent under test: a model, a script, a program, or a person.",
        ),
    ] = None,
    goal: Annotated[
        str,
        Option(
            "--goal", metavar="TEXT", shown="none", help="The goal, in words; without one the battle runs to its limit."
        ),
    ] = "",
    system: Annotated[
        str | None,
        Option(
            "--system", metavar="TEXT", shown="system of the agent", help="The system prompt of the agent under test."
        ),
    ] = None,
    persona: Annotated[
        str | None,
        Option("--persona", metavar="TEXT", shown="none", help="The role that the counterpart plays."),
    ] = None,
    user_message: Annotated[
        str | None,
        Option(
            "--user-message",
            metavar="TEXT",
            shown="the goal, else Begin.",
            help="The first message of the conversation.",
        ),
    ] = None,
    message_limit: Annotated[
        int | None,
        Option(
            "--message-limit", metavar="N", min=1, max=25, shown="25", help="Maximum replies of the agent under test."
        ),
    ] = None,
    judge: Annotated[
        str | None,
        Option(
            "--judge",
            "-j",
            metavar="J",
            complete="agent_names",
            heading=JUDGING,
            shown="judge in muster.toml, else a small model of the same provider",
            help="The agent that decides after each reply whether the goal is reached.",
        ),
    ] = None,
    confirm_judge: Annotated[
        str | None,
        Option(
            "--confirm-judge",
            metavar="J",
            complete="agent_names",
            heading=JUDGING,
            shown="the judge",
            help="Confirms a yes of the judge, with stricter instructions.",
        ),
    ] = None,
    validator: Annotated[
        list[str] | None,
        Option(
            "--validator",
            metavar="KIND=VALUE",
            heading=JUDGING,
            help="Counts the goal as reached if the reply matches, without asking a judge: regex=PATTERN, "
            "contains=TEXT, json_schema=FILE or program=AGENT; repeatable.",
        ),
    ] = None,
    validators: Annotated[
        Path | None,
        Option(
            "--validators",
            metavar="FILE",
            complete=files,
            heading=JUDGING,
            help="A JSON file with a list of validators, which can also decide no; used after those of --validator.",
        ),
    ] = None,
    plateau_turns: Annotated[
        int | None,
        Option(
            "--plateau-turns",
            metavar="N",
            min=1,
            heading=JUDGING,
            shown="off",
            help="End the battle when the judge's confidence has not risen for N turns.",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        Option(
            "--max-tokens",
            metavar="N",
            min=1,
            max=10_000_000,
            heading="Sampling",
            shown="512",
            help="Maximum number of tokens in a message.",
        ),
    ] = None,
    temperature: TemperatureOption = None,
    seed: SeedOption = None,
    timeout: Annotated[
        float | None,
        Option(
            "--timeout",
            metavar="S",
            shown="600",
            help="Time limit of a battle in seconds. Waiting in a queue, in a batch or for a person does not count.",
        ),
    ] = None,
) -> BattleChoice:
    """Collect what was given."""
    return BattleChoice(
        counterpart=counterpart,
        goal=goal,
        system=system,
        persona=persona,
        user_message=user_message,
        message_limit=message_limit,
        judge=judge,
        confirm_judge=confirm_judge,
        validators=tuple(validator or ()),
        validators_file=validators,
        plateau_turns=plateau_turns,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed,
        timeout=timeout,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleTerms:
    """How the run is done."""

    budget: str | None = None
    name: str | None = None
    reports: tuple[str, ...] = ()
    allow_unpriced: bool = False


def battle_terms_of(
    budget: RunBudgetOption = None,
    name: RunNameOption = None,
    report: Annotated[
        list[str] | None,
        Option("--report", metavar="FORMAT=FILE", help=f"{REPORT_HELP} FORMAT is {BATTLE_FORMATS}."),
    ] = None,
    allow_unpriced: UnpricedOption = False,
) -> BattleTerms:
    """Collect what was given."""
    return BattleTerms(budget=budget, name=name, reports=tuple(report or ()), allow_unpriced=allow_unpriced)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleChoice:
    """How many battles, with what, and what is asked of them; None: as usual."""

    agents: tuple[str, ...]
    runs: int | None = None
    concurrency: int | None = None
    goals: Path | None = None
    prompts: tuple[Path, ...] = ()
    min_goal_rate: float | None = None
    reviser: str | None = None
    revises: bool = True
    try_revised: bool = False


def scale_choice_of(
    agent: Annotated[
        list[str],
        Option("--agent", "-a", metavar="A", complete="agent_names", help="An agent under test; several take turns."),
    ],
    runs: Annotated[
        int | None,
        Option(
            "--runs",
            metavar="N",
            min=1,
            shown="one for each agent, prompt and goal; 10 if there is one of each",
            help="How many battles; at most 10, unless runs under [battles] in muster.toml allows more.",
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        Option(
            "--concurrency",
            metavar="N",
            min=1,
            shown="3",
            help="How many battles at the same time; at most 3, unless muster.toml allows more.",
        ),
    ] = None,
    goals: Annotated[
        Path | None,
        Option(
            "--goals", metavar="FILE", complete=files, help="A file with goals and personas, as YAML or JSON lines."
        ),
    ] = None,
    prompt: Annotated[
        list[Path] | None,
        Option(
            "--prompt",
            metavar="FILE",
            complete=files,
            help="A system prompt of the agent under test; several are compared.",
        ),
    ] = None,
    min_goal_rate: Annotated[
        float | None,
        Option(
            "--min-goal-rate",
            metavar="X",
            min=0,
            max=1,
            shown="none",
            help="Exit 1 if a smaller share of the battles reaches the goal.",
        ),
    ] = None,
    reviser: Annotated[
        str | None,
        Option(
            "--reviser",
            metavar="AGENT",
            complete="agent_names",
            shown="the confirming judge",
            help="The agent that proposes a better system prompt at the end.",
        ),
    ] = None,
    no_revision: Annotated[bool, Option("--no-revision", help="Do not ask for a better prompt.")] = False,
    try_revised: Annotated[
        bool, Option("--try-revised", help="Run the same goals with the proposed prompt, and compare the pairs.")
    ] = False,
) -> ScaleChoice:
    """Collect what was given."""
    return ScaleChoice(
        agents=tuple(agent),
        runs=runs,
        concurrency=concurrency,
        goals=goals,
        prompts=tuple(prompt or ()),
        min_goal_rate=min_goal_rate,
        reviser=reviser,
        revises=not no_revision,
        try_revised=try_revised,
    )


def battle_agent_of(
    agent: Annotated[str, Option("--agent", "-a", metavar="A", complete="agent_names", help="The agent under test.")],
) -> str:
    """Return who is tested."""
    return agent


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleArguments:
    """What `muster battle` takes."""

    agent: Annotated[str, Bundle(battle_agent_of, "Battle")]
    choice: Annotated[BattleChoice, Bundle(battle_choice_of, "Battle")]
    sending: SendingOptions
    terms: Annotated[BattleTerms, Bundle(battle_terms_of, "Run")]
    patience: PatienceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleArguments:
    """What `muster scale` takes."""

    scale: Annotated[ScaleChoice, Bundle(scale_choice_of, "Scale test")]
    choice: Annotated[BattleChoice, Bundle(battle_choice_of, "Battle")]
    sending: SendingOptions
    terms: Annotated[BattleTerms, Bundle(battle_terms_of, "Run")]
    patience: PatienceOptions

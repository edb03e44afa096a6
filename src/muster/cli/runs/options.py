"""The options of `muster ask`, without anything that takes long to load: its help is written from here."""

from dataclasses import dataclass
from typing import Annotated

from muster.cli.line import Argument, Option
from muster.cli.options import (
    MaxTokensOption,
    PatienceOptions,
    RunBudgetOption,
    RunNameOption,
    SeedOption,
    SendingOptions,
    TemperatureOption,
    TimeoutOption,
    UnpricedOption,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskArguments:
    """What `muster ask` takes."""

    sending: SendingOptions
    patience: PatienceOptions
    agent: Annotated[
        str,
        Argument(
            metavar="AGENT",
            complete="agent_names",
            help="A model such as anthropic/MODEL or openai/MODEL, an agent of muster.toml, or sim/echo.",
        ),
    ]
    prompt: Annotated[
        str | None,
        Argument(
            metavar="PROMPT",
            when_more="quote the prompt",
            help="The prompt. If it is - or left out, it is read from standard input.",
        ),
    ] = None
    system: Annotated[str, Option("--system", metavar="TEXT", help="The system prompt.")] = ""
    budget: RunBudgetOption = None
    max_tokens: MaxTokensOption = None
    temperature: TemperatureOption = None
    seed: SeedOption = None
    name: RunNameOption = None
    timeout: TimeoutOption = None
    allow_unpriced: UnpricedOption = False

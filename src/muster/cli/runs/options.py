"""The options of `muster ask` and `muster runs start`, without anything that takes long to load."""

from dataclasses import dataclass
from typing import Annotated

from muster.app.kinds.question_order import QuestionOrder
from muster.cli.line import Argument, Bundle, Option
from muster.cli.line.types import files
from muster.cli.options import DetachOption, PatienceOptions, RunUnpricedOption
from muster.domain.run_order import LimitedRunOrder

BudgetOption = Annotated[
    str | None,
    Option(
        "--budget", metavar="USD", shown="as before", help="The new total budget of the run, including what was spent."
    ),
]
ForkBudgetOption = Annotated[
    str | None,
    Option("--budget", metavar="USD", shown="that of the other run", help="The budget of the new run."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskArguments:
    """What `muster ask` takes."""

    order: Annotated[QuestionOrder, Bundle(QuestionOrder)]
    show_thinking: Annotated[
        bool, Option("--show-thinking", help="Also show what the model says that it thought, on standard error.")
    ] = False
    detach: DetachOption = False
    allow_unpriced: RunUnpricedOption = False
    patience: PatienceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class StartArguments:
    """What `muster runs start` takes: what a workload is given is the workload's own."""

    workload: Annotated[
        str, Argument(metavar="WORKLOAD", help="The name of a registered workload; see [workloads] in muster.toml.")
    ]
    input: Annotated[
        str,
        Option(
            "--input",
            "-i",
            metavar="JSON|FILE",
            complete=files,
            help="The input of the workload: JSON, a file with JSON, or - for standard input.",
        ),
    ] = "{}"
    order: Annotated[LimitedRunOrder, Bundle(LimitedRunOrder)]
    detach: DetachOption = False
    allow_unpriced: RunUnpricedOption = False
    patience: PatienceOptions

"""The options of commands for suites, quick to load: their helps are written from here."""

from dataclasses import dataclass
from typing import Annotated

from muster.app.kinds import SUITE
from muster.cli.line import Argument, Bundle
from muster.cli.options import (
    DetachOption,
    ExactOption,
    ExactRequestsOption,
    PatienceOptions,
    PlanUnpricedOption,
    RunUnpricedOption,
    UnpricedOption,
    report_option,
)
from muster.suites.order import CASES, GenerationOrder, RejudgeOrder, SuiteOrder, SuitePlanOrder

SuiteRunReference = Annotated[
    str,
    Argument(
        metavar="RUN",
        complete="run_names",
        help="Its id, the beginning of the id, its name, or `last`: the last suite run.",
    ),
]


def detached(detach: DetachOption = False) -> bool:
    """Return what was given."""
    return detach


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """What `muster run` takes."""

    order: Annotated[SuiteOrder, Bundle(SuiteOrder, CASES)]
    detach: DetachOption = False
    reports: Annotated[list[str] | None, report_option(SUITE)] = None
    allow_unpriced: RunUnpricedOption = False
    patience: PatienceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class RejudgeArguments:
    """What `muster runs rejudge` takes."""

    order: Annotated[RejudgeOrder, Bundle(RejudgeOrder)]
    detach: DetachOption = False
    reports: Annotated[list[str] | None, report_option(SUITE)] = None
    allow_unpriced: RunUnpricedOption = False
    patience: PatienceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanArguments:
    """What `muster plan` takes."""

    order: Annotated[SuitePlanOrder, Bundle(SuitePlanOrder, CASES)]
    detach: Annotated[bool, Bundle(detached, hidden=("--detach",))]
    allow_unpriced: PlanUnpricedOption = False
    exact: ExactOption = False
    exact_requests: ExactRequestsOption = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateArguments:
    """What `muster generate` takes."""

    order: Annotated[GenerationOrder, Bundle(GenerationOrder)]
    allow_unpriced: UnpricedOption = False

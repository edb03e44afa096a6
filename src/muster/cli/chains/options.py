"""The options of `muster chain run` and `muster chain plan`; quick to load."""

from dataclasses import dataclass
from typing import Annotated

from muster.cli.line import Bundle, Option
from muster.cli.options import PatienceOptions, PlanUnpricedOption, RunUnpricedOption
from muster.domain.run_order import RUN
from muster.pool.chains.order import ChainOrder, ChainPlanOrder

UNPLANNED = ("--name", "--tag", "--concurrency", "--timeout", "--no-cache")
DETACHES = Option("--detach", heading=RUN, help="Submit the run to workers instead of running it here.")


def detached(detach: Annotated[bool, DETACHES] = False) -> bool:
    """Return what was given."""
    return detach


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainArguments:
    """What `muster chain run` takes."""

    order: Annotated[ChainOrder, Bundle(ChainOrder, "Inputs")]
    detach: Annotated[bool, Bundle(detached)]
    allow_unpriced: RunUnpricedOption = False
    patience: PatienceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPlanArguments:
    """What `muster chain plan` takes; words for `muster chain run` can stay as they are."""

    order: Annotated[ChainPlanOrder, Bundle(ChainPlanOrder, "Inputs", hidden=UNPLANNED)]
    detach: Annotated[bool, Bundle(detached, hidden=("--detach",))]
    allow_unpriced: PlanUnpricedOption = False

"""The options of `muster battle` and `muster scale`; quick to load."""

from dataclasses import dataclass
from typing import Annotated

from muster.app.kinds import BATTLE, SCALE
from muster.battles.order import BattleOrder, ScaleOrder
from muster.cli.line import Bundle
from muster.cli.options import DetachOption, PatienceOptions, RunUnpricedOption, report_option


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleArguments:
    """What `muster battle` takes."""

    order: Annotated[BattleOrder, Bundle(BattleOrder, "Battle")]
    detach: DetachOption = False
    reports: Annotated[list[str] | None, report_option(BATTLE)] = None
    allow_unpriced: RunUnpricedOption = False
    patience: PatienceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleArguments:
    """What `muster scale` takes."""

    order: Annotated[ScaleOrder, Bundle(ScaleOrder, "Battle")]
    detach: DetachOption = False
    reports: Annotated[list[str] | None, report_option(SCALE)] = None
    allow_unpriced: RunUnpricedOption = False
    patience: PatienceOptions

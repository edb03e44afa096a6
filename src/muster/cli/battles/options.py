"""The options of `muster battle` and `muster scale`; quick to load."""

from dataclasses import dataclass
from typing import Annotated

from muster.battles.order import BattleOrder, ScaleOrder
from muster.cli.line import Bundle, Option
from muster.cli.options import (
    REPORT_HELP,
    PatienceOptions,
    RunBudgetOption,
    RunNameOption,
    SendingOptions,
    UnpricedOption,
)

BATTLE_FORMATS = "terminal, json, markdown or html"


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
class BattleArguments:
    """What `muster battle` takes."""

    order: Annotated[BattleOrder, Bundle(BattleOrder, "Battle")]
    sending: SendingOptions
    terms: Annotated[BattleTerms, Bundle(battle_terms_of, "Run")]
    patience: PatienceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleArguments:
    """What `muster scale` takes."""

    order: Annotated[ScaleOrder, Bundle(ScaleOrder, "Battle")]
    sending: SendingOptions
    terms: Annotated[BattleTerms, Bundle(battle_terms_of, "Run")]
    patience: PatienceOptions

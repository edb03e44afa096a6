"""The options of `muster council`; quick to load."""

from dataclasses import dataclass
from typing import Annotated

from muster.app.kinds import COUNCIL
from muster.cli.line import Bundle
from muster.cli.options import DetachOption, PatienceOptions, RunUnpricedOption, report_option
from muster.councils.order import CouncilOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilArguments:
    """What `muster council` takes."""

    order: Annotated[CouncilOrder, Bundle(CouncilOrder, "Council")]
    detach: DetachOption = False
    reports: Annotated[list[str] | None, report_option(COUNCIL)] = None
    allow_unpriced: RunUnpricedOption = False
    patience: PatienceOptions

"""The options of `verify` and `verify plan`; quick to load."""

from dataclasses import dataclass
from typing import Annotated

from muster.app.kinds import VERIFICATION
from muster.cli.line import Bundle, Option
from muster.cli.options import PatienceOptions, PlanUnpricedOption, RunUnpricedOption, report_option
from muster.domain.run_order import DISPATCH
from muster.verify.order import FILES, VerificationOrder, VerificationPlanOrder

DETACHES = Option(
    "--detach", heading=DISPATCH, help="Submit the batches and exit; continue with `muster verify resume`."
)


def detached(detach: Annotated[bool, DETACHES] = False) -> bool:
    """Return what was given."""
    return detach


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyCommandArguments:
    """What `muster verify` takes."""

    order: Annotated[VerificationOrder, Bundle(VerificationOrder, FILES)]
    detach: Annotated[bool, Bundle(detached)]
    reports: Annotated[list[str] | None, report_option(VERIFICATION)] = None
    allow_unpriced: RunUnpricedOption = False
    patience: PatienceOptions
    fix: Annotated[
        bool,
        Option(
            "--fix",
            help="Apply the changes that findings propose, and verify again. "
            "With --agent CODER, a CLI agent of muster.toml repairs the findings in a worktree.",
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPlanArguments:
    """What `muster verify plan` takes."""

    order: Annotated[VerificationPlanOrder, Bundle(VerificationPlanOrder, FILES, hidden=("--keep-going",))]
    detach: Annotated[bool, Bundle(detached, hidden=("--detach",))]
    allow_unpriced: PlanUnpricedOption = False

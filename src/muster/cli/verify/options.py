"""The options that choose what is verified and by whom, shared by `verify` and `verify plan`; quick to load."""

from dataclasses import dataclass
from typing import Annotated

from muster.app.kinds import VERIFICATION
from muster.cli.line import Bundle, Option
from muster.cli.options import (
    DispatchOptions,
    FallbackOption,
    PatienceOptions,
    PlanBudgetOption,
    PlanUnpricedOption,
    RunUnpricedOption,
    report_option,
)
from muster.domain.errors import BadArgument
from muster.domain.run import Dispatch, Fallback, Mode
from muster.verify.order import FILES, VerificationFields, VerificationOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyDispatchOptions:
    """How the calls of a verification are sent."""

    sending: DispatchOptions
    live: bool = False  # whatever the agents' own declarations say
    cache: bool = True


def verify_sending_of(
    batch: Annotated[
        bool, Option("--batch", help="Use the batch APIs, which cost less and take minutes to hours.")
    ] = False,
    detach: Annotated[
        bool, Option("--detach", help="Submit the batches and exit; continue with `muster verify resume`.")
    ] = False,
    live: Annotated[
        bool, Option("--live", help="Send every call immediately, including those of agents with dispatch: batch.")
    ] = False,
    fallback: FallbackOption = "fail",
    no_cache: Annotated[bool, Option("--no-cache", help="Turn off the provider's prompt cache.")] = False,
) -> VerifyDispatchOptions:
    """Check what was given."""
    if batch and live:
        raise BadArgument("--batch and --live cannot be used together", suggestions=("use one of them, or neither",))
    if detach and live:
        raise BadArgument(
            "--detach requires batches, and --live turns them off",
            suggestions=("leave one of them out",),
        )
    if live and fallback != Fallback.FAIL:
        raise BadArgument("--fallback applies to batches, and --live turns them off")
    mode = Mode.BATCH if batch else Mode.LIVE
    dispatch = Dispatch(mode=mode, fallback=Fallback(fallback), cache=not no_cache)
    return VerifyDispatchOptions(
        sending=DispatchOptions(dispatch=dispatch, detach=detach), live=live, cache=not no_cache
    )


VerifySendingOptions = Annotated[VerifyDispatchOptions, Bundle(verify_sending_of, "Dispatch")]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyCommandArguments:
    """What `muster verify` takes."""

    order: Annotated[VerificationOrder, Bundle(VerificationOrder, FILES)]
    sent: VerifySendingOptions
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

    order: Annotated[VerificationFields, Bundle(VerificationFields, FILES, hidden=("--keep-going",))]
    sent: Annotated[VerifyDispatchOptions, Bundle(verify_sending_of, "Dispatch", hidden=("--detach",))]
    budget: PlanBudgetOption = None
    allow_unpriced: PlanUnpricedOption = False

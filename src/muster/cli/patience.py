"""The options of every command that may wait for batches: how long, and how often the provider is asked."""

import math
from typing import TYPE_CHECKING, Annotated

from muster.cli.bundle import bundle
from muster.cli.line import Option

if TYPE_CHECKING:
    from muster.app import Patience

LONGEST_POLL = 300.0


def patience_of(
    linger: Annotated[
        float | None,
        Option("--linger", metavar="S", help="Most seconds that a call waits for others to join its batch (60)."),
    ] = None,
    poll_interval: Annotated[
        float | None,
        Option("--poll-interval", metavar="S", help="Seconds between the first questions for a batch (5)."),
    ] = None,
    deadline: Annotated[
        float | None,
        Option("--deadline", metavar="S", help="Most seconds to wait here for one batch (86400)."),
    ] = None,
    max_parked: Annotated[
        int | None,
        Option("--max-parked", metavar="N", help="Most calls that wait in batches at a time (20000)."),
    ] = None,
) -> "Patience":
    """Check what was given; what was not is as the engine has it."""
    from muster.app import Patience

    _check("--linger", linger, "0 seconds or more", linger is None or 0 <= linger < math.inf)
    for option, given in (("--poll-interval", poll_interval), ("--deadline", deadline)):
        _check(option, given, "more than 0 seconds", given is None or 0 < given < math.inf)
    _check("--max-parked", max_parked, "1 or more", max_parked is None or max_parked >= 1)
    longest = None if poll_interval is None else max(LONGEST_POLL, poll_interval)
    wanted = {
        "linger": linger,
        "poll_first": poll_interval,
        "poll_longest": longest,
        "deadline": deadline,
        "max_parked": max_parked,
    }
    return Patience(**{name: value for name, value in wanted.items() if value is not None})  # type: ignore[arg-type]


def _check(option: str, given: float | None, wanted: str, fits: bool) -> None:
    from muster.domain.errors import BadArgument

    if not fits:
        raise BadArgument(f"{option} must be {wanted}, not {given:g}")


patient = bundle("patience", patience_of)

"""Options that several commands share, each group as one value: batches, and texts on standard input."""

import math
import sys
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from muster.cli.line import Argument, Bundle, Option
from muster.domain.dispatch import Mode
from muster.domain.errors import BadArgument
from muster.domain.kind import WorkKind
from muster.domain.order import order_fields
from muster.domain.patience import Patience
from muster.domain.run_order import DISPATCH, RUN, RunOrder, dispatch_of, require_name

TaskArgument = Annotated[str, Argument(metavar="TASK", help="Its id, the beginning of the id, its name, or `last`.")]
RunArgument = Annotated[
    str, Argument(metavar="RUN", complete="run_names", help="Its id, the beginning of the id, its name, or `last`.")
]
BatchArgument = Annotated[
    str,
    Argument(metavar="ID", complete="batch_ids", help="Its id, the beginning of the id, the provider's id, or `last`."),
]

PlanUnpricedOption = Annotated[bool, Option("--allow-unpriced", help="Treat models without a known price as free.")]

ExactOption = Annotated[
    bool,
    Option("--exact", help="Have providers count the tokens of first requests, where that is free; needs keys."),
]
ExactRequestsOption = Annotated[
    int,
    Option("--exact-requests", metavar="N", min=1, max=10_000, help="How many requests --exact makes at most."),
]

UNPRICED = "Allow models without a known price."
UnpricedOption = Annotated[bool, Option("--allow-unpriced", help=UNPRICED)]
RunUnpricedOption = Annotated[bool, Option("--allow-unpriced", heading=RUN, help=UNPRICED)]
LimitOption = Annotated[int, Option("--limit", metavar="N", min=1, max=1_000_000, help="How many to list.")]

ADD_BATCH = "add --dispatch batch"
MAX_POLL = 300.0
PollOption = Annotated[
    float | None,
    Option(
        "--poll-interval",
        metavar="S",
        shown="5",
        help="Initial number of seconds between status requests for a batch; the interval grows.",
    ),
]
DeadlineOption = Annotated[
    float | None,
    Option(
        "--deadline",
        metavar="S",
        shown="86400",
        help="Maximum seconds to wait for a batch. After that it stays at the provider; the run can be resumed.",
    ),
]


def patience_of(
    linger: Annotated[
        float | None,
        Option(
            "--linger",
            metavar="S",
            shown="60",
            help="Maximum seconds that a call waits for other calls before its batch is sent.",
        ),
    ] = None,
    poll_interval: PollOption = None,
    deadline: DeadlineOption = None,
    max_parked: Annotated[
        int | None,
        Option(
            "--max-parked",
            metavar="N",
            shown="20000",
            help="Maximum number of calls that wait in batches at the same time; further calls start as these end.",
        ),
    ] = None,
) -> Patience:
    """Check what was given; what was not is as the engine has it."""
    _check("--linger", linger, "0 seconds or more", linger is None or 0 <= linger < math.inf)
    for option, given in (("--poll-interval", poll_interval), ("--deadline", deadline)):
        _check(option, given, "more than 0 seconds", given is None or 0 < given < math.inf)
    _check("--max-parked", max_parked, "1 or more", max_parked is None or max_parked >= 1)
    longest = None if poll_interval is None else max(MAX_POLL, poll_interval)
    wanted = {
        "linger": linger,
        "poll_first": poll_interval,
        "poll_longest": longest,
        "deadline": deadline,
        "max_parked": max_parked,
    }
    return Patience(**{name: value for name, value in wanted.items() if value is not None})  # type: ignore[arg-type]


def _check(option: str, given: float | None, wanted: str, fits: bool) -> None:
    if not fits:
        raise BadArgument(f"{option} must be {wanted}, not {given:g}")


BATCH_OPTIONS = {
    "linger": "--linger",
    "poll_first": "--poll-interval",
    "max_parked": "--max-parked",
    "deadline": "--deadline",
}


def refuse_useless(patience: Patience, *, batch: bool, way: str = ADD_BATCH) -> None:
    """Refuse options about batches where every call is live."""
    given = batch_option(patience)
    if given and not batch:
        raise BadArgument(f"{given} applies to batches, and every call of this run is live", suggestions=(way,))


def batch_option(patience: Patience) -> str:
    """Return the first option about batches that was given; empty: none was."""
    usual = Patience()
    changed = (field for field in BATCH_OPTIONS if getattr(patience, field) != getattr(usual, field))
    return next((BATCH_OPTIONS[field] for field in changed), "")


PatienceOptions = Annotated[Patience, Bundle(patience_of, "Waiting for batches")]
PollingOptions = Annotated[Patience, Bundle(patience_of, "Waiting for batches", hidden=("--linger", "--max-parked"))]


REPORT_HELP = "Write a report; repeatable. FILE is - for standard output; missing folders are created."
DetachOption = Annotated[
    bool, Option("--detach", heading=DISPATCH, help="Submit the batches and exit; continue later in any process.")
]


def require_dispatch(order: RunOrder, *, detach: bool = False) -> None:
    """Refuse, before a store is opened, a name that means something else and a dispatch that contradicts itself."""
    require_name(order.name)
    if dispatch_of(order).mode is not Mode.BATCH and detach:
        raise BadArgument("--detach requires batches, and every call of this run is live", suggestions=(ADD_BATCH,))


def require_sendable(order: RunOrder, patience: Patience, *, detach: bool = False) -> None:
    """Refuse the same, and options about batches where there are none."""
    require_dispatch(order, detach=detach)
    refuse_useless(patience, batch=order.dispatch is Mode.BATCH)


def report_help(kind: WorkKind) -> str:
    """Return the help of the option for reports of runs of a kind."""
    return REPORT_HELP if kind.report is None else f"{REPORT_HELP} FORMAT is {kind.report.words}."


def report_option(kind: WorkKind) -> Option:
    """Return the option for reports of runs of a kind."""
    return Option("--report", metavar="FORMAT=FILE", heading=RUN, help=report_help(kind))


Order = TypeVar("Order", bound=RunOrder)


def read_text(given: str | None, noun: str, remedy: str) -> str:
    """Return a text that was given, or that stands on standard input."""
    if given is None and (sys.stdin is None or sys.stdin.isatty()):
        raise BadArgument(f"no {noun} given", suggestions=(remedy,))
    return given if given not in (None, "-") else _piped(noun)


def filled(order: Order, kind: WorkKind) -> Order:
    """Return an order with what stands on standard input; what is wrong with that is told with all that is wrong."""
    declared: Any = type(order)
    piped = [one.name for one in order_fields(declared) if one.declared.piped]
    given: dict[str, Any] = {name: read_text(getattr(order, name), name, kind.example) for name in piped}
    return replace(order, **given)


def _piped(noun: str) -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeError:
        raise BadArgument(f"the {noun} is not UTF-8") from None

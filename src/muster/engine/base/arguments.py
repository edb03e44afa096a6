"""What programs give to a context: refused in one sentence where a type checker would have refused it too."""

import math
from collections.abc import AsyncIterable, Iterable
from datetime import datetime, timedelta
from typing import TypeGuard

from muster.domain.errors import BadArgument

OWN_EVENTS = ("agent.", "batch.", "call.", "journal.", "run.", "work.")  # what the engine tells of a run


def require_count(name: str, value: object, least: int) -> None:
    """Raise BadArgument for what is no whole number of at least so many."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadArgument(f"must be {least} or more, not {value!r}", argument=name)


def require_seconds(name: str, value: object, most: float = math.inf) -> float:
    """Return a number of seconds; raises BadArgument for one that cannot be waited for, or more than so many."""
    if isinstance(value, timedelta):
        raise BadArgument(
            f"must be a number, not {value!r}", argument=name, suggestions=("write delta.total_seconds()",)
        )
    if not _is_number(value) or not 0 <= value <= most:
        bounds = "0 or more" if math.isinf(most) else f"from 0 to {most:g} seconds"
        raise BadArgument(f"must be {bounds}, not {value!r}", argument=name)
    return float(value)


def require_moment(time: float | datetime) -> float:
    """Return a time as seconds since 1970; raises BadArgument for one that is not a certain moment."""
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise BadArgument(
                "must have a time zone", argument="time", suggestions=("datetime.now(UTC) + timedelta(hours=8)",)
            )
        return time.timestamp()
    if not _is_number(time):
        raise BadArgument(f"must be seconds since 1970 or a datetime, not {time!r}", argument="time")
    return float(time)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def require_text(name: str, value: object) -> None:
    """Raise BadArgument for what is no text, or an empty one."""
    if not isinstance(value, str) or not value:
        raise BadArgument(f"must be a text, not {value!r}", argument=name)


def require_iterable(name: str, value: object) -> None:
    """Raise BadArgument for what has no items."""
    if not isinstance(value, Iterable | AsyncIterable):
        raise BadArgument(f"must be a list or another iterable, not {value!r}", argument=name)


def require_own_kind(kind: object) -> None:
    """Raise BadArgument for a kind of event that is none, or that the engine tells."""
    require_text("kind", kind)
    if str(kind).startswith(OWN_EVENTS):
        raise BadArgument(
            f"{kind!r} is an event of the engine, and a workload cannot emit it",
            suggestions=("give it a name of yours, such as order.checked",),
        )

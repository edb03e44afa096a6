"""Times and lengths of time as people read and write them."""

import re
from datetime import datetime

from muster.domain.errors import BadArgument

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_SPAN = re.compile(r"(\d{1,9})([smhdw])")


def span(seconds: float) -> str:
    """Write a length of time, no finer than anybody needs it."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def rough(seconds: float) -> str:
    """Write a length of time in one unit, for a column."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def local(at: float | None) -> str:
    """Write a time as the clock on the wall shows it."""
    return "" if at is None else f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"


def since(given: str, now: float, option: str = "--since") -> float:
    """Read where a window of time begins or ends: so long ago, or at a date."""
    if found := _SPAN.fullmatch(given.strip()):
        return max(0.0, now - int(found[1]) * _UNITS[found[2]])
    try:
        return max(0.0, datetime.fromisoformat(given.strip()).astimezone().timestamp())
    except (ValueError, OverflowError, OSError):
        raise BadArgument(
            f"{option} must be a duration or a date, not {given!r}",
            suggestions=("write it like 7d, 24h, 30m or 2026-01-31",),
        ) from None

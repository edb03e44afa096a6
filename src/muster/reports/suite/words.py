"""Words that several reports share, and texts of strangers cut to a size."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from muster.domain.verdict import Status

# The worst first: the order in which people want to see them.
ORDER = (
    Status.FAILED,
    Status.ERROR,
    Status.TIMED_OUT,
    Status.UNJUDGED,
    Status.FLAKY,
    Status.SKIPPED,
    Status.PASSED,
)
WORDS: Mapping[Status, str] = {status: str(status).replace("_", " ") for status in Status}

_BREAKS = re.compile(r"\s+")


def shorten(text: str, most: int) -> str:
    """Cut a text and say how much is missing."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters)"


def one_line(text: str, most: int) -> str:
    """Put a text on one line of at most so many characters."""
    flat = _BREAKS.sub(" ", text[: 4 * most]).strip()
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"


def count(number: int, noun: str) -> str:
    """Write a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(share: float | None, places: int = 1) -> str:
    """Write a share for a person."""
    return "–" if share is None else f"{100 * share:.{places}f}%"


def moment(at: float | None) -> str | None:
    """Write a time in UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def listed(counts: Mapping[Status, int]) -> str:
    """Say how many cases ended how, the worst first."""
    return ", ".join(f"{counts[status]:,} {WORDS[status]}" for status in ORDER if counts.get(status))

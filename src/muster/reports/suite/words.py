"""How reports of suites speak of the ways in which a case ends."""

from collections.abc import Mapping

from muster.domain.verdict import Status

# The worst first: the order in which people want to see them.
ORDER = (
    Status.FAILED,
    Status.ERROR,
    Status.TIMED_OUT,
    Status.UNJUDGED,
    Status.FLAKY,
    Status.WAITING,
    Status.SKIPPED,
    Status.PASSED,
)
WORDS: Mapping[Status, str] = {status: str(status).replace("_", " ") for status in Status}


def listed(counts: Mapping[Status, int]) -> str:
    """Say how many cases ended how, the worst first."""
    return ", ".join(f"{counts[status]:,} {WORDS[status]}" for status in ORDER if counts.get(status))

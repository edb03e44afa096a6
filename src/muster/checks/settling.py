"""What several epochs of one case come to."""

from collections.abc import Iterable

from muster.domain.verdict import Status

# From the worst on: what was not even tried properly stands before what was tried and failed.
WORST_FIRST = (Status.ERROR, Status.TIMED_OUT, Status.FAILED, Status.UNJUDGED, Status.SKIPPED)


def settle(statuses: Iterable[Status]) -> Status:
    """Give one status for all epochs: the one they share, flaky when only some passed, else the worst.

    Of no epoch at all nothing can be said: unjudged.
    """
    different = set(statuses)
    if len(different) == 1:
        return different.pop()
    if Status.PASSED in different or Status.FLAKY in different:
        return Status.FLAKY
    return next((status for status in WORST_FIRST if status in different), Status.UNJUDGED)

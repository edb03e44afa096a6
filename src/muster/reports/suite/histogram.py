"""Counts for charts: how scores and times are spread, in bins that are fixed beforehand."""

from math import log

BINS = 20
LEAST_SECONDS, MOST_SECONDS = 0.001, 1000.0  # the axis of times is logarithmic
TICKS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


class Histogram:
    """Counts scores and times as they come."""

    __slots__ = ("scores", "seconds")

    def __init__(self) -> None:
        self.scores = [0] * BINS
        self.seconds = [0] * BINS

    def add_score(self, score: float) -> None:
        """Count a score between 0 and 1."""
        self.scores[_bin(score)] += 1

    def add_seconds(self, seconds: float) -> None:
        """Count a time; what is off the axis stands at its end."""
        place = log(max(seconds, LEAST_SECONDS) / LEAST_SECONDS) / log(MOST_SECONDS / LEAST_SECONDS)
        self.seconds[_bin(place)] += 1


def _bin(place: float) -> int:
    return min(BINS - 1, max(0, int(place * BINS)))

"""A range that holds the true value with some confidence, and the number of standard deviations for that."""

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from muster.domain.errors import BadArgument

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """From low to high, both included."""

    low: float
    high: float

    def overlaps(self, other: "Interval") -> bool:
        """Whether the two have a value in common."""
        return self.low <= other.high and other.low <= self.high

    def within(self, bound: float) -> bool:
        """Whether no value in it is further from nothing than a bound."""
        return -bound <= self.low and self.high <= bound

    def holds(self, value: float) -> bool:
        """Whether a value lies in it."""
        return self.low <= value <= self.high


@lru_cache(maxsize=64)
def deviations(confidence: float) -> float:
    """Give how many standard deviations to each side hold so much of a normal distribution."""
    if not 0 < confidence < 1:
        raise BadArgument(f"a confidence lies between 0 and 1, and {confidence:g} does not")
    return NormalDist().inv_cdf((1 + confidence) / 2)

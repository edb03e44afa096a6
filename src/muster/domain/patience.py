"""How long batches are waited for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long batches are waited for, and how many calls may wait; the defaults suit hours."""

    settle: float = 0.2  # nothing new for so long means that everything that can be parked is parked
    linger: float = 60.0  # the longest that a call waits for others to join its batch
    max_parked: int = 20_000  # calls in memory; more wait before they are parked
    most_requests: int | None = None  # lower than the provider's own limit
    most_bytes: int | None = None
    poll_first: float = 5.0
    poll_longest: float = 300.0
    deadline: float = 86_400.0  # how long this process waits for one batch
    grace: float = 120.0  # how long a created batch may take to show in the provider's list, or a 404 to pass
    downloads: int = 3  # of results that lack answers, or with lines that cannot be read
    uploads: int = 10  # of requests that fail at the provider, before their batch is given up
    least_look: float = 20.0  # how long a provider is asked before an operator gives up, however short the grace

    @property
    def look_seconds(self) -> float:
        """How long an operator waits for a provider that does not say what became of a batch, with a last question."""
        return max(self.grace, self.least_look) + self.poll_first

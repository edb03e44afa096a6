"""What to do after a failed attempt: a pure decision."""

from dataclasses import dataclass
from random import Random

from muster.domain.errors import Overloaded, RateLimited, Respelled, TierFull, TryLater, WireError


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how patiently to try; a provider's wish to wait is honoured up to a cap."""

    attempts: int = 5
    attempts_when_limited: int = 20  # a full provider is not a broken one
    first_delay: float = 0.5
    longest_delay: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Try again after so many seconds."""

    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Do not try again."""

    exhausted: bool  # it was worth trying, but often enough


RetryDecision = Again | GiveUp


def decide(error: WireError, attempt: int, policy: RetryPolicy, random: Random) -> RetryDecision:
    """Decide from the error and how many attempts this driver has made."""
    if not (isinstance(error, TryLater) and error.retryable):
        return GiveUp(exhausted=False)
    limited = isinstance(error, RateLimited | Overloaded | TierFull)
    if attempt >= (policy.attempts_when_limited if limited else policy.attempts):
        return GiveUp(exhausted=True)
    if isinstance(error, Respelled):
        return Again(delay=0.0)  # another request, so that there is nothing to wait for
    return Again(delay=delay(error, attempt, policy, random))


def delay(error: WireError, attempt: int, policy: RetryPolicy, random: Random) -> float:
    """Back off exponentially with jitter, at least as long as the provider asks, never longer than the cap."""
    backoff = policy.first_delay * 2.0 ** min(attempt - 1, 16)
    asked = error.retry_after or 0.0
    jittered = max(backoff * random.uniform(0.5, 1.0), asked * random.uniform(1.0, 1.1))
    return min(jittered, policy.longest_delay * random.uniform(0.9, 1.0))

"""When a batch is processed: how many of its members are done at a time, and when it ends."""

from dataclasses import dataclass
from datetime import UTC, datetime

LIFETIME = 24 * 60 * 60.0
HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Processes members evenly until the end; a share below one leaves some that expire."""

    created: float
    seconds: float  # until the end
    share: float = 1.0

    @property
    def ends(self) -> float:
        """When it is over."""
        return self.created + self.seconds

    @property
    def expires(self) -> float:
        """When it would be over at the latest."""
        return self.created + LIFETIME

    def progress(self, now: float) -> float:
        """Tell how much of the time is over, from 0 to 1."""
        return 1.0 if now >= self.ends else max(0.0, now - self.created) / self.seconds

    def due(self, members: int, now: float) -> int:
        """Count the members that are processed by now."""
        return int(members * self.share * self.progress(now) + 1e-6)  # what time leaves of a whole number is whole


def make_schedule(created: float, seconds: float, *, expiring: bool) -> Schedule:
    """Plan a batch that takes so long; after a day it expires, and half done if it is told to."""
    if expiring:
        return Schedule(created=created, seconds=min(seconds, LIFETIME), share=HALF)
    if seconds > LIFETIME:
        return Schedule(created=created, seconds=LIFETIME, share=LIFETIME / seconds)
    return Schedule(created=created, seconds=seconds)


def moment(time: float) -> str:
    """Spell a time in RFC 3339."""
    return datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")

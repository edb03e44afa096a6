"""What becomes of a slot whose agent could not be started: it rests, longer each time, and then takes no more tasks."""

from dataclasses import dataclass

_MAX_DELAY = 3_600.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartDecision:
    """Whether a slot goes on, and after how many seconds."""

    errored: bool
    rest: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How often and how soon a slot is tried again."""

    enabled: bool = True
    interval: float = 30.0  # seconds before the first further try, doubled before each other
    most: int = 3  # failures in a row

    def after(self, failures: int) -> RestartDecision:
        """Return what becomes of a slot whose agent could not be started so many times in a row."""
        if failures <= 0:
            return RestartDecision(errored=False)
        if not self.enabled or failures >= self.most:
            return RestartDecision(errored=True)
        return RestartDecision(errored=False, rest=min(self.interval * 2.0 ** min(failures - 1, 32), _MAX_DELAY))

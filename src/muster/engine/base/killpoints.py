"""Named points at which a test may kill the process, as a crash would."""

import os
import signal

POINTS = (
    "call.before_open",
    "call.opened",
    "call.answered",
    "call.settled",
    "store.before_commit",
    "store.after_commit",
    "batch.before_plan",
    "batch.planned",
    "batch.claimed",
    "batch.created",
    "batch.confirmed",
    "batch.polled",
    "batch.downloading",
    "batch.page",
    "batch.collected",
    "signal.before_take",
    "signal.taken",
    "question.asked",
    "question.before_take",
    "question.answered",
    "run.claimed",
    "run.before_release",
    "audit.begun",
    "audit.acted",
)


class KillPoints:
    """Counts how often each point is passed and dies at the one it was told to."""

    def __init__(self, point: str | None = None, nth: int = 1) -> None:
        self._point, self._left = point, nth

    def reach(self, point: str) -> None:
        """Pass a point, or die here without a word."""
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

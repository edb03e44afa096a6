"""Ctrl-C and SIGTERM while runs are driven: the first stops cleanly, the second at once."""

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from muster.domain.errors import Interrupted

if TYPE_CHECKING:
    from muster.app import Muster


def _nothing() -> None:
    """Do nothing."""


class Stopper:
    """Stops every run that this process drives when it is told to."""

    def __init__(self, muster: "Muster", tell: Callable[[str], None], on_first: Callable[[], None] = _nothing) -> None:
        self._engine = muster.engine
        self._tell, self._on_first = tell, on_first
        self.asked = 0

    def install(self) -> None:
        """Take over both signals until the loop closes."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)

    def stop(self) -> None:
        """Stop: cleanly the first time, at once the second."""
        self.asked += 1
        waiting = self._engine.on_wire
        if self.asked == 1:
            self._tell(_first_words(waiting))
            self._on_first()
        elif self.asked == 2:
            self._tell(f"cutting {_calls(waiting)}; what they cost is uncertain")
        self._engine.stop_all(Interrupted("told to stop"), now=self.asked > 1)


def _first_words(waiting: int) -> str:
    if not waiting:
        return "stopping; nothing is on the wire"
    are = "is" if waiting == 1 else "are"
    it = "it (its" if waiting == 1 else "them (their"
    return (
        f"stopping: {_calls(waiting)} on the wire {are} waited for; "
        f"press Ctrl-C again to cut {it} cost becomes uncertain)"
    )


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"

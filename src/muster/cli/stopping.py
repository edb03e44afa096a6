"""Signals while runs are driven: the first Ctrl-C or SIGTERM stops cleanly, the second or a lost terminal at once."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from muster.domain.errors import Interrupted

if TYPE_CHECKING:
    from muster.app import Muster


PATIENCE = 10.0  # seconds after the second signal for a workload that does not let go


def _leave_at_once() -> None:
    """End the process as a crash would; the store knows what to do with that."""
    words = "the workload does not let go: ended as by a crash; go on with: muster runs resume last\n"
    os.write(2, words.encode())
    os._exit(4)


def _nothing() -> None:
    """Do nothing."""


def _unheard(text: str) -> None:
    """Say it to nobody."""


def _none() -> int:
    """Count nothing."""
    return 0


class Stopper:
    """Stops every run that this process drives when it is told to."""

    def __init__(
        self,
        muster: "Muster",
        tell: Callable[[str], None],
        *,
        on_first: Callable[[], None] = _nothing,
        batches: Callable[[], int] = _none,
    ) -> None:
        self._muster = muster
        self._tell, self._on_first, self._batches = tell, on_first, batches
        self._received = 0
        self.asked = 0

    def install(self) -> None:
        """Take over the signals until the process ends."""
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup wants the work to go on
            signal.signal(signal.SIGHUP, self._hang_up)

    def _hang_up(self, number: int, frame: object) -> None:
        """Stop at once: the terminal is gone, and nobody is there to press Ctrl-C a second time."""
        self._tell = _unheard
        self._receive(number, frame)
        self._receive(number, frame)

    def _receive(self, number: int, frame: object) -> None:
        """Hand a signal to the loop; a loop that a workload keeps busy is not waited for without end."""
        self._received += 1
        with contextlib.suppress(RuntimeError):  # the loop is closed: everything is stored already
            self._loop.call_soon_threadsafe(self.stop)
        if self._received == 2:
            last_word = threading.Timer(PATIENCE, _leave_at_once)
            last_word.daemon = True
            last_word.start()
        elif self._received > 2:
            _leave_at_once()

    def stop(self) -> None:
        """Stop: cleanly the first time, at once the second."""
        self.asked += 1
        waiting = self._muster.runs.calls_on_wire
        if self.asked == 1:
            self._tell(_first_words(waiting, self._batches()))
            self._on_first()
        elif self.asked == 2:
            self._tell(f"cutting {_calls(waiting)}; what they cost is uncertain" if waiting else "stopping at once")
        self._muster.stop(Interrupted("told to stop"), now=self.asked > 1)


def _first_words(waiting: int, batches: int) -> str:
    left = f"{_batches(batches)} at the provider, and nothing is lost" if batches else ""
    if not waiting:
        return f"stopping; {left or 'nothing is on the wire'}"
    are = "is" if waiting == 1 else "are"
    it = "it (its" if waiting == 1 else "them (their"
    return (
        f"stopping: {_calls(waiting)} on the wire {are} waited for; "
        f"press Ctrl-C again to cut {it} cost becomes uncertain)" + (f"; {left}" if left else "")
    )


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


def _batches(number: int) -> str:
    return "1 batch goes on" if number == 1 else f"{number} batches go on"

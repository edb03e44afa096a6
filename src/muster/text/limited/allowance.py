"""Seconds of CPU that several pieces of work share, and what is said of a schema that would take too many."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

ENDLESS_SCHEMA = "the schema refers to itself without end, or the value is nested too deeply"


class CpuAllowance:
    """Seconds of CPU for as many pieces of work as share them; each asks what is left, and says what it used."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def spend(self, seconds: float) -> None:
        """Take away what was used."""
        self.left -= seconds

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Take away what the thread at hand uses in the block."""
        before = time.thread_time()
        try:
            yield
        finally:
            self.spend(time.thread_time() - before)

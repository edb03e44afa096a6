"""A limit of the CPU that Python code may use: for libraries that can be made to work without end."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from types import FrameType
from typing import Any

CALLS = 200  # of functions between two looks at the clock


class CpuSpent(BaseException):
    """More CPU was used than allowed; no `except Exception` of a library may keep it to itself."""


class CpuAllowance:
    """Seconds of CPU of the thread at hand, for as many pieces of work as share them."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._end: float | None = None  # while it is spent

    @property
    def left(self) -> float:
        """Return the seconds that are left, also while they are spent."""
        return self._left if self._end is None else self._end - time.thread_time()

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Raise CpuSpent when the block uses what is left; it is noticed when a function of Python is called.

        Time that the thread waits does not count, so that a busy machine changes nothing.
        """
        if self._left <= 0:
            raise CpuSpent
        end = self._end = time.thread_time() + self._left
        outer, calls = sys.gettrace(), 0

        def look(frame: FrameType, event: Any, argument: Any) -> None:
            nonlocal calls
            calls += 1
            # Not in a generator: one that is only being closed would swallow the exception.
            if calls >= CALLS and not frame.f_code.co_flags & CO_GENERATOR:
                calls = 0
                if time.thread_time() > end:
                    raise CpuSpent
            if outer is not None:
                outer(frame, event, argument)

        sys.settrace(look)
        try:
            yield
        finally:
            sys.settrace(outer)
            self._left, self._end = self.left, None

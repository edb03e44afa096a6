"""An event loop in a thread of its own, on which other threads wait for coroutines."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from muster.domain.errors import Conflict

T = TypeVar("T")
CLEANUP_SECONDS = 30.0  # for which a call that was interrupted may clean up


class BackgroundLoop:
    """One event loop, whose thread ends with the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._loop.run_forever, name="muster-sync", daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Return whether its thread is one of this process: a fork has a copy of the loop, which nobody runs."""
        return self._process == os.getpid()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for it; an exception here, such as KeyboardInterrupt, cancels it first."""
        self._require_usable(coroutine)
        waiting: Future[T] = Future()
        ended = threading.Event()
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            tasks.append(self._loop.create_task(coroutine))
            tasks[0].add_done_callback(end)

        def end(task: asyncio.Task[T]) -> None:
            if task.cancelled():
                waiting.cancel()
            elif (error := task.exception()) is not None:
                waiting.set_exception(error)
            else:
                waiting.set_result(task.result())
            ended.set()

        self._loop.call_soon_threadsafe(begin)
        try:
            return waiting.result()
        finally:
            if not ended.is_set():
                self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                ended.wait(CLEANUP_SECONDS)

    def _require_usable(self, coroutine: Coroutine[Any, Any, T]) -> None:
        error = None
        if not self.is_here:
            error = Conflict(
                f"this was opened in process {self._process}, and cannot be used in a fork of it",
                suggestions=("call muster.sync.open() in the process that uses it",),
            )
        elif threading.current_thread() is self._thread:
            error = Conflict(
                "muster.sync was used on its own event loop, in a workload or a callback, and would wait for itself",
                suggestions=("use the Context of the workload", "or leave it to another thread"),
            )
        if error is not None:
            coroutine.close()
            raise error


_loops: list[BackgroundLoop] = []  # the last is used; those that a fork has copied are kept, since theirs still run
_lock = threading.Lock()


def background_loop() -> BackgroundLoop:
    """Return the loop of this process, which is started when it is first needed."""
    with _lock:
        if not _loops or not _loops[-1].is_here:
            _loops.append(BackgroundLoop())
        return _loops[-1]


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()  # in a fork another thread may hold it, which is not there


os.register_at_fork(after_in_child=_renew_lock)

"""Many things at once in bounded memory: results in order, and no paid work thrown away for another's failure."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

BUFFERS = 8  # finished results held back for the order, as a multiple of the window


async def gather(awaitables: Iterable[Awaitable[R]]) -> list[R]:
    """Wait for all, then give the results or raise the first failure."""
    results = await asyncio.gather(*awaitables, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]


async def ordered_map(
    function: Callable[[int, T], Awaitable[R]], items: Iterable[T] | AsyncIterable[T], window: int
) -> AsyncIterator[R]:
    """Apply a function to items, at most `window` at a time; after a failure those under way still finish."""
    crew = _Crew(function, items, window)
    try:
        while True:
            await crew.feed()
            if not crew.line:
                return
            if crew.line[0].done():
                yield crew.line.popleft().result()
            else:
                await crew.progress()
    except asyncio.CancelledError:
        await crew.stop()
        raise
    except BaseException:
        await crew.finish()
        raise


class _Crew(Generic[T, R]):
    """The items under way, oldest first."""

    def __init__(
        self, function: Callable[[int, T], Awaitable[R]], items: Iterable[T] | AsyncIterable[T], window: int
    ) -> None:
        self._function = function
        self._items = _numbered(items)
        self._window = window
        self._active = 0
        self._exhausted = False
        self._progress = asyncio.Event()
        self.line: deque[asyncio.Future[R]] = deque()

    async def feed(self) -> None:
        """Start items while there is room."""
        while not self._exhausted and self._active < self._window and len(self.line) < self._window * BUFFERS:
            try:
                number, item = await anext(self._items)
            except StopAsyncIteration:
                self._exhausted = True
                return
            task = asyncio.ensure_future(self._function(number, item))
            self._active += 1
            task.add_done_callback(self._done)
            self.line.append(task)

    async def progress(self) -> None:
        """Wait until something finishes."""
        self._progress.clear()
        await self._progress.wait()

    async def finish(self) -> None:
        """Let everything under way come to its end."""
        self._exhausted = True
        await asyncio.gather(*self.line, return_exceptions=True)

    async def stop(self) -> None:
        """Cancel everything under way."""
        for task in self.line:
            task.cancel()
        await self.finish()

    def _done(self, task: "asyncio.Future[R]") -> None:
        self._active -= 1
        self._progress.set()
        if task.cancelled() or task.exception() is not None:
            self._exhausted = True  # no new items after a failure


async def _numbered(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[tuple[int, T]]:
    number = 0
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield number, item
            number += 1
    else:
        for item in items:
            yield number, item
            number += 1

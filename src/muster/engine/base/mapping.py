"""Many things at once in bounded memory: results in order, and no paid work thrown away for another's failure."""

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from muster.domain.canonical import noun_of
from muster.domain.errors import BadArgument
from muster.engine.base.arguments import require_count
from muster.engine.base.clock import Activity

T = TypeVar("T")
R = TypeVar("R")

BUFFERS = 8  # finished results held back for the order, as a multiple of the window


async def gather(awaitables: Iterable[Awaitable[R]]) -> list[R]:
    """Wait for all, then give the results or raise the first failure."""
    given: list[Any] = list(awaitables)
    for one in given:
        if not inspect.isawaitable(one):
            dismiss(*given)
            raise BadArgument(
                f"ctx.gather waits for awaitables, and {noun_of(one)} is none",
                suggestions=("give calls one by one, without await before them: ctx.gather(*calls)",),
            )
    results = await asyncio.gather(*given, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]


def dismiss(*given: object) -> None:
    """Close coroutines that nobody will wait for, also those in lists."""
    for one in given:
        if inspect.iscoroutine(one):
            one.close()
        elif isinstance(one, list | tuple):
            dismiss(*one)


def require_item_function(function: Callable[..., object]) -> None:
    """Raise BadArgument for a function that cannot be called with the number of an item and the item."""
    try:
        inspect.signature(function).bind(0, None)
    except ValueError:  # of what is not written in Python nothing is known
        return
    except TypeError as error:
        raise BadArgument(
            f"the function of ctx.map is called with the number of an item and the item: {error}",
            suggestions=("write async def work(number, item)",),
        ) from error


def begun(function: Callable[[int, T], Awaitable[R]], number: int, item: T) -> Awaitable[R]:
    """Return what a function of an item gives to wait for; raises BadArgument when that is nothing to wait for."""
    found = function(number, item)
    if not inspect.isawaitable(found):
        raise BadArgument(
            f"the function of ctx.map is not async: it returned {noun_of(found)}",
            suggestions=("write async def; to call it in a thread, use ctx.step inside",),
        )
    return found


async def ordered_map(
    function: Callable[[int, T], Awaitable[R]], items: Iterable[T] | AsyncIterable[T], window: int
) -> AsyncGenerator[R, None]:
    """Apply a function to items, at most `window` at a time; after a failure those under way still finish."""
    running = _RunningItems(function, items, window)
    try:
        while True:
            await running.feed()
            if running.tasks and running.tasks[0].done():
                yield running.tasks.popleft().result()
            elif running.over:
                return
            else:
                await running.progress()
    except asyncio.CancelledError:
        await running.stop()
        raise
    except BaseException:
        await running.finish()
        raise


class MappedItems(AsyncIterator[R]):
    """The results of a map as they come; made here so that awaiting it says what to write."""

    def __init__(self, results: AsyncGenerator[R, None], begins: Callable[[], object]) -> None:
        self._results, self._begins = results, begins  # which is called when somebody wants the first

    def __aiter__(self) -> AsyncIterator[R]:
        self._begins()
        return self._results

    async def __anext__(self) -> R:
        self._begins()
        return await anext(self._results)

    async def aclose(self) -> None:
        """End it before its items."""
        self._begins()
        await self._results.aclose()

    if not TYPE_CHECKING:  # for workloads that no type checker has read

        def __await__(self) -> NoReturn:
            raise BadArgument(
                "ctx.map gives results one by one, and is not awaited",
                suggestions=("write [one async for one in ctx.map(work, items)]",),
            )


def returning_failures(
    function: Callable[[int, T], Awaitable[R]], returns: Callable[[Exception], bool]
) -> Callable[[int, T], Awaitable[R | Exception]]:
    """Return the function for a map that yields a failure in the place of its item, if `returns` is true for it."""

    async def apply(number: int, item: T) -> R | Exception:
        beginning = begun(function, number, item)
        try:
            return await beginning
        except Exception as error:
            if returns(error):
                return error
            raise

    return apply


def require_limit(limit: int) -> int:
    """Return how many may be at work at a time; raises BadArgument for a number of nothing."""
    require_count("limit", limit, 1)
    return limit


_HELD: ContextVar[frozenset[tuple["GroupLimits", str]]] = ContextVar("held", default=frozenset())  # by this code


class GroupLimits:
    """How many pieces of work of one run may be under way at a time, by the name of what they use."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._groups: dict[str, tuple[int, asyncio.Semaphore]] = {}

    @asynccontextmanager
    async def enter(self, name: str, most: int) -> AsyncIterator[None]:
        """Wait for a place in a group; raises BadArgument for one that has another limit in this run.

        Likewise for one in which this code has a place already: those that hold one would wait for each other.
        """
        known, places = self._groups.setdefault(name, (most, asyncio.Semaphore(require_limit(most))))
        if known != most:
            raise BadArgument(f"the limit {name!r} is {known} in this run and cannot be {most} too")
        mine = (self, name)
        if mine in _HELD.get():
            raise BadArgument(
                f"the limit {name!r} is held here already, and who waits for it inside of itself may wait for ever",
                suggestions=("leave the outer one before, or give the inner one another name",),
            )
        if places.locked():
            with self._activity.working(), self._activity.waiting():
                await places.acquire()
        else:
            await places.acquire()
        _HELD.set(_HELD.get() | {mine})
        try:
            yield
        finally:
            _HELD.set(_HELD.get() - {mine})
            places.release()


class Item:
    """One item under way; while a call of it is parked it leaves its place to another item."""

    __slots__ = ("_outer", "_parked", "_running")

    def __init__(self, running: "_RunningItems[Any, Any]", outer: "Item | None") -> None:
        self._running, self._outer = running, outer
        self._parked = 0

    @property
    def given_up(self) -> bool:
        """Return whether its result is not wanted any more: the loop over the map was left, or one around it."""
        return self._running.given_up or (self._outer is not None and self._outer.given_up)

    def park(self) -> None:
        """Leave the place to another item; counted, as several calls of one item may be parked."""
        self._parked += 1
        if self._parked == 1:
            self._running.park(1)
            if self._outer is not None:
                self._outer.park()

    def unpark(self) -> None:
        """Take a place again, whether or not there is one."""
        self._parked -= 1
        if self._parked == 0:
            self._running.park(-1)
            if self._outer is not None:
                self._outer.unpark()


_ITEM: ContextVar[Item | None] = ContextVar("item", default=None)


def item_under_way() -> Item | None:
    """Return the item of a map that this code works on, if it does."""
    return _ITEM.get()


class _RunningItems(Generic[T, R]):
    """The items under way, oldest first."""

    def __init__(
        self, function: Callable[[int, T], Awaitable[R]], items: Iterable[T] | AsyncIterable[T], window: int
    ) -> None:
        self._function = function
        self._items = _numbered(items)
        self._window = window
        self._active = 0
        self._parked = 0
        self._exhausted = False
        self._progress = asyncio.Event()
        self._outer = _ITEM.get()
        self.tasks: deque[asyncio.Future[R]] = deque()
        self.given_up = False

    async def feed(self) -> None:
        """Start items while there is room."""
        while not self._exhausted and self._has_room():
            try:
                number, item = await anext(self._items)
            except StopAsyncIteration:
                self._exhausted = True
                return
            task = self._start(number, item)
            self._active += 1
            task.add_done_callback(self._done)
            self.tasks.append(task)

    @property
    def over(self) -> bool:
        """Return whether nothing is left; items that were taken may still count as in progress for a moment."""
        return self._exhausted and not self.tasks

    async def progress(self) -> None:
        """Wait until something finishes or is parked."""
        self._progress.clear()
        await self._progress.wait()

    def park(self, change: int) -> None:
        """Count items that are parked."""
        self._parked += change
        self._progress.set()

    async def finish(self) -> None:
        """Let everything under way come to its end."""
        self._exhausted = self.given_up = True
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Cancel everything under way."""
        for task in self.tasks:
            task.cancel()
        await self.finish()

    def _has_room(self) -> bool:
        at_work = self._active - self._parked
        return at_work < self._window and len(self.tasks) - self._parked < self._window * BUFFERS

    def _start(self, number: int, item: T) -> "asyncio.Future[R]":
        token = _ITEM.set(Item(self, self._outer))  # the task takes it along
        try:
            return asyncio.ensure_future(begun(self._function, number, item))
        finally:
            _ITEM.reset(token)

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

"""What a workload made and did not wait for: what never began, and what was still at work when it returned."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from functools import partial, wraps
from inspect import CORO_CREATED, getcoroutinestate, iscoroutine
from itertools import count
from typing import Any, NamedTuple, TypeVar, cast

from muster.domain.errors import BadArgument
from muster.engine.base.clock import turns
from muster.engine.base.mapping import Item, MappedItems, item_under_way

R = TypeVar("R")
M = TypeVar("M", bound=Callable[..., Coroutine[Any, Any, Any]])
SHOWN = 5  # pieces of work
AWAIT = "write await before it, or give it to ctx.gather"
ITERATE = "write [one async for one in ctx.map(work, items)]"
WAITS = frozenset({"receive", "sleep", "until"})  # of which nothing is lost when they are left


class _Begun(NamedTuple):
    """A piece of work under way."""

    what: str
    task: "asyncio.Task[Any] | None"
    item: Item | None  # of a map, in which it was made

    @property
    def is_given_up(self) -> bool:
        """Return whether somebody has canceled it, or does not want the rest of its map."""
        return (self.task is not None and self.task.cancelling() > 0) or (self.item is not None and self.item.given_up)


class UnawaitedWork:
    """What one run's workload has made, and nobody has begun or waits for."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[str, Coroutine[Any, Any, Any] | MappedItems[Any]]] = {}
        self._begun: dict[int, _Begun] = {}
        self._numbers = count()

    def note(
        self, what: str, work: Callable[[], Coroutine[Any, Any, R]], *, waits: bool = False
    ) -> Coroutine[Any, Any, R]:
        """Return the coroutine of some work: forgotten until it begins, left until it ends, unless it only `waits`."""

        async def beginning() -> R:
            self._made.pop(number, None)
            if waits:
                return await work()
            self._begun[number] = _Begun(what, asyncio.current_task(), item_under_way())
            try:
                return await work()
            finally:
                del self._begun[number]

        number, made = next(self._numbers), beginning()
        self._made[number] = what, made
        return made

    def note_items(self, what: str, results: AsyncGenerator[R, None]) -> MappedItems[R]:
        """Return the results of a map: forgotten until somebody asks for the first."""
        number = next(self._numbers)
        items = MappedItems(results, begins=partial(self._made.pop, number, None))
        self._made[number] = what, items
        return items

    def require_none(self) -> None:
        """Raise BadArgument for work that nobody has begun; what was canceled before it began was given up."""
        made = [(what, work) for what, work in self._made.values() if not iscoroutine(work) or _is_new(work)]
        self._made.clear()
        if not made:
            return
        _dismiss([work for _, work in made if iscoroutine(work)])
        told = " and ".join(what for what, _ in made[:SHOWN])
        ways = dict.fromkeys(AWAIT if iscoroutine(work) else ITERATE for _, work in made)
        verb = "was" if len(made) == 1 else "were"
        raise BadArgument(f"{told} {verb} not awaited, so nothing was done", suggestions=tuple(ways))

    async def left(self) -> Sequence[str]:
        """Return the work that is under way and not given up."""
        if self._begun:
            await turns()  # what was canceled learns of it, and cancels what it waits for
        return [one.what for one in self._begun.values() if not one.is_given_up]


def _is_new(work: Coroutine[Any, Any, Any]) -> bool:
    return getcoroutinestate(work) == CORO_CREATED


def _dismiss(work: Sequence[Coroutine[Any, Any, Any]]) -> None:
    """Close what never began, or cancel the task that was to begin it."""
    tasks = {task.get_coro(): task for task in asyncio.all_tasks()}
    for one in work:
        if one in tasks:
            tasks[one].cancel()
        else:
            one.close()


def awaited(method: M) -> M:
    """Return a method of a context that is told to the workload when nobody awaits it."""

    @wraps(method)
    def make(ctx: Any, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        key = kwargs.get("key", args[0] if args else None)
        unawaited: UnawaitedWork = ctx._unawaited
        ctx._driven.asked.note(key)  # here, since a task that is canceled before it begins has asked for it too
        what, work = f"ctx.{method.__name__} under {key!r}", partial(method, ctx, *args, **kwargs)
        return unawaited.note(what, work, waits=method.__name__ in WAITS)

    return cast("M", make)

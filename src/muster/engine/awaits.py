"""Work that a workload made and never awaited: Python only warns of it, and the run would complete without it."""

from collections.abc import Callable, Coroutine
from functools import partial, wraps
from inspect import CORO_CREATED, getcoroutinestate
from itertools import count
from typing import Any, TypeVar, cast

from muster.domain.errors import BadArgument

R = TypeVar("R")
SHOWN = 5  # that were not awaited
REMEDY = "write await before it, or give it to ctx.gather"


class UnawaitedWork:
    """What one run's workload has made and not begun."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[str, Coroutine[Any, Any, Any]]] = {}
        self._numbers = count()

    def note(self, what: str, work: Callable[[], Coroutine[Any, Any, R]]) -> Coroutine[Any, Any, R]:
        """Return the coroutine of some work, which counts as forgotten until it begins."""

        async def beginning() -> R:
            self._made.pop(number, None)
            return await work()

        number, made = next(self._numbers), beginning()
        self._made[number] = what, made
        return made

    def require_none(self) -> None:
        """Raise BadArgument for work that nobody has awaited; what was canceled before it began was given up."""
        made = [(what, work) for what, work in self._made.values() if getcoroutinestate(work) == CORO_CREATED]
        self._made.clear()
        for _, work in made:
            work.close()
        if made:
            told = " and ".join(what for what, _ in made[:SHOWN])
            verb = "was" if len(made) == 1 else "were"
            raise BadArgument(f"{told} {verb} not awaited, so nothing was done", suggestions=(REMEDY,))


M = TypeVar("M", bound=Callable[..., Coroutine[Any, Any, Any]])


def awaited(method: M) -> M:
    """Return a method of a context that is told to the workload when nobody awaits it."""

    @wraps(method)
    def make(ctx: Any, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        key = kwargs.get("key", args[0] if args else None)
        unawaited: UnawaitedWork = ctx._unawaited
        return unawaited.note(f"ctx.{method.__name__} under {key!r}", partial(method, ctx, *args, **kwargs))

    return cast("M", make)

"""A Muster for code that is not async: the same objects, each call of which waits on the background loop.

Nothing is implemented again. `__init__.pyi` says the types; it is made by `make docs` from the asynchronous surface.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import wraps
from types import FunctionType, GenericAlias, TracebackType
from typing import Any, Self

from muster.domain.errors import Conflict, StoreFailed, store_closed
from muster.sync.loop import BackgroundLoop

# What is used through the loop, by the module that defines it; all else that is returned is a value.
KINDS = {
    "Muster": "muster.app.muster",
    "Runs": "muster.app.runs.runs",
    "RunHandle": "muster.app.runs.handle",
    "RunWatcher": "muster.app.base.feeds",
    "Questions": "muster.app.questions.questions",
    "Suites": "muster.app.suites.suites",
    "SuiteResults": "muster.app.suites.results",
    "Baselines": "muster.app.suites.reviews",
    "Generations": "muster.app.suites.suites",
    "Evidence": "muster.app.suites.evidence",
    "Verifications": "muster.app.verify.verifications",
    "CodeRepairs": "muster.app.verify.code_repairs",
    "Pool": "muster.app.pool.pool",
    "Tasks": "muster.app.pool.tasks",
    "TaskTrees": "muster.app.pool.trees",
    "PoolMonitor": "muster.app.pool.monitor",
    "Chains": "muster.app.chains.chains",
    "Councils": "muster.app.councils.councils",
    "Battles": "muster.app.battles.battles",
    "Scales": "muster.app.battles.scales",
    "Batches": "muster.app.runs.batches",
    "Agents": "muster.app.agent_kinds.directory",
    "StoreFile": "muster.app.base.stores",
    "Project": "muster.app.project.files",
    "Library": "muster.app.parts.library",
    "RunHooks": "muster.app.hooks",
    "ServerBudgets": "muster.app.parts.budgets",
    "UserActions": "muster.app.parts.audit",
    "Worker": "muster.engine.worker",
}


class Session:
    """One opened Muster: its loop, and whether it is closed."""

    def __init__(self, loop: BackgroundLoop, opening: AbstractAsyncContextManager[Any]) -> None:
        self._loop, self._opening = loop, opening
        self._is_closed = False

    def run(self, work: Callable[[], Any]) -> Any:
        """Do some work on the loop, and wait for what it returns."""
        if self._is_closed:
            raise store_closed("call muster.sync.open() again")
        return self._loop.run(_awaited(work))

    def close(self, *error: Any) -> None:
        """Close the Muster; may be called twice."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.run(self._opening.__aexit__(*(error or (None, None, None))))


async def _awaited(work: Callable[[], Any]) -> Any:
    result = work()
    return await result if inspect.isawaitable(result) else result


class Blocking:
    """An object of the asynchronous surface, whose calls wait; it may be used from any thread."""

    def __init__(self, used: Any, session: Session) -> None:
        self._used, self._session = used, session

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        return self._do(lambda: getattr(self._used, name))

    def _do(self, work: Callable[[], Any]) -> Any:
        return shown(self._session.run(work), self._session)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self._used) if not name.startswith("_"))})

    def __repr__(self) -> str:
        return f"<muster.sync.{type(self).__name__}>"


class BlockingMuster(Blocking):
    """What is added to a Muster: it closes everything that belongs to it."""

    def close(self) -> None:
        """Close it; runs that were driven here can be resumed. May be called twice."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.close(kind, error, trace)


_classes: dict[type, type[Blocking]] = {}


def blocking(kind: type) -> type[Blocking]:
    """Return the class of objects that wait for what those of an asynchronous class do."""
    if kind not in _classes:
        _classes[kind] = _make_class(kind)
    return _classes[kind]


def _make_class(kind: type) -> type[Blocking]:
    base = BlockingMuster if kind.__name__ == "Muster" else Blocking
    own = {name for name in vars(base) if not name.startswith("_")}
    names = [name for name in dir(kind) if not name.startswith("_") and name not in own]
    members: dict[str, Any] = {name: _member(name, inspect.getattr_static(kind, name)) for name in names}
    if hasattr(kind, "__class_getitem__"):
        members["__class_getitem__"] = classmethod(GenericAlias)  # RunHandle[Report] in annotations
    if hasattr(kind, "__anext__"):
        members |= {"__iter__": lambda self: self, "__next__": _next}
    if hasattr(kind, "__aenter__"):
        members |= {"__enter__": _enter, "__exit__": _exit}
    return type(kind.__name__, (base,), {"__doc__": kind.__doc__, "__module__": "muster.sync", **members})


def _member(name: str, found: Any) -> Any:
    if not isinstance(found, FunctionType):
        return property(lambda self: self._do(lambda: getattr(self._used, name)), doc=found.__doc__)

    @wraps(found)
    def method(self: Blocking, *args: Any, **kwargs: Any) -> Any:
        return self._do(lambda: getattr(self._used, name)(*args, **kwargs))

    return method


def _next(self: Blocking) -> Any:
    try:
        return self._do(self._used.__anext__)
    except StopAsyncIteration:
        raise StopIteration from None


def _enter(self: Blocking) -> Blocking:
    self._session.run(self._used.__aenter__)
    return self


def _exit(self: Blocking, *error: Any) -> Any:
    return self._session.run(lambda: self._used.__aexit__(*error))


def shown(value: Any, session: Session) -> Any:
    """Return a value as code that is not async can use it."""
    kind = type(value)
    if KINDS.get(kind.__name__) == kind.__module__:
        return blocking(kind)(value, session)
    if hasattr(value, "__anext__"):
        return _iterate(value, session)
    if hasattr(value, "__aenter__"):
        return _entered(value, session)
    return value


def _iterate(values: Any, session: Session) -> Iterator[Any]:
    try:
        while True:
            try:
                value = session.run(values.__anext__)
            except StopAsyncIteration:
                return
            yield shown(value, session)
    finally:
        with suppress(Conflict, StoreFailed):  # it is closed, and ended with that
            session.run(values.aclose)


@contextmanager
def _entered(manager: Any, session: Session) -> Iterator[Any]:
    value = session.run(manager.__aenter__)
    try:
        yield shown(value, session)
    except BaseException as error:
        raised = error  # `error` is gone when the loop comes to it
        if not session.run(lambda: manager.__aexit__(type(raised), raised, raised.__traceback__)):
            raise
    else:
        session.run(lambda: manager.__aexit__(None, None, None))

"""Group commit: one thread drains whatever is queued, commits once, and then tells every caller.

Whoever waits for any commit, also of another process, is woken by a `CommitSignal`.
"""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from muster.domain.errors import BadArgument, MusterError, StoreFailed, store_closed
from muster.store.queries import NO_LOCKS, CommitUnknown, DatabaseConnection, Locked, Locks, merge_locks

BUSY = 4  # writes in one commit
REST = 0.004  # seconds between two commits, of a writer that is busy
NOTICE = 5.0  # seconds after which it is told that a lock is waited for

T = TypeVar("T")
R = TypeVar("R")


def require_loop(home: asyncio.AbstractEventLoop) -> None:
    """Raise BadArgument outside of the event loop in which a store was opened."""
    if asyncio.get_running_loop() is not home:
        raise BadArgument(
            "the store was opened in another event loop, and can be used only in that one",
            suggestions=(
                "open one for this event loop: async with muster.open() as m",
                "or hand the work over: asyncio.run_coroutine_threadsafe(m.ask(...), loop)",
            ),
        )


class PendingWrite(asyncio.Future[R]):
    """A write on its way to the disk: whoever waits can be canceled, but learns of it only when the write is there."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Refuse: the write happens."""
        return False


@dataclass(frozen=True, slots=True)
class WriteGroup(Generic[T, R]):
    """Work that is done for many items in one go; gives one result or error for each."""

    apply: Callable[[DatabaseConnection, Sequence[T]], Sequence[R | MusterError]]
    locks: Callable[[T], Locks] = lambda item: NO_LOCKS  # what one item needs


@dataclass(slots=True)
class _Queued:
    group: WriteGroup[Any, Any] | None  # None: `item` is a function of the connection
    item: Any
    future: "asyncio.Future[Any]"
    declared: Locks = NO_LOCKS  # of a function
    begins: bool = False  # something new, which nothing was paid for yet
    result: Any = None

    @property
    def locks(self) -> Locks:
        """What it keeps other writers from."""
        return self.declared if self.group is None else self.group.locks(self.item)


def _ignore(error: Locked) -> None:
    """Do nothing."""


class Writer:
    """Queues writes in order; each future ends when its write is on the disk.

    A lock of another process, a server that is down, or a disk without room is waited for without end, since an answer
    that was paid for must not be dropped; `on_wait` is told after some seconds, and `give_up` ends it. What begins
    something new does not wait for room. A transaction
    whose commit was not answered is looked for before it is repeated. With a `refusal` every write fails with that
    error.
    """

    def __init__(
        self,
        connect: Callable[[], DatabaseConnection],
        *,
        groups: Sequence[WriteGroup[Any, Any]],
        on_commit: Callable[[], None],
        reach: Callable[[str], None],
        on_wait: Callable[[Locked], None] = _ignore,
        refusal: MusterError | None = None,
        rest: float = REST,
    ) -> None:
        self._groups, self._rest = groups, rest
        self._on_commit, self._on_wait = on_commit, on_wait
        self._reach = reach
        self._loop = asyncio.get_running_loop()
        self._queue: deque[_Queued] = deque()
        self._items: list[_Queued] = []  # taken out of the queue, and not told yet
        self._wake = threading.Event()
        self._waking = False  # the thread is about to be woken
        self._closing = False
        self._gives_up = False
        self.shortage: MusterError | None = None  # why nothing new is begun, while the rest waits for room
        self._dead = refusal  # why nothing is written any more
        self._thread: threading.Thread | None = None
        if refusal is None:
            database = connect()  # here, so that a store that cannot be opened is told at once
            self._thread = threading.Thread(target=self._work, args=(database,), name="muster-writer", daemon=True)
            self._thread.start()

    def submit(self, group: WriteGroup[T, R], item: T) -> "asyncio.Future[R]":
        """Queue one item of a group."""
        return self._put(group, item)

    def run(
        self, work: Callable[[DatabaseConnection], R], locks: Locks = NO_LOCKS, *, begins: bool = False
    ) -> "asyncio.Future[R]":
        """Queue one function; an error in it undoes only its own writes. What `begins` anew does not wait for room."""
        return self._put(None, work, locks, begins)

    def count(self, group: WriteGroup[Any, Any]) -> int:
        """Return how many items of a group are not written yet."""
        return sum(item.group is group for item in (*self._items, *self._queue) if not item.future.done())

    def give_up(self) -> None:
        """Wait no longer, for a lock or for room: what cannot be written now fails."""
        self._gives_up = True

    async def close(self) -> None:
        """Write what is queued and end the thread."""
        self._closing = True
        self._wake.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _put(
        self, group: WriteGroup[Any, Any] | None, item: Any, locks: Locks = NO_LOCKS, begins: bool = False
    ) -> "asyncio.Future[Any]":
        if self._closing:
            raise store_closed()
        require_loop(self._loop)
        future: PendingWrite[Any] = PendingWrite(loop=self._loop)
        refusal = self._dead or (self.shortage if begins else None)
        if refusal is not None:
            _fail(future, refusal)
            return future
        self._queue.append(_Queued(group, item, future, locks, begins))
        if not self._waking:
            # When this turn of the loop is over, so that whatever is queued until then goes into one commit.
            self._waking = True
            self._loop.call_soon(self._wake_thread)
        return future

    def _wake_thread(self) -> None:
        self._waking = False
        self._wake.set()

    def _work(self, database: DatabaseConnection) -> None:
        try:
            with contextlib.closing(database):
                self._serve(database)
        except BaseException as error:
            while True:
                with contextlib.suppress(MemoryError):  # tried until there is room: else all would wait for ever
                    self._in_loop(self._fail_all, _ended_by(error))
                    return

    def _serve(self, database: DatabaseConnection) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if len(self._items) >= BUSY and not self._closing:
                # Whoever writes so much gains more from fewer commits than it loses by waiting for them.
                time.sleep(self._rest)
            items = self._items = self._take()
            if items:
                before = database.changes
                self._commit(database, items)
                self._in_loop(self._report, items, database.changes != before)
            if self._closing and not self._queue:
                return

    def _take(self) -> list[_Queued]:
        self._items = items = []
        for _ in range(len(self._queue)):
            items.append(self._queue[0])  # taken out after it, so that no error in between can lose one
            self._queue.popleft()
        return items

    def _in_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed without us: nobody is there to be told
            self._loop.call_soon_threadsafe(function, *arguments)

    def _fail_all(self, error: MusterError) -> None:
        self._dead = error
        for item in (*self._items, *self._queue):
            if not item.future.done():
                _fail(item.future, error)
        self._queue.clear()

    def _commit(self, database: DatabaseConnection, items: Sequence[_Queued]) -> None:
        try:
            self._write(database, items)
            self._reach("store.after_commit")
        except MusterError as error:
            for item in items:
                item.result = error
        except Exception as error:
            for item in items:
                item.result = StoreFailed(f"a write failed unexpectedly: {error!r}")
        finally:
            self.shortage = None

    def _write(self, database: DatabaseConnection, items: Sequence[_Queued]) -> None:
        done, left = False, list(items)
        while left and not done:
            new = [item for item in left if item.begins]
            try:
                self._patiently(partial(self._transact_items, database, left), refuses=bool(new))
                done = True
            except CommitUnknown as unknown:
                done = self._confirm(unknown)
            except Locked as error:
                if self._gives_up or not new:
                    raise
                left = [item for item in left if not item.begins]
                for item in new:
                    item.result = error

    def _confirm(self, unknown: CommitUnknown) -> bool:
        """Return whether a transaction is there whose commit was not answered."""
        try:
            return self._patiently(unknown.confirm)
        except Locked as error:
            raise StoreFailed(
                f"it is not known whether the last writes are stored: {error.message}",
                suggestions=("resume when the server is back; what is stored is not done again",),
            ) from error

    def _transact_items(self, database: DatabaseConnection, items: Sequence[_Queued]) -> None:
        try:
            self._transact(database, items, _apply_group)
        except TakeApart:
            self._transact(database, items, _apply_singly)

    def _patiently(self, work: Callable[[], T], *, refuses: bool = False) -> T:
        """Try until nobody holds a lock that is needed, and there is room, which is not waited for with `refuses`."""
        since, told = time.monotonic(), False
        while True:
            try:
                return work()
            except Locked as error:
                if self._gives_up or (refuses and error.refuses_new):
                    raise
                self.shortage = error if error.refuses_new else None
                if not told and time.monotonic() - since >= NOTICE:
                    told = True
                    self._in_loop(self._on_wait, error)
                time.sleep(error.pause)

    def _transact(self, database: DatabaseConnection, items: Sequence[_Queued], apply: "_ApplyGroup") -> None:
        # Openings first, settlements next, the rest in order: a driver never has two of one call queued in
        # another order, and a run is released only after everything in it was settled.
        with database.transaction():
            database.lock(lambda: merge_locks(item.locks for item in items))
            for group in self._groups:
                members = [item for item in items if item.group is group]
                if members:
                    apply(database, group, members)
            for item in items:
                if item.group is None and len(items) == 1:
                    item.result = item.item(database)  # what fails undoes the transaction
                elif item.group is None:
                    _apply_alone(database, item, item.item)
            self._reach("store.before_commit")

    def _report(self, items: Sequence[_Queued], changed: bool) -> None:
        for item in items:
            try:
                if not item.future.done():
                    _tell_one(item)
            except Exception as error:  # nobody else may wait for ever because of it
                _fail(item.future, StoreFailed(f"the result of a write is unknown: {error!r}"))
        if changed:  # else whoever waits for a change would wake itself by looking
            self._on_commit()


def _ended_by(error: BaseException) -> StoreFailed:
    return StoreFailed(
        f"the thread that writes to the store ended unexpectedly: {error!r}",
        suggestions=("the last writes may be missing; start the program again and resume",),
    )


def _tell_one(item: _Queued) -> None:
    if isinstance(item.result, BaseException):
        _fail(item.future, item.result)
    else:
        item.future.set_result(item.result)


def _fail(future: "asyncio.Future[Any]", error: BaseException) -> None:
    future.set_exception(error)
    future.exception()  # a caller that was canceled never looks: no warning for that


_ApplyGroup = Callable[[DatabaseConnection, WriteGroup[Any, Any], Sequence[_Queued]], None]


class TakeApart(Exception):
    """Something in a group does not fit: undo everything and go through the items one by one."""


def _apply_group(database: DatabaseConnection, group: WriteGroup[Any, Any], members: Sequence[_Queued]) -> None:
    try:
        results = group.apply(database, [member.item for member in members])
        database.flush()
    except Locked:
        raise  # nothing is wrong with the items: all of it is tried again
    except Exception as error:
        raise TakeApart from error  # a failing disk fails again below, and is told then
    for member, result in zip(members, results, strict=True):
        member.result = result


def _apply_singly(database: DatabaseConnection, group: WriteGroup[Any, Any], members: Sequence[_Queued]) -> None:
    for member in members:
        _apply_alone(database, member, partial(_apply_single, group, member.item))


def _apply_alone(database: DatabaseConnection, item: _Queued, work: Callable[[DatabaseConnection], Any]) -> None:
    try:
        with database.savepoint():
            item.result = work(database)
    except Locked:
        raise
    except MusterError as error:
        item.result = error
    except Exception as error:
        item.result = StoreFailed(f"a write failed unexpectedly: {error!r}")


def _apply_single(group: WriteGroup[Any, Any], item: Any, database: DatabaseConnection) -> Any:
    result = group.apply(database, [item])[0]
    if isinstance(result, MusterError):
        raise result
    return result


class CommitSignal:
    """Wakes waiters after each commit of this process; other processes are seen by looking."""

    def __init__(self, look: Callable[[], object], every: float) -> None:
        self._look, self._every = look, every
        self._seen = look()
        self._commits = 0
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def commits(self) -> int:
        """Return how many commits were told so far."""
        return self._commits

    def beat(self) -> None:
        """Wake everybody who waits."""
        self._commits += 1
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seconds: float, since: int) -> bool:
        """Wait until there are other commits than at `since`, of any process, at most so long."""
        left = seconds
        while left > 0 and self._commits == since:
            step = min(left, self._every)
            if not await self._wait_here(step):
                self._look_for_others()
            left -= step
        return self._commits != since

    async def _wait_here(self, seconds: float) -> bool:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            done, _ = await asyncio.wait({waiter}, timeout=seconds)
            return bool(done)
        finally:
            self._waiters.discard(waiter)

    def _look_for_others(self) -> None:
        now = self._look()
        if now != self._seen:
            self._seen = now
            self.beat()  # whoever looks first tells all the others

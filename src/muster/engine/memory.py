"""What a run remembers besides its calls, by key: values of steps, events and signals."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from muster.domain.canonical import Json, digest
from muster.domain.entry import EntryKind, EntryState
from muster.domain.errors import KeyReused
from muster.engine.base.asked import unused_entries
from muster.engine.base.clock import Clock
from muster.engine.base.driven_run import DrivenRun, StopState
from muster.store.base import Record, Store


class RunMemory:
    """The journal of one run under its driver; a key names one thing in it."""

    def __init__(self, driven: DrivenRun, *, store: Store, clock: Clock, halt: StopState) -> None:
        self._run, self._epoch, self._inheritance = driven.run.id, driven.epoch, driven.inheritance
        self._store, self._clock, self._halt, self._asked = store, clock, halt, driven.asked
        self._activity = driven.activity
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}  # with how many hold it or wait for it
        self._used: set[str] = set()  # keys of steps and events

    @contextmanager
    def claimed(self, key: str, what: str) -> Iterator[None]:
        """Let a key be used once under this driver; one whose use failed may be used again."""
        require_new(key, self._used, what)
        self._used.add(key)
        try:
            yield
        except BaseException:
            self._used.discard(key)
            raise

    @asynccontextmanager
    async def alone(self, key: str) -> AsyncIterator[None]:
        """Let only one at a time do what stands under a key."""
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(key)
            if users > 1:
                self._locks[key] = (lock, users - 1)

    async def recall(self, key: str, kind: EntryKind) -> tuple[bool, Any]:
        """Return whether there is a value under a key, and the value; one that is inherited is taken over."""
        self._asked.note(key)
        with self._activity.working(), self._halt.noting():
            entry = await self._store.journal.find(self._run, key)
            if entry is None:
                entry = await self._inheritance.find(key, no_digest(kind), kind)
                if entry is not None:
                    await self._store.journal.reuse(self._run, self._epoch, entry, self._clock.now())
                else:
                    self._asked.note_missing(key)
        if entry is not None and entry.kind is not kind:
            raise KeyReused(f"key {key!r} is used for a {entry.kind} in this run and cannot be used for a {kind}")
        return entry is not None and entry.state is EntryState.DONE, entry.value if entry else None

    async def any(self) -> bool:
        """Return whether this run, or one that it goes on with, remembers anything."""
        begun = (one.run for one in self._inheritance.ancestors if not one.calls_only)
        for run in (self._run, *begun):
            async for _ in self._store.archive.entries(run, page=1):
                return True
        return False

    async def tell_unused(self) -> None:
        """Write down what was stored before and nobody asked for, while the like of it was done anew."""
        if not self._asked.anew or self._inheritance.replays:
            return
        done, whole = self._store.archive.done, [one.run for one in self._inheritance.ancestors if one.whole]
        own, inherited = await done(self._run), [entry for run in whole for entry in await done(run)]
        unused = unused_entries(self._asked, own, inherited)
        if unused is None:
            return
        await self.record(unused.event, EntryKind.EMIT, unused.told(), kind_of_event=unused.event)
        if unused.repeated:
            logging.getLogger("muster").warning("run %s: %s", self._run, unused)

    async def record(self, key: str, kind: EntryKind, value: Json, kind_of_event: str | None = None) -> Json:
        """Remember a value; returns the one that counts, which an earlier driver may have stored."""
        record = Record(
            run=self._run,
            epoch=self._epoch,
            key=key,
            kind=kind,
            digest=no_digest(kind),
            value=value,
            at=self._clock.now(),
            kind_of_event=kind_of_event,
        )
        with self._activity.working(), self._halt.noting():
            return await self._store.journal.record(record)


def require_new(key: str, used: Collection[str], what: str) -> None:
    """Raise KeyReused for a key that was used before."""
    if key in used:
        raise KeyReused(
            f"key {key!r} was used before in this run and cannot be used for another {what}",
            suggestions=(f"use a different key for each, with the number or the name of its item: {key}/1",),
        )


def no_digest(kind: EntryKind) -> str:
    """Return the digest of what is only what its key says: nothing else tells two of them apart."""
    return digest({"kind": str(kind)})

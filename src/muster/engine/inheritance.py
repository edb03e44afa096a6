"""What a run takes over from the run it comes from: replies when resumed or forked, everything when replayed."""

from dataclasses import dataclass

from muster.domain.entry import Entry, EntryKind, EntryState
from muster.domain.errors import NotFound, ReplayMiss
from muster.domain.ids import BatchId, RunId
from muster.domain.run import Reuse, Run
from muster.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestor:
    """A run whose journal counts, wholly or up to a key."""

    run: RunId
    fork_key: str | None = None
    before: int | None = None

    def covers(self, key: str) -> bool:
        """Whether this key may be taken from here: not the fork's key, nor anything below it."""
        return self.fork_key is None or (key != self.fork_key and not key.startswith(self.fork_key + "/"))


class Inheritance:
    """Looks keys up in the ancestors, nearest first."""

    def __init__(self, store: Store, ancestors: tuple[Ancestor, ...] = (), *, replays: bool = False) -> None:
        self._store = store
        self._ancestors = ancestors
        self.replays = replays

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take over."""
        return not self._ancestors

    async def find(self, key: str, digest: str) -> Entry | None:
        """Give an outcome to take over; in a replay a miss is an error that names the key."""
        entry = await self._nearest(key)
        if entry is not None and entry.digest == digest and self._usable(entry):
            return entry
        if self.replays:
            known = "another request was recorded under it" if entry and entry.digest != digest else "it has no outcome"
            reason = known if entry else "it was never recorded"
            raise ReplayMiss(f"replay: key {key!r} cannot be answered: {reason}")
        return None

    async def parked(self, key: str, digest: str) -> tuple[BatchId, int] | None:
        """Give the batch that still holds the call of an ancestor under this key."""
        entry = None if self.replays else await self._nearest(key)
        if entry is None or entry.digest != digest or entry.state is not EntryState.OPEN:
            return None
        return await self._store.batches.parked(entry.run, key)

    async def child(self, key: str) -> RunId | None:
        """Give the child run that an ancestor had under this key."""
        entry = await self._nearest(key)
        if entry is None or entry.kind is not EntryKind.CHILD:
            return None
        newest = await self._store.reuser.newest_child(entry.run, key)
        return newest.id if newest is not None else None

    def _usable(self, entry: Entry) -> bool:
        return entry.state is EntryState.DONE or (self.replays and entry.state is EntryState.FAILED)

    async def _nearest(self, key: str) -> Entry | None:
        for ancestor in self._ancestors:
            if not ancestor.covers(key):
                continue
            if ancestor.before is None:
                entry = await self._store.journal.find(ancestor.run, key)
            else:
                entry = await self._store.reuser.find_before(ancestor.run, key, ancestor.before)
            if entry is not None:
                return entry
        return None


async def inheritance_of(store: Store, run: Run) -> Inheritance:
    """Follow a run's origins back; a fork ends the line, since what came later is not wanted."""
    ancestors: list[Ancestor] = []
    seen = {run.id}
    origin = run.origin
    while origin is not None and origin.run not in seen:
        seen.add(origin.run)
        before = None
        if origin.fork_key is not None:
            before = await store.reuser.position(origin.run, origin.fork_key)
            if before is None:
                raise NotFound(f"run {origin.run} has nothing under the key {origin.fork_key!r}")
        ancestors.append(Ancestor(run=origin.run, fork_key=origin.fork_key, before=before))
        parent = await store.runs.get(origin.run)
        origin = None if parent is None or before is not None else parent.origin
    replays = run.origin is not None and run.origin.reuse is Reuse.REPLAY
    return Inheritance(store, tuple(ancestors), replays=replays)

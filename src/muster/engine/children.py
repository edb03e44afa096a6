"""The child runs of one run: started once, under its budget, stopped with it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from muster.domain.budget import Budgets, lineage_level, run_level
from muster.domain.canonical import Json, digest
from muster.domain.entry import Entry, EntryKind, EntryState
from muster.domain.errors import ChildFailed, Interrupted, KeyReused, LeftWaiting, NotFound, ReplayMiss
from muster.domain.ids import BatchId, RunId
from muster.domain.money import Microdollars
from muster.domain.run import CALLS_ONLY, REPLAYS, TERMINAL, NewRun, Origin, Reuse, Run, RunState
from muster.engine.clock import Clock
from muster.engine.levels import budgets_of
from muster.store.base import Record, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestor:
    """A run whose journal counts, wholly or up to a key."""

    run: RunId
    fork_key: str | None = None
    before: int | None = None
    calls_only: bool = False

    def covers(self, key: str, kind: EntryKind) -> bool:
        """Whether this key may be taken from here: not the fork's key, nor anything below it."""
        if self.calls_only and kind in (EntryKind.STEP, EntryKind.EMIT):
            return False
        return self.fork_key is None or (key != self.fork_key and not key.startswith(self.fork_key + "/"))


class Inheritance:
    """Looks keys up in the ancestors, nearest first."""

    def __init__(self, store: Store, ancestors: tuple[Ancestor, ...] = (), *, reuse: Reuse = Reuse.NOTHING) -> None:
        self._store = store
        self._ancestors = ancestors
        self.reuse = reuse

    @property
    def replays(self) -> bool:
        """Whether nobody may be asked."""
        return self.reuse in REPLAYS

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take over."""
        return not self._ancestors

    async def find(
        self, key: str, digest: str, kind: EntryKind = EntryKind.CALL, *, final: bool = False
    ) -> Entry | None:
        """Give an outcome to take over; in a replay, or of one that must be known, a miss is an error with the key."""
        final = final or self.replays
        entry = await self._nearest(key, kind)
        if entry is not None and entry.digest == digest and _usable(entry, final):
            return entry
        if final and (kind is EntryKind.CALL or any(ancestor.covers(key, kind) for ancestor in self._ancestors)):
            known = "another request was recorded under it" if entry and entry.digest != digest else "it has no outcome"
            reason = known if entry else "it was never recorded"
            raise ReplayMiss(f"replay: key {key!r} cannot be answered: {reason}")
        return None

    async def parked(self, key: str, digest: str) -> tuple[BatchId, int] | None:
        """Give the batch that still holds the call of an ancestor under this key."""
        entry = None if self.replays else await self._nearest(key, EntryKind.CALL)
        if entry is None or entry.digest != digest or entry.state is not EntryState.OPEN:
            return None
        return await self._store.batches.parked(entry.run, key)

    async def child(self, key: str) -> RunId | None:
        """Give the child run that an ancestor had under this key."""
        entry = await self._nearest(key, EntryKind.CHILD)
        if entry is None or entry.kind is not EntryKind.CHILD:
            return None
        newest = await self._store.reuser.newest_child(entry.run, key)
        return newest.id if newest is not None else None

    async def _nearest(self, key: str, kind: EntryKind) -> Entry | None:
        for ancestor in self._ancestors:
            if not ancestor.covers(key, kind):
                continue
            if ancestor.before is None:
                entry = await self._store.journal.find(ancestor.run, key)
            else:
                entry = await self._store.reuser.find_before(ancestor.run, key, ancestor.before)
            if entry is not None:
                return entry
        return None


def _usable(entry: Entry, final: bool) -> bool:
    return entry.state is EntryState.DONE or (final and entry.state is EntryState.FAILED)


async def inheritance_of(store: Store, run: Run) -> Inheritance:
    """Follow a run's origins back; a fork ends the line, since what came later is not wanted."""
    ancestors: list[Ancestor] = []
    seen = {run.id}
    origin = run.origin
    calls_only = False
    while origin is not None and origin.run not in seen:
        seen.add(origin.run)
        before = None
        if origin.fork_key is not None:
            before = await store.reuser.position(origin.run, origin.fork_key)
            if before is None:
                raise NotFound(f"run {origin.run} has nothing under the key {origin.fork_key!r}")
        calls_only = calls_only or origin.reuse in CALLS_ONLY
        ancestors.append(Ancestor(run=origin.run, fork_key=origin.fork_key, before=before, calls_only=calls_only))
        parent = await store.runs.get(origin.run)
        origin = None if parent is None or before is not None else parent.origin
    reuse = Reuse.NOTHING if run.origin is None else run.origin.reuse
    return Inheritance(store, tuple(ancestors), reuse=reuse)


DriveChild = Callable[[Run], Awaitable[Run]]

AGAIN = "\x1f"  # between a key and the run that was tried under it before; no key can hold it


class Children:
    """Gives the results of child runs by key."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        new_id: Callable[[], RunId],
        parent: Run,
        epoch: int,
        inheritance: Inheritance,
        drive: DriveChild,
    ) -> None:
        self._store, self._clock, self._new_id = store, clock, new_id
        self._parent, self._epoch = parent, epoch
        self._inheritance = inheritance
        self._drive = drive
        self._driven: set[RunId] = set()

    async def __call__(self, key: str, workload: str, spec: Json, cap: Microdollars | None) -> Json:
        """Drive the child to its end; a failed one of an older driver is tried anew, with its replies."""
        entry = await self._store.journal.find(self._parent.id, key)
        if entry is not None and entry.kind is not EntryKind.CHILD:
            raise KeyReused(f"key {key!r} is a {entry.kind} in this run and cannot be a child too")
        run = await self._store.reuser.newest_child(self._parent.id, key)
        if run is not None and (run.workload, run.spec) != (workload, spec):
            raise KeyReused(f"key {key!r} stands for another child in this run")
        if run is None or self._worth_another(run):
            run = await self._create(key, workload, spec, cap, failed=run)
        if entry is None:
            await self._note(key, run)
        if run.state not in TERMINAL:
            self._driven.add(run.id)
            run = await self._drive(run)
        return _result(run, key)

    def _worth_another(self, run: Run) -> bool:
        return run.state in TERMINAL - {RunState.COMPLETED} and run.id not in self._driven

    async def _create(self, key: str, workload: str, spec: Json, cap: Microdollars | None, failed: Run | None) -> Run:
        before = failed.id if failed is not None else await self._inheritance.child(key)
        reuse = self._inheritance.reuse
        if failed is not None and not self._inheritance.replays:
            reuse = Reuse.REPLIES  # it was a child of this very run: what it did counts wholly
        child = self._new_id()
        return await self._store.runs.create(
            NewRun(
                id=child,
                workload=workload,
                spec=spec,
                created_at=self._clock.now(),
                name=self._parent.name and f"{self._parent.name}/{key}",
                seed=self._parent.seed,
                cap=cap,
                concurrency=self._parent.concurrency,
                dispatch=self._parent.dispatch,
                parent=self._parent.id,
                parent_key=key if failed is None else f"{key}{AGAIN}{failed.id}",
                origin=Origin(run=before, reuse=reuse) if before is not None else None,
                budgets=await self._budgets(child, before),
            )
        )

    async def _budgets(self, child: RunId, before: RunId | None) -> Budgets:
        """Return the budgets of a child: below its parent's, and that of the run it continues if both have one story.

        The parent of that run may be one that this parent was forked from, which has a budget of its own.
        """
        parent = await budgets_of(self._store, self._parent)
        above = tuple(dict.fromkeys((run_level(self._parent.id), parent.lineage, *parent.above)))
        lineage = lineage_level(child)
        continued = await self._store.runs.get(before) if before is not None else None
        if continued is not None:
            its = await budgets_of(self._store, continued)
            lineage = its.lineage if parent.lineage in its.above else lineage
        return Budgets(lineage=lineage, above=above, day_cap=parent.day_cap)

    async def _note(self, key: str, run: Run) -> None:
        """Note the child in the journal, once; also one that was made by a driver that died before it could."""
        await self._store.journal.record(
            Record(
                run=self._parent.id,
                epoch=self._epoch,
                key=key,
                kind=EntryKind.CHILD,
                digest=digest({"workload": run.workload, "spec": run.spec}),
                value=run.id,
                at=self._clock.now(),
                kind_of_event=None,
            )
        )


def _result(run: Run, key: str) -> Json:
    if run.state is RunState.COMPLETED:
        return run.result
    if run.state is RunState.INTERRUPTED:
        raise Interrupted(f"child run {run.id} was interrupted")
    if run.state is RunState.WAITING:
        raise LeftWaiting(f"child run {run.id} waits for its batches")
    message = (run.error or {}).get("message", run.ended_reason)
    raise ChildFailed(f"child run {run.id} under {key!r} is {run.state}: {message}")

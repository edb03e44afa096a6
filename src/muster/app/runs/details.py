"""A run with what belongs to it, as values: its batches, its calls, its events. Read from the store only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muster.app.runs.planned_batches import PlannedBatches
from muster.app.runs.questions import OpenQuestion, questions_of, root_of
from muster.domain.batch import UNDER_WAY, Batch, Saving
from muster.domain.entry import AttemptState, Entry, EntryKind, Event, UnusedEntries
from muster.domain.ids import BatchId, RunId
from muster.domain.run import Run, RunState
from muster.store.base import Attempt, Store
from muster.text import typed

NO_SAVING = Saving()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBatches:
    """The batches that hold calls of one run, the oldest first, and what they and the tier flex saved."""

    batches: tuple[Batch, ...] = ()
    saving: Saving = NO_SAVING

    @property
    def under_way(self) -> tuple[Batch, ...]:
        """Return those that are not over."""
        return tuple(batch for batch in self.batches if batch.state in UNDER_WAY)

    @property
    def stalled(self) -> tuple[Batch, ...]:
        """Return those that do not get on."""
        return tuple(batch for batch in self.batches if batch.stalled)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetails:
    """A run, its batches, and the calls and events that were asked for; None was not asked for."""

    run: Run
    root: RunId  # the run at the top, which continues it; itself when it was started by itself
    batches: RunBatches
    calls: tuple[Entry, ...] | None = None
    uncertain: tuple[Attempt, ...] = ()
    events: tuple[Event, ...] | None = None
    questions: tuple[OpenQuestion, ...] = ()  # that people have not answered, of its children too
    unused: UnusedEntries | None = None  # what it had stored before it was resumed, and did not use

    @property
    def calls_left_out(self) -> int:
        """Return how many calls are not listed."""
        return max(0, self.run.calls.total - len(self.calls or ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDetails:
    """One call and its attempts."""

    entry: Entry
    attempts: tuple[Attempt, ...]


async def batches_of(store: Store, planned: PlannedBatches, run: RunId, *, flex: bool = False) -> RunBatches:
    """Return the batches that hold calls of a run; with `flex` also what that tier saved."""
    found = await planned.corrected(await store.batches.of_run(run))
    if not found and not flex:  # lists do without it: every attempt of the run is looked at
        return RunBatches()
    return RunBatches(batches=tuple(found), saving=await store.batches.saving(run))


async def batches_under_way(store: Store, planned: PlannedBatches, run: RunId) -> Sequence[Batch]:
    """Return the batches that are not over and hold calls of a run or of its children."""
    return await planned.corrected((await _under_way(store, run)).values())


async def _under_way(store: Store, run: RunId) -> dict[BatchId, Batch]:
    found = {batch.id: batch for batch in await store.batches.of_run(run) if batch.state in UNDER_WAY}
    for child in await store.archive.children(run):
        found |= await _under_way(store, child.id)
    return found


async def details_of(store: Store, planned: PlannedBatches, run: Run, *, calls: int, events: int) -> RunDetails:
    """Return a run with at most so many of its first calls and last events; 0 leaves them out."""
    batches = await batches_of(store, planned, run.id, flex=True)
    last = await _last_events(store, run, events) if events else None
    found = RunDetails(
        run=run,
        root=(await root_of(store, run.id)).id,
        batches=batches,
        events=last,
        questions=await questions_of(store, run),
        unused=await _unused(store, run),
    )
    if not calls:
        return found
    uncertain = tuple(await store.archive.attempts(run.id, (AttemptState.UNCERTAIN,)))[:calls]
    return replace(found, calls=await _first_calls(store, run.id, calls), uncertain=uncertain)


async def _unused(store: Store, run: Run) -> UnusedEntries | None:
    if run.state is not RunState.COMPLETED:
        return None
    event = await store.events.first(run.id, UnusedEntries.event)
    return None if event is None else typed.convert(event.data, UnusedEntries)


async def _first_calls(store: Store, run: RunId, most: int) -> tuple[Entry, ...]:
    found: list[Entry] = []
    async for entry in store.archive.entries(run):
        if entry.kind is EntryKind.CALL:
            found.append(entry)
        if len(found) == most:
            break
    return tuple(found)


async def _last_events(store: Store, run: Run, most: int) -> tuple[Event, ...]:
    return tuple(await store.events.read(run.id, max(0, run.last_seq - most), most))

"""Runs: found, listed and read. The part of `Muster.runs` that changes nothing."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from muster.app.base.backend import Backend
from muster.app.base.schemas import JsonSchemas
from muster.app.kinds import called, word_of
from muster.app.runs.details import (
    CallDetails,
    RunBatches,
    RunDetails,
    batches_of,
    batches_under_way,
    details_of,
)
from muster.app.runs.options import (
    require_count,
    require_limit,
    require_moment,
    require_reference,
    state_of,
)
from muster.app.runs.planned_batches import PlannedBatches
from muster.app.runs.questions import OpenQuestion, questions_of
from muster.app.runs.shown import shown_call, shown_details, shown_entries
from muster.domain.batch import Batch
from muster.domain.budget import Balance, require_server_left
from muster.domain.canonical import Json
from muster.domain.entry import Entry, EntryKind, Event
from muster.domain.errors import (
    BadArgument,
    Conflict,
    NotFound,
)
from muster.domain.ids import RunId
from muster.domain.kind import WorkKind, require_kind
from muster.domain.media import MediaFile, digest_of
from muster.domain.run import Run, RunState
from muster.store.base import RunPage
from muster.text.media import TYPES

PAGE = 1000  # runs that are looked through at a time


class RunReader:
    """Reads the runs of an open Muster that its user may see."""

    def __init__(self, backend: Backend) -> None:
        self._settings, self._store, self._engine = backend.settings, backend.store, backend.engine
        self._planned_batches = PlannedBatches(backend.store, backend.engine, backend.clock)
        self._user, self._clock = backend.user, backend.clock
        self._directory, self._workloads, self._queue = backend.directory, backend.workloads, backend.queue

    def new_id(self) -> RunId:
        """Return the id of the run that the user starts next: the one that was chosen for it, or a new one."""
        return self._user.run or self._engine.new_id()

    async def find(self, reference: str) -> Run:
        """Return the run that an id, a unique beginning of one, a name (the newest with it) or `last` stands for."""
        require_reference(reference)
        if reference == "last":
            runs = await self._store.runs.page(RunPage(owner=self._user.owner, roots=True, limit=1))
            if not runs:
                raise NotFound("this store has no runs yet", suggestions=("muster demo", "muster ask sim/echo hello"))
            return runs[0]
        found = await self._store.runs.match(reference, self._user.owner)
        exact = [run for run in found if run.id == reference] or [run for run in found if run.name == reference]
        if exact:
            return exact[0]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(run.id for run in found[:5])
            raise BadArgument(f"{reference!r} matches {len(found)} runs: {ids}", suggestions=("write more of the id",))
        where = f" in {self._settings.store_place}" if self._user.local else ""
        raise NotFound(f"run {reference!r} not found{where}", suggestions=("muster runs list",), given=reference)

    async def newest_named(self, name: str, workload: str, spec: Json) -> Run | None:
        """Return the user's newest run of a name that is not a child; raises Conflict for one that does other work."""
        run = await self._store.runs.newest_named(name, self._user.name)
        if run is not None and (run.workload, run.spec) != (workload, spec):
            differs = "workload" if run.workload != workload else "spec"
            raise Conflict(
                f"run {run.id}, named {name!r}, does other work: it has another {differs}",
                suggestions=("use another name for other work", "start it without resume=True"),
            )
        return run

    async def media(self, reference: str, digest: str) -> MediaFile:
        """Return an image or a document that a run shows; raises NotFound for what is not there, or is damaged."""
        run = await self.find(reference)
        type_ = dict(await self._store.media.named(run.id)).get(digest)
        data = None if type_ is None else await self._store.media.read(digest)
        if type_ is None or data is None or digest_of(data) != digest:
            raise NotFound(f"run {run.id} shows no file {digest[:64]!r}", given=digest)
        return MediaFile(kind=TYPES[type_], type=type_, digest=digest, size=len(data), data=data)

    async def newest(self, workloads: Collection[str]) -> Run | None:
        """Return the newest run of some workloads that is not a child."""
        wanted = RunPage(owner=self._user.owner, workloads=tuple(workloads), roots=True, limit=1)
        found = await self._store.runs.page(wanted)
        return found[0] if found else None

    async def of_kind(self, kind: WorkKind, reference: str) -> Run:
        """Return a run of a kind by its reference; `last` is the newest of the kind that is not a child."""
        if reference == "last":
            return await self.last_of(kind)
        run = await self.find(reference)
        require_kind(run, kind, word_of(run.workload))
        return run

    async def last_of(self, kind: WorkKind) -> Run:
        """Return the newest run of a kind that is not a child."""
        run = await self.newest((kind.workload,))
        if run is None:
            raise NotFound(f"this store has no {kind.word} yet", suggestions=(kind.example, "muster runs list"))
        return run

    async def list(self, states: Iterable[RunState | str] = (), limit: int = 100) -> Sequence[Run]:
        """Return the newest runs, of some states or of all."""
        return await self.page(states, limit=limit)

    async def page(
        self,
        states: Iterable[RunState | str] = (),
        *,
        workloads: Iterable[str] = (),
        roots: bool = False,
        name: str | None = None,
        search: str = "",
        started_by: str | None = None,
        agent: str | None = None,
        since: float = 0.0,
        until: float | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Sequence[Run]:
        """Return a page of runs, the newest first; `after` is the id of the last run of the page before.

        `name` is a whole name, `search` is looked for in ids, names, kinds of work and tags. `started_by` is a user,
        `agent` one that the run or a run under it has called; it was created from `since` on, and before `until`.
        """
        require_limit(limit)
        if started_by is not None and self._user.owner not in (None, started_by):
            return []  # nobody sees the runs of others
        last = None if after is None else await self.get(RunId(after))
        return await self._store.runs.page(
            RunPage(
                states=tuple(state_of(RunState, state) for state in states),
                workloads=tuple(workloads),
                owner=started_by or self._user.owner,
                agent=agent,
                since=require_moment(since),
                until=None if until is None else require_moment(until, "until"),
                roots=roots,
                name=name,
                search=search,
                searched_workloads=called(search),
                before=None if last is None else (last.created_at, last.id),
                limit=limit,
            )
        )

    def sees(self, run: Run) -> bool:
        """Return whether the user may see a run."""
        return self._user.owner is None or run.owner == self._user.owner

    async def get(self, run: RunId) -> Run:
        """Return a run as it is stored now."""
        found = await self._store.runs.get(run)
        if found is None or not self.sees(found):
            raise NotFound(f"run {run} not found", given=run)
        return found

    async def details(self, reference: str, *, calls: int = 0, events: int = 0) -> RunDetails:
        """Return a run with its batches, and at most so many of its first calls and last events.

        Like calls, a task comes without the secrets that its agent said; `Task.reply` has its answer as it was said.
        """
        for number in (calls, events):
            require_count(number)
        run = await self.find(reference)
        return shown_details(await details_of(self._store, self._planned_batches, run, calls=calls, events=events))

    async def batches_of(self, run: RunId, *, flex: bool = False) -> RunBatches:
        """Return the batches that hold calls of a run; with `flex` also what that tier saved."""
        return await batches_of(self._store, self._planned_batches, run, flex=flex)

    async def batches_under_way(self, run: RunId) -> Sequence[Batch]:
        """Return the batches that are not over and hold calls of a run or of its children."""
        return await batches_under_way(self._store, self._planned_batches, run)

    async def call(self, reference: str, key: str) -> CallDetails:
        """Return one call of a run in full."""
        run = await self.find(reference)
        entry = await self.entry(run.id, key)
        if entry is None or entry.kind is not EntryKind.CALL:
            raise NotFound(
                f"run {run.id} has no call under the key {key!r}", suggestions=(f"muster runs show {run.id} --calls",)
            )
        attempts = tuple(await self._store.archive.attempts_of(run.id, key))
        return shown_call(run, CallDetails(entry=entry, attempts=attempts))

    async def calls(self, reference: str, *, after: str | None = None, limit: int = 100) -> Sequence[Entry]:
        """Return a page of the calls of a run, in their order; `after` is the last key of the page before."""
        require_limit(limit)
        run = await self.find(reference)
        position = 0 if after is None else await self._store.journal.position(run.id, after)
        if position is None:
            raise NotFound(f"run {run.id} has no entry under the key {after!r}", given=str(after))
        found: list[Entry] = []
        async for entry in self._store.archive.entries(run.id, after=position):
            if entry.kind is EntryKind.CALL:
                found.append(entry)
            if len(found) == limit:
                break
        return shown_entries(run, found)

    async def attempts(self, reference: str, *, after: str | None = None, limit: int = 100) -> Sequence[CallDetails]:
        """Return a page of the calls of a run with their attempts, in their order."""
        run, archive = await self.find(reference), self._store.archive
        found = await self.calls(run.id, after=after, limit=limit)
        tried = [CallDetails(entry=one, attempts=tuple(await archive.attempts_of(one.run, one.key))) for one in found]
        return [shown_call(run, one) for one in tried]

    async def entry(self, run: RunId, key: str) -> Entry | None:
        """Return what a run remembers under a key; the reply to a request with a schema has its data."""
        entry = await self._store.journal.find(run, key)
        schema = entry.request.get("schema") if entry is not None and isinstance(entry.request, dict) else None
        if entry is None or entry.reply is None or not schema:
            return entry
        return replace(entry, reply=await JsonSchemas().parse(entry.reply, schema))

    async def keys(self, run: RunId) -> Sequence[str]:
        """Return the keys under which a run has a result: of calls, steps, events, signals and children."""
        return [entry.key for entry in await self._store.archive.done(run)]

    async def events(self, run: RunId, after: int = 0, limit: int = PAGE) -> Sequence[Event]:
        """Return the events of a run after a number, at most so many."""
        return await self._store.events.read(run, after, limit)

    async def unknown(self) -> Sequence[Run]:
        """Return the runs for workers whose workload this process does not know."""
        submitted = await self._store.runs.submitted(PAGE)
        return [run for run in submitted if not self._engine.knows(run.workload)]

    async def workers(self) -> int:
        """Return how many workers are alive."""
        return len(await self._engine.workers())

    async def questions(self, reference: str) -> Sequence[OpenQuestion]:
        """Return what a run, also the one that it was resumed as, waits for people to answer; children's too."""
        return await questions_of(self._store, await self.end_of_lineage(await self.find(reference)))

    async def end_of_lineage(self, run: Run) -> Run:
        """Return the run that a run was last continued as; itself when it was not."""
        return await self._store.runs.end_of_lineage(run.id) or run

    async def _server_balance(self) -> Balance | None:
        level = self._user.level
        return None if level is None else (await self._store.runs.balances([level])).get(level)

    async def _require_payable(self) -> None:
        """Raise BudgetExhausted when the server through which the user comes has nothing left to spend."""
        if self._user.level is not None:
            require_server_left(self._user.level, await self._server_balance())

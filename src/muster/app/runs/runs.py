"""Runs: found, started, resumed, forked, replayed, followed, canceled, deleted and moved. `Muster.runs`."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from muster.app.backend import Backend
from muster.app.outputs import require_output
from muster.app.runs.details import (
    CallDetails,
    RunBatches,
    RunDetails,
    batches_of,
    batches_under_way,
    details_of,
)
from muster.app.runs.files import export_run, import_run
from muster.app.runs.follow import RunWatcher
from muster.app.runs.handle import RunHandle
from muster.app.runs.options import (
    RunOptions,
    descendant,
    new_run,
    require_count,
    require_limit,
    require_reference,
    state_of,
)
from muster.app.runs.questions import AnswerOutcome, OpenQuestion, questions_of, root_of, send_answer
from muster.app.schemas import JsonSchemas
from muster.domain.batch import Batch
from muster.domain.budget import Balance, Budgets, UserBudget, require_left, require_server_left
from muster.domain.call import require_key
from muster.domain.canonical import Json, plain_json
from muster.domain.entry import ANSWERS, Entry, EntryKind, Event, NewSignal, Signal
from muster.domain.errors import (
    AccessDenied,
    BadArgument,
    Conflict,
    Interrupted,
    MusterError,
    NotFound,
    QueueFailed,
    RunFailed,
    StopRun,
    state_verb,
)
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import LIVE, REPLAYS, TERMINAL, Dispatch, Origin, Reuse, Run, RunState, mode_of
from muster.engine.drive import Leave, Listener
from muster.engine.workload import Preparation
from muster.settings import parse_budget
from muster.store.base import RunPage

# Raises what would keep a run of a workload from being done with its spec; True: it is to be driven in this process.
Admission = Callable[[str, Json, RunOptions, bool], None]
PAGE = 1000  # runs that are looked through at a time
MOST_FORGOTTEN = 10_000  # runs that are looked at in one go
CANCEL_SECONDS = 5.0  # for which the driver of a canceled run is waited for


# What people call the workloads whose names in the store are other words.
KINDS = {"ask": "question", "deliberation": "council", "scale": "scale test", "waves": "verification"}


def _called(search: str) -> tuple[str, ...]:
    """Return the workloads whose name for people has the words of a search in it, as one or as several of them."""
    words = search.strip().lower()
    return tuple(workload for workload, name in KINDS.items() if words and words in f"{name}s")


class Runs:
    """The runs of an open Muster."""

    def __init__(self, backend: Backend, admit: Admission) -> None:
        self._admit = admit
        self._settings, self._store, self._engine = backend.settings, backend.store, backend.engine
        self._clock, self._directory, self._workloads = backend.clock, backend.directory, backend.workloads
        self._feeds, self._queue = backend.feeds, backend.queue
        self._driving: set[asyncio.Task[Run]] = set()
        self._stopped: StopRun | None = None
        self._user = backend.user

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
        raise NotFound(f"run {reference!r} not found{where}", suggestions=("muster runs list",))

    async def newest(self, workloads: Collection[str]) -> Run | None:
        """Return the newest run of some workloads that is not a child."""
        wanted = RunPage(owner=self._user.owner, workloads=tuple(workloads), roots=True, limit=1)
        found = await self._store.runs.page(wanted)
        return found[0] if found else None

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
        after: str | None = None,
        limit: int = 100,
    ) -> Sequence[Run]:
        """Return a page of runs, the newest first; `after` is the id of the last run of the page before.

        `name` is a whole name, `search` is looked for in ids, names, kinds of work and tags.
        """
        require_limit(limit)
        last = None if after is None else await self.get(RunId(after))
        return await self._store.runs.page(
            RunPage(
                states=tuple(state_of(RunState, state) for state in states),
                workloads=tuple(workloads),
                owner=self._user.owner,
                roots=roots,
                name=name,
                search=search,
                searched_workloads=_called(search),
                before=None if last is None else (last.created_at, last.id),
                limit=limit,
            )
        )

    def sees(self, run: Run) -> bool:
        """Return whether the user may see a run."""
        return self._user.owner is None or run.owner == self._user.owner

    @property
    def user_budget(self) -> UserBudget | None:
        """The budget of the user, that runs which they start count under."""
        return self._user.budget

    async def requested(self) -> Run | None:
        """Return the run that the request of the user started before, under its key or with the id that it chose.

        Raises Conflict for another request under the key or the id.
        """
        request, chosen = self._user.request, self._user.run
        if request is None:
            return None
        found = await self._store.runs.requested(self._user.name, request)
        if found is not None or chosen is None:
            return found
        taken = await self._store.runs.get(chosen)
        if taken is None:
            return None
        if taken.owner != self._user.name or taken.request is None or taken.request.digest != request.digest:
            raise Conflict(f"id {chosen} belongs to another request", suggestions=("use a new one for each request",))
        return taken

    async def starts(self, seconds: float) -> Sequence[tuple[str, float]]:
        """Return the clients whose requests started runs in the last seconds, and when, the oldest first."""
        return await self._store.queue.starts(self._clock.now() - seconds)

    def new_id(self) -> RunId:
        """Return the id of the run that the user starts next: the one that was chosen for it, or a new one."""
        return self._user.run or self._engine.new_id()

    async def get(self, run: RunId) -> Run:
        """Return a run as it is stored now."""
        found = await self._store.runs.get(run)
        if found is None or not self.sees(found):
            raise NotFound(f"run {run} not found")
        return found

    async def details(self, reference: str, *, calls: int = 0, events: int = 0) -> RunDetails:
        """Return a run with its batches, and at most so many of its first calls and last events."""
        for number in (calls, events):
            require_count(number)
        return await details_of(self._store, await self.find(reference), calls=calls, events=events)

    async def batches_of(self, run: RunId) -> RunBatches:
        """Return the batches that hold calls of a run."""
        return await batches_of(self._store, run)

    async def batches_under_way(self, run: RunId) -> Sequence[Batch]:
        """Return the batches that are not over and hold calls of a run or of its children."""
        return await batches_under_way(self._store, run)

    async def call(self, reference: str, key: str) -> CallDetails:
        """Return one call of a run in full."""
        run = await self.find(reference)
        entry = await self.entry(run.id, key)
        if entry is None or entry.kind is not EntryKind.CALL:
            raise NotFound(
                f"run {run.id} has no call under the key {key!r}", suggestions=(f"muster runs show {run.id} --calls",)
            )
        return CallDetails(entry=entry, attempts=tuple(await self._store.archive.attempts_of(run.id, key)))

    async def calls(self, reference: str, *, after: str | None = None, limit: int = 100) -> Sequence[Entry]:
        """Return a page of the calls of a run, in their order; `after` is the last key of the page before."""
        require_limit(limit)
        run = await self.find(reference)
        position = 0 if after is None else await self._store.reuser.position(run.id, after)
        if position is None:
            raise NotFound(f"run {run.id} has no entry under the key {after!r}")
        found: list[Entry] = []
        async for entry in self._store.archive.entries(run.id, after=position):
            if entry.kind is EntryKind.CALL:
                found.append(entry)
            if len(found) == limit:
                break
        return found

    async def attempts(self, reference: str, *, after: str | None = None, limit: int = 100) -> Sequence[CallDetails]:
        """Return a page of the calls of a run with their attempts, in their order."""
        found = await self.calls(reference, after=after, limit=limit)
        archive = self._store.archive
        return [CallDetails(entry=one, attempts=tuple(await archive.attempts_of(one.run, one.key))) for one in found]

    async def entry(self, run: RunId, key: str) -> Entry | None:
        """Return what a run remembers under a key; the reply to a request with a schema has its data."""
        entry = await self._store.journal.find(run, key)
        schema = entry.request.get("schema") if entry is not None and isinstance(entry.request, dict) else None
        if entry is None or entry.reply is None or not schema:
            return entry
        return replace(entry, reply=await JsonSchemas().parse(entry.reply, schema))

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

    async def start(
        self,
        workload: str,
        spec: Json,
        options: RunOptions | None = None,
        *,
        detach: bool = False,
        on_delta: Listener | None = None,
        origin: Origin | None = None,
    ) -> RunHandle:
        """Store a run and drive it in this process; with `detach` only until it waits for batches.

        With an origin it takes over what another run remembers, as far as the origin says.
        """
        options = options or self.options()
        self._workloads.find(workload)
        self._workloads.check(workload, spec)
        if origin is None:
            self._admit(workload, spec, options, True)
        return await self.start_checked(workload, spec, options, detach=detach, on_delta=on_delta, origin=origin)

    async def start_checked(
        self,
        workload: str,
        spec: Json,
        options: RunOptions | None = None,
        *,
        detach: bool = False,
        on_delta: Listener | None = None,
        origin: Origin | None = None,
        before: Preparation | None = None,
    ) -> RunHandle:
        """Store a run whose agents and files were checked, and drive it in this process.

        `before` does steps of the workload in advance; the workload must be able to do without.
        """
        self._require_going_on()
        self._workloads.find(workload)
        self._workloads.check(workload, spec)
        run = await self._create(workload, spec, options or self.options(), submitted=detach, origin=origin)
        return self.drive(run, on_delta, detach=detach, before=before)

    async def create(self, workload: str, spec: Json, options: RunOptions, run: RunId, budgets: Budgets) -> Run:
        """Store a run under budgets of its part; nothing drives it yet."""
        self._workloads.check(workload, spec)
        await self._require_payable()
        new = new_run(run, self._clock.now(), workload, spec, options)
        new = replace(new, budgets=budgets, request=self._user.request)
        return await self._engine.create(new, level=self._user.level)

    async def submit(
        self, workload: str, spec: Json, options: RunOptions | None = None, *, origin: Origin | None = None
    ) -> RunHandle:
        """Store a run for the workers; its keys are theirs to have, but its agents must be known."""
        chosen = options or self.options()
        self._workloads.check(workload, spec)
        self._admit(workload, spec, chosen, False)
        run = await self._create(workload, spec, chosen, submitted=True, origin=origin)
        await self._announce(run)
        return self.watch(run)

    async def resume(
        self, reference: str, *, budget_usd: str | float | None = None, on_delta: Listener | None = None
    ) -> RunHandle:
        """Go on with a run: the same one if it stands still, a new one with all its replies if it is over.

        Both spend from the budget that the run was started with; `budget_usd` sets a new total.
        """
        self._require_going_on()
        return self.drive(await self.prepare_resume(reference, budget_usd=budget_usd), on_delta)

    async def prepare_resume(self, reference: str, *, budget_usd: str | float | None = None, here: bool = True) -> Run:
        """Return the run that will be driven on resume, made if need be; raises before anything changes.

        If it is to be driven in this process (`here`), the batches that it waits for must be within reach.
        """
        run = await self.find(reference)
        if not self._engine.is_abandoned(run):
            require_not_driven(run)
        cap = parse_budget(budget_usd)
        self._workloads.find(run.workload)
        if here:
            await self.require_batches(run.id)
        if run.state is RunState.COMPLETED:
            raise Conflict(
                f"run {run.id} completed; there is nothing to resume",
                suggestions=(f"muster runs fork {run.id} --from KEY",),
            )
        if run.state in TERMINAL:
            replayed = run.origin is not None and run.origin.reuse in REPLAYS  # then nobody is asked now either
            reuse = run.origin.reuse if run.origin and replayed else Reuse.REPLIES
            return await self._descend(run, reuse, cap=cap, budgets=await self._engine.budgets_of(run))
        await self._require_counted(run)
        if cap is not None:
            await self._store.commands.set_cap(run.id, cap)
        elif run.calls.done < run.calls.total:  # else what is left to do may cost nothing
            require_left(run.id, run.cap, run.total.settled)
        return await self.get(run.id)

    async def require_batches(self, run: RunId) -> None:
        """Raise BadConfiguration when a batch that a run waits for is out of reach: a key is missing or another's."""
        for batch in (await self.batches_of(run)).under_way:
            self._directory.reopen(batch.endpoint)

    async def queue(self, run: RunId) -> Run:
        """Hand a run that stands still to the workers."""
        queued = await self._store.commands.requeue(run, self._clock.now())
        await self._announce(queued)
        return queued

    async def _announce(self, run: Run) -> None:
        """Tell workers on other machines of a run; without the queue they find it in the store a little later."""
        if self._queue is not None:
            with contextlib.suppress(QueueFailed):
                await self._queue.get().announce(run)

    async def fork(self, reference: str, key: str, *, budget_usd: str | float | None = None) -> Run:
        """Make a run that takes over everything before a key and asks anew from there on."""
        run = await self.find(reference)
        if await self._store.journal.find(run.id, key) is None:
            raise NotFound(
                f"run {run.id} has no entry under the key {key!r}", suggestions=(f"muster runs show {run.id} --calls",)
            )
        cap = parse_budget(budget_usd) or run.cap
        return await self._descend(run, Reuse.REPLIES, cap=cap, fork_key=key)

    async def replay(self, reference: str) -> Run:
        """Make a run that takes every outcome from another and makes no calls."""
        run = await self.find(reference)
        return await self._descend(run, Reuse.REPLAY, cap=run.cap)

    def drive(
        self,
        run: Run,
        on_delta: Listener | None = None,
        *,
        detach: bool = False,
        before: Preparation | None = None,
    ) -> RunHandle:
        """Drive a run in this process."""
        leave = Leave.FOR_BATCHES if detach else Leave.NEVER
        driving = self._engine.drive(run.id, on_delta, leave=leave, before=before)
        task = asyncio.get_running_loop().create_task(driving)
        self._driving.add(task)
        task.add_done_callback(self._driving.discard)
        return self._handle(run.id, task)

    def watch(self, run: Run) -> RunHandle:
        """Follow a run that another process may drive."""
        return self._handle(run.id, None)

    async def follow(self, reference: str, after: int = 0) -> RunWatcher:
        """Return a watcher of a run, which many may share at the cost of one: every event after a number, then live.

        Unlike `watch` it goes on while the run stands still, and is told of text while it is being written.
        """
        return self._feeds.follow(await self.find(reference), after)

    @property
    def watchers(self) -> int:
        """Return how many watchers of `follow` this process has."""
        return self._feeds.watchers

    async def close_watchers(self) -> None:
        """End every watcher of this process; whoever follows can go on in another one after its last event."""
        await self._feeds.close()

    async def send(
        self, reference: str, channel: str, payload: Json, *, sender: str = "", client_id: str | None = None
    ) -> Signal:
        """Send a signal to a run, or to the run that it was resumed as; the same client id twice sends one.

        A run that waits for it without a process is queued, and goes on as soon as somebody drives submitted runs.
        """
        require_key(channel)
        if channel.startswith(ANSWERS):
            raise BadArgument(
                f"{channel!r} is for answers of people", suggestions=("use runs.answer, or muster answer",)
            )
        run = await self.newest_of_lineage(await self.find(reference))
        if run.state in TERMINAL:
            raise Conflict(f"run {run.id} {state_verb(run.state)}; it receives no signals any more")
        await self._require_counted(run)
        return await self._store.signals.send(
            NewSignal(
                address=run.lineage_level,
                channel=channel,
                payload=plain_json(payload, "the payload of a signal"),
                client_id=client_id or uuid4().hex,
                sender=sender,
                at=self._clock.now(),
            )
        )

    async def questions(self, reference: str) -> Sequence[OpenQuestion]:
        """Return what a run, also the one that it was resumed as, waits for people to answer; children's too."""
        return await questions_of(self._store, await self.newest_of_lineage(await self.find(reference)))

    async def answer(
        self, reference: str, text: str, *, key: str | None = None, sender: str = "", client_id: str | None = None
    ) -> AnswerOutcome:
        """Answer the only open question of a run, or the one under a key; the same client id twice answers once.

        An answer that does not fit the schema of the question is refused, and not stored.
        """
        run = await self.newest_of_lineage(await self.find(reference))
        await self._require_counted(run)
        sent = await send_answer(
            self._store,
            run,
            text,
            key=key,
            sender=sender,
            client_id=client_id or uuid4().hex,
            at=self._clock.now(),
        )
        return AnswerOutcome(sent=sent, root=await root_of(self._store, sent.run), workers=await self.workers())

    async def newest_of_lineage(self, run: Run) -> Run:
        """Return the run that a run was last resumed as; itself when it was not."""
        newest = await self._store.runs.newest_of_lineage(run.lineage_level)
        return newest or run

    async def cancel(self, reference: str) -> Run:
        """Cancel a run and its batches; returns it when its driver has let go, or as it is after a few seconds."""
        await self._engine.sweep()
        run = await self.find(reference)
        canceled = await self._store.commands.cancel(run.id, self._clock.now())
        if canceled.state is RunState.CANCELED:
            await self._cancel_batches(run.id)
        return await self._until_let_go(await self.get(run.id))

    async def _cancel_batches(self, run: RunId) -> None:
        try:
            await self._engine.cancel_batches(run)
        except MusterError as error:
            left = await self.batches_under_way(run)
            ways = [f"run {run} was canceled, its batches were not: muster batch cancel {batch.id}" for batch in left]
            error.suggestions = (*error.suggestions, *ways)
            raise

    async def _until_let_go(self, run: Run) -> Run:
        loop = asyncio.get_running_loop()
        end = loop.time() + CANCEL_SECONDS
        while run.is_driven and loop.time() < end:
            await self._store.changes.wait(end - loop.time())
            run = await self.get(run.id)
        return run

    async def delete(self, references: Iterable[str]) -> Sequence[RunId]:
        """Delete runs with everything in them; none is deleted when one of them is not found."""
        found = list(dict.fromkeys([(await self.find(reference)).id for reference in references]))
        for run in found:
            await self._store.commands.delete(run, self._clock.now())
        return found

    async def forget_ended(self, before: float) -> int:
        """Delete runs that ended before a time, with everything in them; return how many.

        Those that a baseline names, or that others still need, stay.
        """
        found = await self._store.runs.ended(before, MOST_FORGOTTEN)
        deleted = 0
        for run in found:
            try:
                await self._store.commands.delete(run, self._clock.now())
                deleted += 1
            except Conflict:
                continue
        return deleted

    async def export(self, reference: str, path: str | Path) -> tuple[Run, int]:
        """Write a run to a file; returns it with the number of its entries."""
        require_output(Path(path))
        run = await self.find(reference)
        return run, await export_run(self._store, run, Path(path))

    async def import_(self, path: str | Path) -> Run:
        """Read a run from a file; it keeps its id."""
        return await import_run(self._store, Path(path))

    @property
    def calls_on_wire(self) -> int:
        """Return how many calls of runs driven here wait for their agents."""
        return self._engine.on_wire

    @property
    def use_batches(self) -> bool:
        """Return whether runs driven here have parked calls, or taken up batches, since the store was opened."""
        return self._engine.uses_batches

    @property
    def stopping(self) -> bool:
        """Return whether this process was told to stop; it drives nothing new then."""
        return self._stopped is not None

    def stop(self, error: StopRun, *, now: bool) -> None:
        """Stop every run that this process drives; none is started or resumed here any more."""
        self._stopped = error
        self._engine.stop_all(error, now=now)

    async def close(self) -> None:
        """Let go of every run that is being driven here; they can be resumed.

        Calls on the wire are answered first; canceled meanwhile, as by a second Ctrl-C, it cuts them.
        """
        if self._driving:
            await self._engine.let_go("the program closed the store", set(self._driving))

    def options(
        self,
        *,
        budget_usd: str | float | None = None,
        name: str | None = None,
        tags: Iterable[str] = (),
        timeout: float | None = None,
        concurrency: int = 20,
        dispatch: str | Dispatch = LIVE,
    ) -> RunOptions:
        """Return checked options; without a budget, that of the settings."""
        budget = parse_budget(budget_usd)
        if not isinstance(dispatch, str | Dispatch):
            raise BadArgument(f"must be live or batch, not {dispatch!r}", argument="dispatch")
        if not isinstance(tags, Iterable):
            raise BadArgument(f"tags must be a list of strings, not {tags!r}")
        if isinstance(tags, str):
            raise BadArgument(f"tags must be a list of strings, not {tags!r}", suggestions=(f"write [{tags!r}]",))
        return RunOptions(
            name=name,
            tags=tuple(tags),
            budget=self._settings.run_cap if budget is None else budget,
            timeout=timeout,
            concurrency=concurrency,
            dispatch=Dispatch(mode=mode_of(dispatch)) if isinstance(dispatch, str) else dispatch,
        )

    def _handle(self, run: RunId, task: "asyncio.Task[Run] | None") -> RunHandle:
        return RunHandle(self, self._store, run, task, self._engine.sweep)

    def _require_going_on(self) -> None:
        if self._stopped is not None:
            raise self._stopped

    async def _create(
        self, workload: str, spec: Json, options: RunOptions, *, submitted: bool = False, origin: Origin | None = None
    ) -> Run:
        await self._require_payable()
        id_, now = self.new_id(), self._clock.now()
        new = new_run(id_, now, workload, spec, options, submitted=submitted, origin=origin)
        new = replace(new, request=self._user.request)
        return await self._engine.create(new, self._user.budget, self._user.level)

    async def _descend(
        self,
        run: Run,
        reuse: Reuse,
        *,
        cap: Microdollars | None,
        fork_key: str | None = None,
        budgets: Budgets | None = None,
    ) -> Run:
        await self._require_payable()
        id_, now = self.new_id(), self._clock.now()
        new = descendant(id_, now, run, reuse, cap=cap, fork_key=fork_key, budgets=budgets)
        new = replace(new, request=self._user.request)
        return await self._engine.create(new, self._user.budget, self._user.level)

    async def _require_payable(self) -> None:
        """Raise BudgetExhausted when the server through which the user comes has nothing left to spend."""
        if self._user.level is not None:
            require_server_left(self._user.level, await self._server_balance())

    async def _server_balance(self) -> Balance | None:
        level = self._user.level
        return None if level is None else (await self._store.runs.balances([level])).get(level)

    async def _require_counted(self, run: Run) -> None:
        """Raise AccessDenied for a run that would spend past the budget of the server through which the user comes."""
        balance = await self._server_balance()
        counted = run.budgets is not None and self._user.level in run.budgets.above
        if balance is not None and balance.cap is not None and not counted:
            raise AccessDenied(
                f"run {run.id} was not started through this server, so the budget of the server does not cover it",
                suggestions=("whoever started it can go on with it at the command line",),
            )


def require_completed(run: Run) -> Run:
    """Return the run if it is completed, or waits as it was told to; else raise what it came to."""
    if run.state is RunState.COMPLETED or run.is_detached:
        return run
    if run.state is RunState.INTERRUPTED:
        go_on = f"muster runs resume {run.id}"
        why = f" ({run.error['message']})" if run.error else ""
        raise Interrupted(f"run {run.id} is interrupted{why}; continue with: {go_on}", suggestions=(go_on,))
    raise RunFailed(run.id, str(run.state), run.ended_reason, run.error)


def require_not_driven(run: Run) -> None:
    """Raise Conflict for a run that a living process drives."""
    if run.is_driven:
        raise Conflict(
            f"run {run.id} is being driven by {run.lease.driver}",
            suggestions=(f"muster runs watch {run.id}", f"muster runs cancel {run.id}"),
        )

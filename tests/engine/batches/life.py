"""A model of the life of one batch: processes that go on one step at a time, and a provider that answers as it is told.

Everything but the provider is real: the store on disk, and the parts that create, find, poll, collect and cancel.
A process waits before every read, write, request and sleep until it is told to go on, so a test chooses what falls
between what. It may die there, or never be told again, like one that froze.
"""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from muster.agents.base import BatchAgent, BatchUpload, Directory
from muster.domain.agent import Timeouts
from muster.domain.batch import (
    Batch,
    BatchEndpoint,
    BatchLimits,
    BatchProgress,
    BatchState,
    ListedBatch,
    Member,
    Phase,
    Plan,
    Shortfall,
)
from muster.domain.entry import AttemptState
from muster.domain.errors import (
    BatchLost,
    BatchOpen,
    BatchOverdue,
    Conflict,
    InvalidRequest,
    MusterError,
    OutcomeUnknown,
    RateLimited,
)
from muster.domain.ids import BatchId, RunId
from muster.domain.run import Driver, RunState
from muster.engine.base.killpoints import KillPoints
from muster.engine.batches.assembly import make_batcher
from muster.engine.batches.base import BatchServices, Patience
from muster.engine.batches.batcher import Batcher
from muster.store.base import RunRelease, Store
from muster.store.sqlite.store import SqliteStore, open_sqlite
from muster.testing.batches import TARIFF, MemoryBatchFormat
from muster.testing.stores import NOW, driven, opening

NAME = BatchId("b1")
MEMBERS = 3
TIMEOUTS = Timeouts(connect=1.0, idle=1.0, call=1.0, grace=1.0)
PATIENCE = Patience(poll_first=2.0, poll_longest=8.0, grace=20.0, deadline=400.0)
SPINS = 12  # turns of the loop without a change, after which nobody goes on by itself


class Answer(StrEnum):
    """What the provider does with a request."""

    OK = "ok"
    REFUSED = "refused"  # for now
    CUT_BEFORE = "cut before"  # nothing was done
    CUT_AFTER = "cut after"  # it was done, and nobody is told
    SHORT = "short"  # of results: one line is missing
    TWICE = "twice"  # of results: every line comes twice


@dataclass
class Created:
    """A batch at the provider."""

    id: str
    names: list[str]
    at: float
    file: str | None
    label: str | None
    ended: bool = False
    canceled: bool = False


@dataclass
class Provider:
    """All batches of one account."""

    kind: str
    clock: "ModelClock"
    created: list[Created] = field(default_factory=list)
    files: int = 0

    def get(self, name: str) -> Created:
        """Return a batch by the id that it was given."""
        return next(batch for batch in self.created if batch.id == name)


class ModelClock:
    """Time that passes when somebody who sleeps is told to go on."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self.time

    def monotonic(self) -> float:
        """Return seconds that only go forward."""
        return self.time


class Killed(asyncio.CancelledError):
    """The process is dead: nothing of it goes on."""


@dataclass(eq=False)
class Turn:
    """A step that a process waits to take."""

    what: str
    until: float  # of a sleep: when it is over
    go: "asyncio.Future[Answer]"


class Gate:
    """Where a process waits until it is told to go on."""

    def __init__(self, clock: ModelClock) -> None:
        self.clock = clock
        self.waiting: list[Turn] = []
        self.dead = False
        self.busy = 0  # operations of the real store under way

    async def wait(self, what: str, until: float = 0.0) -> Answer:
        """Wait before a step; says how the provider is to answer it."""
        if self.dead:
            raise Killed
        turn = Turn(what, until, asyncio.get_running_loop().create_future())
        self.waiting.append(turn)
        try:
            return await turn.go
        finally:
            self.waiting.remove(turn)

    async def sleep(self, seconds: float) -> None:
        """Sleep: whoever is told to go on finds that the time has passed."""
        until = self.clock.time + seconds
        await self.wait("sleep", until)
        self.clock.time = max(self.clock.time, until)


class Gated:
    """A part of the store, whose every call is a step."""

    def __init__(self, real: Any, gate: Gate, *passes: str) -> None:
        self._real, self._gate, self._passes = real, gate, passes

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        return real if name in self._passes else self._step(name, real)

    def _step(self, name: str, real: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def work(*arguments: Any, **options: Any) -> Any:
            await self._gate.wait(name)
            self._gate.busy += 1
            try:
                return await real(*arguments, **options)
            finally:
                self._gate.busy -= 1

        def step(*arguments: Any, **options: Any) -> Awaitable[Any]:
            return asyncio.ensure_future(work(*arguments, **options))

        return step


class GatedChanges:
    """Waiting for a commit is a sleep here."""

    commits = 0

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def wait(self, seconds: float, since: int) -> bool:
        """Wait."""
        await self._gate.sleep(seconds)
        return True


class GatedStore:
    """The store as one process sees it."""

    def __init__(self, real: SqliteStore, gate: Gate) -> None:
        self.batches = Gated(real.batches, gate, "bodies", "members", "max_tokens")
        self.changes = GatedChanges(gate)


class GatedClock(ModelClock):
    """The clock as one process sees it."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self._gate.clock.time

    def monotonic(self) -> float:
        """Return seconds that only go forward."""
        return self._gate.clock.time

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await self._gate.sleep(seconds)


class GatedAgent:
    """The provider's batch API as one process sees it."""

    limits = BatchLimits(requests=100, bytes=1_000_000)
    format = MemoryBatchFormat()

    def __init__(self, provider: Provider, gate: Gate) -> None:
        self._provider, self._gate = provider, gate
        self.endpoint = endpoint_of(provider.kind)
        self.labels_batches = self.uploads_file = provider.kind == "openai"

    async def submit(self, upload: BatchUpload, timeouts: Timeouts) -> str:
        """Upload where that is needed, and create."""
        file = upload.file
        if self.uploads_file and file is None:
            async with self._request("upload") as _:
                self._provider.files += 1
                file = f"file-{self._provider.files}"
            await upload.on_file(file)
        body = b"".join([piece async for piece in upload.pieces()])
        names = [json.loads(line)["custom_id"] for line in body.splitlines()]
        return await self._create(upload, file, names)

    async def _create(self, upload: BatchUpload, file: str | None, names: list[str]) -> str:
        created = self._provider.created
        label = upload.id if self.labels_batches else None
        async with self._request("create"):
            made = Created(f"p{len(created) + 1}", names, self._provider.clock.time, file, label)
            created.append(made)
        return made.id

    async def poll(self, provider_id: str, timeouts: Timeouts) -> BatchProgress:
        """Say how it stands."""
        async with self._request("poll"):
            batch = self._provider.get(provider_id)
        if not batch.ended:
            return BatchProgress(phase=Phase.RUNNING, word="running")
        shortfall = Shortfall.CANCELED if batch.canceled else Shortfall.NONE
        answered = 0 if batch.canceled else len(batch.names)
        return BatchProgress(
            phase=Phase.ENDED, word="ended", sources=(provider_id,), shortfall=shortfall, answered=answered
        )

    async def results(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        """Give the results, whole or not."""
        request = self._request("results")
        async with request:
            batch = self._provider.get(source)
        names = [] if batch.canceled else batch.names[int(request.answer is Answer.SHORT) :]
        for name in names * (2 if request.answer is Answer.TWICE else 1):
            yield json.dumps({"custom_id": name, "text": "x"}).encode() + b"\n"

    async def cancel(self, provider_id: str, timeouts: Timeouts) -> None:
        """Stop a batch."""
        async with self._request("cancel"):
            batch = self._provider.get(provider_id)
            batch.canceled, batch.ended = batch.canceled or not batch.ended, True

    async def find(self, since: float, timeouts: Timeouts) -> AsyncIterator[ListedBatch]:
        """List the batches."""
        async with self._request("list"):
            found = list(self._provider.created)
        for each in reversed(found):
            yield ListedBatch(
                id=each.id,
                created_at=each.at,
                requests=len(each.names),
                ended=each.ended,
                file=each.file,
                label=each.label,
            )

    def _request(self, what: str) -> "Request":
        return Request(self._gate, what)


class Request:
    """One request: it arrives, is carried out, and its answer comes back, each a step."""

    def __init__(self, gate: Gate, what: str) -> None:
        self._gate, self._what = gate, what
        self.answer = Answer.OK

    async def __aenter__(self) -> "Request":
        self.answer = await self._gate.wait(self._what)
        if self.answer is Answer.REFUSED:
            raise RateLimited("too fast")
        if self.answer is Answer.CUT_BEFORE:
            raise OutcomeUnknown("cut")
        return self

    async def __aexit__(self, *error: object) -> None:
        if error[0] is None:
            await self._gate.wait(f"{self._what} answered")
            if self.answer is Answer.CUT_AFTER:
                raise OutcomeUnknown("cut")


def endpoint_of(kind: str) -> BatchEndpoint:
    """Return where the batches of a provider are handed in."""
    return BatchEndpoint(kind=kind, base_url="memory://", account="account", variable="")


class Agents:
    """Finds the one provider again."""

    def __init__(self, agent: GatedAgent) -> None:
        self._agent = agent

    def reopen(self, endpoint: BatchEndpoint) -> BatchAgent:
        """Come back to the provider."""
        return self._agent


class Process:
    """One process that takes the batch to its end, step by step."""

    def __init__(self, world: "World", number: int) -> None:
        self.gate, self.driver = Gate(world.clock), Driver(host="host", pid=number, started=str(number))
        batch_services = BatchServices(
            store=cast(Store, GatedStore(world.store, self.gate)),
            directory=cast(Directory, Agents(GatedAgent(world.provider, self.gate))),
            clock=GatedClock(self.gate),
            random=random.Random(number),
            kill=KillPoints(),
            driver=self.driver,
            is_gone=world.is_gone,
            patience=PATIENCE,
            timeouts=TIMEOUTS,
            create_timeouts=TIMEOUTS,
        )
        self.batcher: Batcher = make_batcher(batch_services, world.folder / f"spool-{number}")
        self.task: asyncio.Task[None] | None = None
        self.error: MusterError | None = None

    def start(self, work: Callable[[Batcher], Awaitable[object]]) -> None:
        """Begin something with the batch; how it failed is in `error` afterwards."""

        async def watched() -> None:
            try:
                await work(self.batcher)
            except MusterError as error:
                self.error = error

        self.task = asyncio.get_running_loop().create_task(watched())

    @property
    def alive(self) -> bool:
        """Whether it is at work."""
        return not self.gate.dead and self.task is not None and not self.task.done()

    async def settle(self) -> None:
        """Let it go on until it waits for its next step."""
        spins, before = 0, None
        while spins < SPINS:
            await asyncio.sleep(0.0005 if self.gate.busy else 0)
            now = list(self.gate.waiting), self.gate.busy, self.alive
            spins = 0 if self.gate.busy or now != before else spins + 1
            before = now

    async def step(self, which: int = 0, answer: Answer = Answer.OK) -> str | None:
        """Tell it to take one of the steps that it waits for; returns which, or None when it waits for none."""
        if not self.alive or not self.gate.waiting:
            return None
        turn = self.gate.waiting[which % len(self.gate.waiting)]
        turn.go.set_result(answer if answer in answers_of(turn.what) else Answer.OK)
        await self.settle()
        return turn.what

    async def go(self, answer: Answer = Answer.OK) -> str | None:
        """Tell it to take its next step; it sleeps only when there is nothing else to do."""
        waiting = self.gate.waiting
        return await self.step(
            min(range(len(waiting)), key=lambda place: (waiting[place].until, place), default=0), answer
        )

    async def kill(self) -> None:
        """Let nothing of it go on, as SIGKILL does."""
        self.gate.dead = True
        if self.task is not None:
            self.task.cancel()
        for turn in list(self.gate.waiting):
            turn.go.cancel()
        await self.settle()
        await self.batcher.close()


def answers_of(step: str) -> Sequence[Answer]:
    """Return how the provider may answer a step."""
    common = (Answer.OK, Answer.REFUSED, Answer.CUT_BEFORE, Answer.CUT_AFTER)
    return {
        "upload": common,
        "create": common,
        "poll": common,
        "list": common,
        "cancel": common,
        "results": (*common, Answer.SHORT, Answer.TWICE),
    }.get(step, (Answer.OK,))


class World:
    """One store, one provider, and any number of processes."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.clock = folder, ModelClock()
        self.provider = Provider(kind, self.clock)
        self.store: SqliteStore
        self.processes: list[Process] = []
        self.given_up = False
        self._run = RunId("")

    async def begin(self) -> None:
        """Plan the batch; whoever planned it is gone."""
        self.store = open_sqlite(self.folder / "muster.db")
        self._run, claim = await driven(self.store)
        members = [
            Member(opening=opening(self._run, claim.epoch, f"call/{place}"), place=place, size=10, max_tokens=5)
            for place in range(MEMBERS)
        ]
        names = Batch(
            id=NAME,
            endpoint=endpoint_of("x"),
            state=BatchState.PLANNED,
            requests=0,
            bytes=0,
            tariffs={},
            created_at=0,
            nonce="n",
        ).names
        lines = [MemoryBatchFormat().member(names.name(place), b"{}") for place in range(MEMBERS)]
        plan = Plan(
            id=NAME,
            endpoint=endpoint_of(self.provider.kind),
            nonce="n",
            tariffs={"sim/echo": TARIFF},
            members=members,
            bodies=[await self.store.batches.pack(b"\n".join(lines))],
            bytes=10,
            at=NOW,
        )
        await self.store.batches.plan(plan)
        ending = RunRelease(state=RunState.INTERRUPTED, reason="interrupted", at=NOW)
        await self.store.leases.release(self._run, claim.epoch, ending)

    async def close(self) -> None:
        """End everything."""
        for process in self.processes:
            await process.kill()
        await self.store.maintenance.close()

    def is_gone(self, driver: Driver) -> bool:
        """Whether a process is dead."""
        return any(process.driver == driver and process.gate.dead for process in self.processes)

    async def start(self, work: Callable[[Batcher], Awaitable[object]] | None = None) -> Process:
        """Start a process that takes the batch to its end, or does something else with it."""
        process = Process(self, len(self.processes) + 1)
        self.processes.append(process)
        process.start(work or (lambda batcher: batcher.fetch(NAME)))
        await process.settle()
        return process

    async def start_to_give_up(self) -> Process:
        """Start a process that looks for the batch and gives it up when it cannot be found or read."""
        self.given_up = True
        return await self.start(self._give_up)

    async def start_to_cancel(self) -> Process:
        """Start a process that has the batch canceled."""
        return await self.start(lambda batcher: batcher.cancel(NAME))

    async def _give_up(self, batcher: Batcher) -> None:
        batch = await self.batch()
        try:
            if batch.state is BatchState.SENT:
                await batcher.resolve(NAME)
            elif batch.state in (BatchState.RUNNING, BatchState.ENDED):
                await batcher.look(NAME)
        except (BatchOpen, BatchLost):  # as `BatchOffice.reconcile` does
            await batcher.abandon(await self.batch())

    async def batch(self) -> Batch:
        """Read the batch."""
        found = await self.store.batches.get(NAME)
        assert found is not None
        return found

    def end_batches(self) -> None:
        """Let the provider come to the end of all batches."""
        for batch in self.provider.created:
            batch.ended = True

    async def to_end(self, process: Process, most: int = 3000) -> None:
        """Let a process take step after step until it is done; the provider ends its batches meanwhile."""
        for _ in range(most):
            if not process.alive:
                return
            self.end_batches()
            await process.go()
        raise AssertionError(f"it is not done after {most} steps, and waits for {process.gate.waiting}")

    async def finish(self) -> None:
        """Bring the batch to its end with new processes, while all others stand still; there is always a way out."""
        for _ in range(4):
            self.end_batches()
            process = await self.start()
            await self.to_end(process)
            if process.error is None:
                break
            assert isinstance(process.error, BatchOpen | BatchLost | BatchOverdue), process.error
            await self.to_end(await self.start_to_give_up())
        assert (await self.batch()).state in (BatchState.COLLECTED, BatchState.REFUSED, BatchState.ABANDONED)

    async def thaw(self) -> None:
        """Let everybody who stood still go on to the end."""
        for process in self.processes:
            await self.to_end(process)
            assert process.error is None or isinstance(
                process.error, BatchOpen | BatchLost | BatchOverdue | Conflict | InvalidRequest
            ), process.error
        self.end_batches()

    async def check(self) -> None:
        """Check the law: whatever was paid is in the books, nothing is reserved, and every member has one outcome."""
        batch, members = await self.batch(), await self.store.batches.members(NAME, 0, MEMBERS)
        paid = [made for made in self.provider.created if made.ended and not made.canceled]
        booked = [member.state in (AttemptState.SUCCEEDED, AttemptState.UNCERTAIN) for member in members]
        story = f"{batch.state}: {batch.note}; created {self.provider.created}; members {[m.state for m in members]}"
        assert AttemptState.PARKED not in [member.state for member in members], story
        assert len(paid) <= min(booked), story
        if batch.state is BatchState.COLLECTED:
            assert len(self.provider.created) == 1, story
        run = await self.store.runs.get(self._run)
        assert run is not None
        assert run.spent.reserved == 0, story

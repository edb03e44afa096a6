"""The pool while it is at work: the log of a task, and a look at slots and tasks whenever they change."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass

from muster.app.base.backend import Backend
from muster.app.pool.status import PoolStatus, StatusSource
from muster.app.pool.task_queries import Task
from muster.app.pool.tasks import Tasks
from muster.domain.entry import Event
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL
from muster.domain.task import TaskState
from muster.pool.tasks import REVIEW, run_states
from muster.text.secrets.redaction import redact
from muster.text.words import one_line

PAGE = 500
LOOK_SECONDS = 1.0
PAUSE_SECONDS = 0.25  # between two looks, however much is written
MAX_SHOWN = 20
MAX_WORDS = 200  # characters of the last line that is being written
SHOWN_FIRST = (run_states(TaskState.RUNNING), run_states(TaskState.PENDING_REVIEW))
UNSETTLED = frozenset({TaskState.PENDING, TaskState.RUNNING})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """Something that happened to a task, or a piece of what its agent wrote."""

    at: float
    event: Event | None = None  # None: a piece of output
    key: str = ""  # of the call that wrote it
    text: str = ""  # what was written, what went wrong, what a review said


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSnapshot:
    """The pool at one moment: tasks at work first, then those in review, then the newest others."""

    status: PoolStatus
    tasks: tuple[Task, ...]
    writing: Mapping[str, str]  # the last line of what is being written, by task

    @property
    def left_out(self) -> int:
        """How many tasks are not shown."""
        return max(0, sum(self.status.tasks.values()) - len(self.tasks))

    @property
    def at_rest(self) -> bool:
        """Return whether no task is pending or running."""
        return not any(self.status.tasks[state] for state in UNSETTLED)


class PoolMonitor:
    """Follows the pool, whoever drives it. `Muster.pool.monitor`."""

    def __init__(self, backend: Backend, tasks: Tasks, status: StatusSource) -> None:
        self._store, self._engine, self._clock = backend.store, backend.engine, backend.clock
        self._tasks, self._status = tasks, status

    async def logs(self, reference: str, *, follow: bool = False) -> AsyncGenerator[LogRecord, None]:
        """Yield what happened to a task and what its agent wrote; with `follow` as it comes, until the task is over."""
        run = (await self._tasks.find(reference)).id
        written: dict[str, str] = {}  # of calls that are not answered, by key
        after = 0
        while True:
            seen = self._store.changes.commits
            before = await self._store.runs.get(run)
            for event in await self._store.events.read(run, after, PAGE):
                after = event.seq
                yield await self._described(event)
                async for record in self._answered(event, written):
                    yield record
            async for record in self._growth(run, written):
                yield record
            # Read before the events: whatever was told before it ended has been given by now.
            over = before is None or before.state in TERMINAL
            if after >= (0 if before is None else before.last_seq) and (over or not follow):
                return
            if not await self._store.changes.wait(LOOK_SECONDS, seen):
                await self._engine.sweep()

    async def watch(self, limit: int = MAX_SHOWN) -> AsyncGenerator[PoolSnapshot, None]:
        """Yield the pool as it is, and again whenever something changed; never ends by itself."""
        last: PoolSnapshot | None = None
        while True:
            seen = self._store.changes.commits
            now = await self._snapshot(limit)
            if now != last:
                yield now
            last = now
            if not await self._store.changes.wait(LOOK_SECONDS, seen):
                await self._engine.sweep()
            await self._clock.sleep(PAUSE_SECONDS)

    async def _snapshot(self, limit: int) -> PoolSnapshot:
        runs = [run for states in SHOWN_FIRST for run in await self._store.pool.tasks(states, limit)]
        known = {run.id for run in runs}
        runs += [run for run in await self._store.pool.newest_tasks(limit=limit) if run.id not in known]
        tasks = tuple([await self._tasks.of(run) for run in runs[:limit]])
        writing = {
            task.id: one_line(redact(text.rstrip().rpartition("\n")[2][-MAX_WORDS:]).text, MAX_WORDS)
            for task in tasks
            if task.state is TaskState.RUNNING
            for text in (await self._store.events.partials(task.run.id)).values()
        }
        return PoolSnapshot(status=await self._status(), tasks=tasks, writing=writing)

    async def _described(self, event: Event) -> LogRecord:
        """Return an event with what it means in words: what a review said, what a program wrote before it failed."""
        text = ""
        if event.kind == "signal.received" and event.data.get("channel") == REVIEW:
            entry = await self._store.journal.find(event.run, str(event.data["key"]))
            said = entry.value[0]["payload"] if entry is not None and entry.value else {}
            text = "approved" if said.get("approved") else f"rejected: {said.get('feedback', '')}"
        error = event.data.get("error")
        if isinstance(error, Mapping):
            text = redact("\n".join(str(error[name]) for name in ("message", "log") if error.get(name))).text
        return LogRecord(at=event.at, event=event, key=str(event.data.get("key", "")), text=text)

    async def _answered(self, event: Event, written: dict[str, str]) -> AsyncIterator[LogRecord]:
        """Yield what of an answer was not told while it was written."""
        if event.kind not in ("call.done", "call.reused"):
            return
        key = str(event.data.get("key", ""))
        entry = await self._store.journal.find(event.run, key)
        told = written.pop(key, "")
        if entry is not None and entry.reply is not None:
            yield LogRecord(at=event.at, key=key, text=redact(_rest(told, entry.reply.text)).text)

    async def _growth(self, run: RunId, written: dict[str, str]) -> AsyncIterator[LogRecord]:
        """Yield what was written since the last look."""
        for key, text in (await self._store.events.partials(run)).items():
            more = _rest(written.get(key, ""), text)
            written[key] = text
            if more:
                yield LogRecord(at=self._clock.now(), key=key, text=redact(more).text)


def _rest(told: str, text: str) -> str:
    """Return what follows what was told; all of it when another attempt began anew."""
    return text[len(told) :] if text.startswith(told) else text

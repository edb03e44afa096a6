"""How far jobs have got: the run of each, its state and its calls, for whoever added the job."""

import contextlib
from collections.abc import Iterator

from muster.domain.canonical import Json
from muster.domain.errors import QueueFailed
from muster.domain.ids import RunId
from muster.domain.run import Run
from muster.engine.queue.base import JobQueue, QueuedJob
from muster.store.base import Store


def progress_of(run: Run) -> dict[str, Json]:
    """Return how far a run has got."""
    return {"run": run.id, "state": str(run.state), "done": run.calls.done, "total": run.calls.total}


class JobProgress:
    """Writes the progress of jobs whose runs this worker drives, whenever it has changed."""

    def __init__(self, queue: JobQueue, store: Store) -> None:
        self._queue, self._store = queue, store
        self._followed: dict[RunId, QueuedJob] = {}
        self._told: dict[RunId, Json] = {}

    @contextlib.contextmanager
    def followed(self, job: QueuedJob, run: RunId) -> Iterator[None]:
        """Let `look` write the progress of a job for a while."""
        self._followed[run] = job
        try:
            yield
        finally:
            self._followed.pop(run, None)
            self._told.pop(run, None)

    async def look(self) -> None:
        """Write what has changed since the last look: one question to the store for all jobs."""
        if not self._followed:
            return
        for run in await self._store.runs.driven():
            job, progress = self._followed.get(run.id), progress_of(run)
            if job is not None and self._told.get(run.id) != progress:
                self._told[run.id] = progress
                await self._queue.report(job, progress)

    async def report(self, job: QueuedJob, run: Run | None) -> None:
        """Write how a job stands now; that it cannot be written keeps no run from going on."""
        with contextlib.suppress(QueueFailed):
            if run is not None:
                await self._queue.report(job, progress_of(run))

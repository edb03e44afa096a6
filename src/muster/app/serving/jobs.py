"""Jobs that other programs put into the queue: work of any kind, in the words of the HTTP API.

Whoever can write to the Redis server can start work, so a job is trusted like a request with the scope `start`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from muster.app.kinds import AppKind, made_at
from muster.app.parts.library import Library
from muster.app.parts.parts import MusterParts
from muster.app.runs.handle import RunHandle
from muster.app.serving.order_models import OrderModel, order_model
from muster.app.serving.orders import Submit, submission
from muster.app.serving.request_flaws import flaws_sentence, order_flaws
from muster.domain.canonical import Json, digest
from muster.domain.doors import Door
from muster.domain.errors import BadArgument
from muster.domain.ids import RunId
from muster.domain.run import Run, StartRequest, User
from muster.engine.queue.base import RUNS, QueuedJob, is_recoverable, queue_of

_RUN_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_NUMBERED = re.compile(r"[0-9]+")  # by BullMQ itself, from 1 again when Redis has lost its data


START = "start"  # in the data of a job of the queue for all runs: which kind of work it starts


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of work that jobs start: how their data is read, and what stores a run of it."""

    model: type[OrderModel]
    submit: Submit

    @staticmethod
    def of(known: AppKind) -> "JobKind":
        """Return a kind as jobs start it."""
        model = order_model(known.order, Door.JOB, name=f"{known.schema}Job", camel=known.doors.camel)
        return JobKind(model, submission(known))


KINDS = {known.kind.word: JobKind.of(known) for known in made_at(Door.JOB)}
_QUEUES = {queue: known.kind.word for known in made_at(Door.JOB) if (queue := queue_of(known.kind.workload)) != RUNS}


class JobIntake:
    """Makes runs of jobs; the same job again gives the same run, and another attempt of it goes on with that."""

    def __init__(self, muster: MusterParts) -> None:
        self._muster = muster

    async def accept(self, job: QueuedJob) -> Run:
        """Return the run of a job, or what that was continued as; a failed one is continued by the next attempt.

        Raises BadArgument for data that asks for nothing known, and whatever keeps the run from being continued.
        """
        run = await self._run_of(job) if job.run is None else await self._muster.runs.get(job.run)
        end = await self._muster.runs.end_of_lineage(run)
        if not (job.failures or _is_added_again(job, end)) or not is_recoverable(end):
            return end
        key = f"{job.queue}/{job.id}/{job.added_at}/{job.failures}"  # one that is added again begins to count anew
        request = StartRequest(client=f"queue/{job.id}", key=key, digest=digest(job.data))
        made = await self._muster.acting_for(User(name=run.owner, request=request)).runs.requested()
        if made is not None:  # by this attempt, whose worker died before it could say how that ended
            return end
        return await self._muster.acting_for(User(request=request, queued=True)).runs.submit_resume(run.id)

    async def _run_of(self, job: QueuedJob) -> Run:
        """Return the run that a job of another program asks for, stored before or now."""
        kind, data = _asked(job)
        wanted = _read(data, kind.model, self._muster.library)
        request = StartRequest(client=f"queue/{job.id}", key=_key(job), digest=digest(job.data))
        chosen = RunId(job.id) if _RUN_ID.fullmatch(job.id) else None
        acting = self._muster.acting_for(User(request=request, run=chosen, queued=True))
        known = await acting.runs.requested()
        if known is not None:
            return known
        try:
            made = await kind.submit(acting, wanted)
        except BadArgument as error:
            raise error.named(kind.model.names()) from error
        return await made.run() if isinstance(made, RunHandle) else made


def _asked(job: QueuedJob) -> tuple[JobKind, Json]:
    """Return which kind of work a job starts, and what it says of it."""
    if job.queue in _QUEUES:
        return KINDS[_QUEUES[job.queue]], job.data
    data = dict(job.data) if isinstance(job.data, Mapping) else {}
    if (word := data.pop(START, None)) in KINDS:
        return KINDS[str(word)], data
    raise BadArgument(
        f'a job of the queue {job.queue!r} must name a run, {{"run": ID}}, or what it starts: {{"start": …}}',
        suggestions=(
            f"start can be {', '.join(KINDS)}",
            *(f"a {word} goes into {name!r} too" for name, word in _QUEUES.items()),
        ),
    )


def _is_added_again(job: QueuedJob, end: Run) -> bool:
    """Return whether a job was removed and added again after the work that it asks for had failed."""
    return job.run is None and end.ended_at is not None and job.added_at / 1000 > end.ended_at


def _key(job: QueuedJob) -> str:
    """Return what is the same only for the same job."""
    key = f"{job.queue}/{job.id}"
    return f"{key}/{job.added_at}" if _NUMBERED.fullmatch(job.id) else key


def _read(data: Json, model: type[OrderModel], library: Library) -> Any:
    try:
        found = model.model_validate(data).order()
    except ValidationError as error:
        flaws = order_flaws(library, model, error.errors(include_url=False), data)
        raise BadArgument(f"the data of the job does not fit: {flaws_sentence(flaws)}", flaws=flaws) from error
    return found

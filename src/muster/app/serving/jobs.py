"""Jobs that other programs put into the queue: battles and scale tests, in the words of the HTTP API.

Whoever can write to the Redis server can start work, so a job is trusted like a request with the scope `start`.
"""

import re

from pydantic import ValidationError

from muster.app.parts.parts import MusterParts
from muster.app.serving.battles import submit_battle
from muster.app.serving.order_models import OrderModel, order_model
from muster.app.serving.request_flaws import flaws_sentence, request_flaws
from muster.battles.order import BattleOrder, ScaleOrder
from muster.domain.canonical import Json, digest
from muster.domain.errors import BadArgument
from muster.domain.ids import RunId
from muster.domain.order import Door
from muster.domain.run import Run, StartRequest, User
from muster.engine.queue.base import BATTLES, SCALE_TESTS, QueuedJob, is_recoverable

_RUN_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_NUMBERED = re.compile(r"[0-9]+")  # by BullMQ itself, from 1 again when Redis has lost its data


ORDERS = {  # by queue
    BATTLES: order_model(BattleOrder, Door.JOB, name="BattleJob", camel=True),
    SCALE_TESTS: order_model(ScaleOrder, Door.JOB, name="ScaleJob", camel=True),
}


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
        if not job.failures or not is_recoverable(end):
            return end
        request = StartRequest(client=f"queue/{job.id}", key=f"{_key(job)}/{job.failures}", digest=digest(job.data))
        made = await self._muster.acting_for(User(name=run.owner, request=request)).runs.requested()
        if made is not None:  # by this attempt, whose worker died before it could say how that ended
            return end
        return await self._muster.acting_for(User(request=request, queued=True)).runs.submit_resume(run.id)

    async def _run_of(self, job: QueuedJob) -> Run:
        """Return the run that a job of another program asks for, stored before or now."""
        if job.queue not in ORDERS:
            raise BadArgument(
                f'a job of the queue {job.queue!r} must name a run: {{"run": ID}}',
                suggestions=(f"battles go into {BATTLES!r}, scale tests into {SCALE_TESTS!r}",),
            )
        wanted = _read(job.data, ORDERS[job.queue])
        request = StartRequest(client=f"queue/{job.id}", key=_key(job), digest=digest(job.data))
        chosen = RunId(job.id) if _RUN_ID.fullmatch(job.id) else None
        acting = self._muster.acting_for(User(request=request, run=chosen, queued=True))
        known = await acting.runs.requested()
        return known if known is not None else await (await submit_battle(acting, wanted)).run()


def _key(job: QueuedJob) -> str:
    """Return what is the same only for the same job."""
    key = f"{job.queue}/{job.id}"
    return f"{key}/{job.added_at}" if _NUMBERED.fullmatch(job.id) else key


def _read(data: Json, model: type[OrderModel]) -> BattleOrder:
    try:
        found: BattleOrder = model.model_validate(data).order()
    except ValidationError as error:
        flaws = request_flaws(error.errors(include_input=False), model.names().values())
        raise BadArgument(f"the data of the job does not fit: {flaws_sentence(flaws)}", flaws=flaws) from error
    return found

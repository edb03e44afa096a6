"""Jobs that other programs put into the queue: battles and scale tests, in the words of the HTTP API.

Whoever can write to the Redis server can start work, so a job is trusted like a request with the scope `start`.
"""

import re
from typing import TYPE_CHECKING, Any

from muster.app.serving.battles import requested_battle, requested_scale
from muster.battles.scale_spec import BattleGoal, PromptVariant
from muster.battles.spec import BattleSpec
from muster.domain.canonical import Json, digest
from muster.domain.errors import BadArgument
from muster.domain.ids import RunId
from muster.domain.run import Run, StartRequest, User
from muster.engine.queue.base import BATTLES, SCALE_TESTS, QueuedJob, is_recoverable
from muster.text import typed

if TYPE_CHECKING:
    from muster.app.muster import Muster

_RUN_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_NUMBERED = re.compile(r"[0-9]+")  # by BullMQ itself, from 1 again when Redis has lost its data


class BattleJob(typed.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The data of a job of the queue `battles`."""

    agent_id: str
    counterpart: str | None = None
    goal: str | None = None
    judge: str | None = None
    confirm_judge: str | None = None
    validators: list[dict[str, Any]] = typed.field(default_factory=list)
    system_prompt: str | None = None
    persona: str | None = None
    user_message: str | None = None
    message_limit: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    plateau_turns: int | None = None
    timeout_secs: float | None = None
    budget_usd: float | None = None
    name: str | None = None


class GoalJob(typed.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One of the goals of a scale test."""

    goal: str
    persona: str = ""
    user_message: str = ""


class PromptJob(typed.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the prompts that a scale test compares."""

    name: str
    text: str


class ScaleJob(BattleJob, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The data of a job of the queue `scale-tests`."""

    agent_ids: list[str] = typed.field(default_factory=list)
    prompts: list[PromptJob] = typed.field(default_factory=list)
    goals: list[GoalJob] = typed.field(default_factory=list)
    run_count: int | None = None
    concurrency: int | None = None
    min_goal_rate: float | None = None
    reviser: str | None = None
    revision: bool = True
    try_revised: bool = False


class JobIntake:
    """Makes runs of jobs; the same job again gives the same run, and another attempt of it goes on with that."""

    def __init__(self, muster: "Muster") -> None:
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
        kinds: dict[str, type[BattleJob]] = {BATTLES: BattleJob, SCALE_TESTS: ScaleJob}
        if job.queue not in kinds:
            raise BadArgument(
                f'a job of the queue {job.queue!r} must name a run: {{"run": ID}}',
                suggestions=(f"battles go into {BATTLES!r}, scale tests into {SCALE_TESTS!r}",),
            )
        wanted = _read(job.data, kinds[job.queue])
        request = StartRequest(client=f"queue/{job.id}", key=_key(job), digest=digest(job.data))
        chosen = RunId(job.id) if _RUN_ID.fullmatch(job.id) else None
        acting = self._muster.acting_for(User(request=request, run=chosen, queued=True))
        known = await acting.runs.requested()
        return known if known is not None else await _submit(acting, wanted)


def _key(job: QueuedJob) -> str:
    """Return what is the same only for the same job."""
    key = f"{job.queue}/{job.id}"
    return f"{key}/{job.added_at}" if _NUMBERED.fullmatch(job.id) else key


async def _submit(muster: "Muster", job: BattleJob) -> Run:
    """Store the run of a job for the workers; raises before that what would keep it from being done."""
    await muster.battles.check_validators(job.validators)
    options = muster.runs.options(budget_usd=job.budget_usd, name=job.name)
    if not isinstance(job, ScaleJob):
        return await (await muster.battles.submit(_battle(muster, job, job.goal), options)).run()
    goals = [BattleGoal(goal=one.goal, persona=one.persona, user_message=one.user_message) for one in job.goals]
    spec = requested_scale(
        muster,
        _battle(muster, job, goals[0].goal if goals else job.goal),
        job.agent_id,
        agent_ids=job.agent_ids,
        reviser=job.reviser,
        revision=job.revision,
        runs=job.run_count,
        concurrency=job.concurrency,
        prompts=[PromptVariant(name=one.name, text=one.text) for one in job.prompts],
        goals=goals,
        min_goal_rate=job.min_goal_rate,
        try_revised=job.try_revised,
    )
    return await (await muster.battles.scales.submit(spec, options)).run()


def _battle(muster: "Muster", job: BattleJob, goal: str | None) -> BattleSpec:
    return requested_battle(
        muster,
        job.agent_id,
        job.counterpart,
        goal=goal or "",
        judge=job.judge,
        confirm_judge=job.confirm_judge,
        validators=job.validators,
        system_prompt=job.system_prompt,
        persona=job.persona,
        user_message=job.user_message,
        message_limit=job.message_limit,
        max_tokens=job.max_tokens,
        temperature=job.temperature,
        seed=job.seed,
        plateau_turns=job.plateau_turns,
        timeout_secs=job.timeout_secs,
    )


def _read(data: Json, kind: type[BattleJob]) -> BattleJob:
    try:
        return typed.convert(data, kind)
    except typed.ValidationError as error:
        raise BadArgument(f"the data of the job does not fit: {error}") from error

"""The workload of scale tests: many battles as child runs, then a revised prompt, and maybe the same goals with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muster.battles.kind import SCALE
from muster.battles.revision import PlayedBattle, PromptRevision, revision_question
from muster.battles.scale_spec import (
    PlannedBattle,
    ScaleSpec,
    plan_battles,
    plan_revised,
    read_scale,
    require_limits,
)
from muster.battles.spec import stored
from muster.battles.values import WORKLOAD
from muster.domain.errors import BudgetExhausted, ChildFailed
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.judging.structured import ask_structured
from muster.text import typed
from muster.text.schemas.guard import in_schema_thread

PLAYED_EVENT = "scale.played"  # a battle is over
PLAYED = "/played"  # after the key of a battle: the step that remembers what became of it


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOutcome:
    """What a scale test came to; numbers are computed from the conversations."""

    battles: tuple[PlayedBattle, ...]
    revision: PromptRevision | None = None
    revised: tuple[PlayedBattle, ...] = ()  # the same goals with the revised prompt


@workload(SCALE.workload, check=read_scale)
async def scale(ctx: Context, spec: Any) -> Any:
    """Play all battles, propose a better prompt, and try it if that is wanted."""
    wanted = await in_schema_thread(read_scale, spec)  # as a battle does
    require_limits(wanted, ctx.limits)
    planned = plan_battles(wanted)
    played = await _play_all(ctx, planned, wanted.at_once)
    revision = await _revise(ctx, wanted, planned, played)
    again = plan_revised(wanted, revision.prompt) if wanted.try_revised and revision and revision.prompt else ()
    revised = await _play_all(ctx, again, wanted.at_once)
    return typed.to_builtins(ScaleOutcome(battles=played, revision=revision, revised=revised))


async def _play_all(ctx: Context, planned: Sequence[PlannedBattle], concurrency: int) -> tuple[PlayedBattle, ...]:
    async def play(_: int, one: PlannedBattle) -> PlayedBattle:
        return await _play(ctx, one)

    return tuple([one async for one in ctx.map(play, planned, limit=concurrency)])


async def _play(ctx: Context, one: PlannedBattle) -> PlayedBattle:
    """Play one battle; one that does not complete is a result too, and is not played again on resume.

    One that was stopped by what stops the whole test, its budget or a refused key, is no result: it is played again.
    """

    async def work() -> Any:
        try:
            spec = stored(one.spec)
            result: Any = await ctx.child(one.key, WORKLOAD, spec, timeout=one.spec.seconds)
        except ChildFailed as error:
            return {"run": error.run, "ending": "", "closing": []}
        unjudged = result.get("unjudged", "")  # of a battle that an older version played it is not known
        found = {"run": result["conversation"], "ending": result["ending"], "closing": result["closing"]}
        return found | {"unjudged": unjudged}

    found = await ctx.step(f"{one.key}{PLAYED}", work)
    told = {"number": one.number, "conversation": found["run"], "ending": found["ending"]}
    await ctx.emit(f"{one.key}/told", PLAYED_EVENT, told)
    return typed.convert({"number": one.number, "key": one.key, **found}, PlayedBattle)


async def _revise(
    ctx: Context, spec: ScaleSpec, planned: Sequence[PlannedBattle], played: Sequence[PlayedBattle]
) -> PromptRevision | None:
    """Ask for a better prompt, if somebody is there to be asked; without money for it there is none."""
    if not spec.reviser:
        return None
    try:
        question = revision_question(spec, planned, played)
        answer = await ask_structured(ctx, spec.reviser, question, "revision", optional=True)
    except BudgetExhausted as error:
        return PromptRevision(agent=spec.reviser, flaw=error.message)
    return answer.value or PromptRevision(agent=spec.reviser, flaw=answer.flaw)

"""Cases written by a model: asked for in rounds until there are enough, validated, and none nearly twice.

What a model writes is data. It is never run or expanded, and names no file, command or agent.
"""

from math import ceil
from typing import Annotated, Any

import msgspec

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput, CallFailed, RetriesExhausted, TryLater, WireError
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.workloads.generate_desk import A_ROUND, Desk, Known
from muster.workloads.generate_proof import spoken, the_suite
from muster.workloads.generate_question import question_for

MOST_CASES = 200
_FRUITLESS = 2  # rounds without a single case, after which nothing more is to be hoped for
_SPARE = 3  # rounds for what is rejected, besides twice those that are needed when all is taken
_KEPT = 100  # reasons that are kept


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be written, and by whom."""

    agent: str
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_CASES)]
    skill: str = ""
    description: str = ""
    extend: str = ""  # the folder or file of a suite, instead of the two before


@workload("generate")
async def generate(ctx: Context, spec: Any) -> Json:
    """Have cases written; gives those that were taken, and why others were not."""
    wanted = _read(spec)
    known = msgspec.convert(await ctx.step("known", lambda: msgspec.to_builtins(_look(wanted))), Known)
    desk = Desk(known, wanted.description)
    failure, number, fruitless = "", 0, 0
    most = _SPARE + 2 * ceil(wanted.count / A_ROUND)
    while desk.missing(wanted.count) and number < most and fruitless < _FRUITLESS and not failure:
        number += 1
        request = question_for(desk.subject(), min(A_ROUND, desk.missing(wanted.count)), desk.reasons)
        taken = 0
        try:
            taken = desk.take(await ctx.call(wanted.agent, request, key=f"round/{number}"), wanted.count)
        except (CallFailed, TryLater) as error:
            failure = _failure(error, desk)
        fruitless = 0 if taken else fruitless + 1
    return {
        "skill": known.skill,
        "asked": wanted.count,
        "cases": desk.cases,
        "rounds": number,
        "rejected": dict(desk.rejected),
        "reasons": desk.all_reasons[:_KEPT],
        "failure": failure,
    }


def _read(spec: Any) -> Spec:
    try:
        found = msgspec.convert(spec, Spec)
    except msgspec.ValidationError as error:
        raise BadArgument(f"this is no spec for generating cases: {error}") from None
    if bool(found.extend) == bool(found.skill):
        raise BadArgument("cases are generated either for a new skill or to extend a suite")
    return found


def _look(spec: Spec) -> Known:
    """See what is there already."""
    if not spec.extend:
        return Known(skill=spec.skill)
    suite = the_suite(spec.extend)
    cases = tuple((case.id, case.description, spoken(case)) for case in suite.cases())
    return Known(skill=suite.name, prompt=suite.prompt or "", cases=cases)


def _failure(error: WireError, desk: Desk) -> str:
    """Say why there is no use in going on; an answer of a program in another shape is only rejected.

    It is told as the journal has it, so that a replay says the same.
    """
    cause = error.last if isinstance(error, RetriesExhausted) else error
    record = cause.record()
    message = str(record.get("message", "the call failed"))
    if record.get("code") != BadOutput.code:
        return message
    desk.spoil(message)
    return ""

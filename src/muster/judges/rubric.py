"""The judge with a rubric: asked in samples, each repaired once. One that fails is a value, and nothing is raised.

Here is only what asks; what the replies come to is told in `retelling`, now and whenever they are read again.
"""

from muster.domain.call import Request
from muster.domain.case import DEFAULT_THRESHOLD, Case
from muster.domain.errors import BadArgument
from muster.domain.verdict import Judgement, Observation
from muster.engine.context import Context
from muster.judges.failures import FAILED_CALL, cause_of
from muster.judges.question import Question, pose, pose_again
from muster.judges.retelling import Calls, Heard, flaw_of, keys_of, missing, retell_judge


async def judge(
    ctx: Context,
    case: Case,
    observation: Observation,
    *,
    judge: str,
    samples: int,
    key: str,
    dispatch: str | None = None,
    threshold: float = DEFAULT_THRESHOLD,
) -> Judgement:
    """Have an answer scored by a judge, in some samples at once; what stops the run passes through.

    Samples agree when they are on the same side of the case's threshold, or of the given one where it names none.
    """
    if samples < 1:
        raise BadArgument(f"a judge is asked at least once, not {samples} times")
    heard: Calls = {}
    if not missing(case, observation):
        question = pose(case, observation)
        asked = [_sample(ctx, question, judge, one, dispatch) for one in keys_of(key, judge, samples)]
        for sample in await ctx.gather(*asked):
            heard = {**heard, **sample}
    return retell_judge(case, observation, heard, judge=judge, samples=samples, key=key, threshold=threshold)


async def _sample(ctx: Context, question: Question, judge: str, key: str, dispatch: str | None) -> Calls:
    """Ask once, and once more for a repair when the reply has a flaw."""
    first = await _hear(ctx, judge, question.request, key, dispatch)
    flaw = flaw_of(first, question)
    if not flaw:
        return {key: first}
    repair = f"{key}/repair"
    again = pose_again(question, "" if first.reply is None else first.reply.text, flaw)
    return {key: first, repair: await _hear(ctx, judge, again, repair, dispatch)}


async def _hear(ctx: Context, judge: str, request: Request, key: str, dispatch: str | None) -> Heard:
    try:
        return Heard(reply=await ctx.call(judge, request, key=key, dispatch=dispatch))
    except FAILED_CALL as error:
        return Heard(error=cause_of(error).record())

"""The judge with a rubric: asked in samples, each repaired once. One that fails is a value, and nothing is raised."""

from collections.abc import Sequence

from muster.domain.call import Reply, Request
from muster.domain.case import DEFAULT_THRESHOLD, Case
from muster.domain.errors import BadArgument, BadOutput, WireError
from muster.domain.money import NOTHING, Microdollars
from muster.domain.verdict import Judgement, Observation
from muster.engine.context import Context
from muster.judges.combining import Sample, combine
from muster.judges.failures import FAILED_CALL, code_of, words_of
from muster.judges.question import VERSION, Question, pose, pose_again, rubric_of
from muster.judges.reading import Reading, read


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
    missing = _missing(case, observation)
    if missing:
        return Judgement(by=judge, version=VERSION, samples=samples, failures=(missing,))
    question = pose(case, observation)
    asked = [
        _sample(ctx, question, judge, f"{key}/judge/{judge}/{number}", dispatch) for number in range(1, samples + 1)
    ]
    found = await ctx.gather(*asked)
    return combine(judge, question.rubric, found, threshold if case.threshold is None else case.threshold)


def _missing(case: Case, observation: Observation) -> str:
    """Say what keeps a judge from being asked at all."""
    if not rubric_of(case):
        return "the case has no rubric, no description and no judge_prompt: there is nothing to judge by"
    return "" if observation.answers else "there is no answer to judge"


async def _sample(ctx: Context, question: Question, judge: str, key: str, dispatch: str | None) -> Sample:
    """Ask once, and once more for a repair when the reply has a flaw."""
    first = await _ask(ctx, question, question.request, judge, key, dispatch)
    if isinstance(first, Sample):
        return first
    reply, reading = first
    if not reading.flaw:
        return _done(reading, [reply], (key,))
    repair = f"{key}/repair"
    keys = (key, repair)
    said = "" if reply is None else reply.text
    second = await _ask(ctx, question, pose_again(question, said, reading.flaw), judge, repair, dispatch)
    if isinstance(second, Sample):
        return Sample(failure=second.failure, cost=_cost([reply]), model=_model([reply]), keys=keys)
    return _done(second[1], [reply, second[0]], keys)


async def _ask(
    ctx: Context, question: Question, request: Request, judge: str, key: str, dispatch: str | None
) -> tuple[Reply | None, Reading] | Sample:
    """Give a reply with what it says; without a reply when it was in no shape, and a sample when the call failed."""
    try:
        reply = await ctx.call(judge, request, key=key, dispatch=dispatch)
    except FAILED_CALL as error:
        if code_of(error) == BadOutput.code:  # a program's answer: it can be repaired like any other
            return None, Reading(flaw=words_of(error))
        return Sample(failure=_unheard(judge, error), keys=(key,))
    return reply, read(reply, question)


def _done(reading: Reading, replies: Sequence[Reply | None], keys: tuple[str, ...]) -> Sample:
    return Sample(
        verdicts=reading.verdicts,
        failure="" if reading.verdicts else f"the judge's reply cannot be used, after a repair too: {reading.flaw}",
        model=_model(replies),
        cost=_cost(replies),
        keys=keys,
    )


def _unheard(judge: str, error: WireError) -> str:
    return f"the judge {judge} gave no reply: {words_of(error)}"


def _cost(replies: Sequence[Reply | None]) -> Microdollars:
    return Microdollars(sum((reply.cost for reply in replies if reply is not None), NOTHING))


def _model(replies: Sequence[Reply | None]) -> str:
    return next((reply.model for reply in reversed(replies) if reply is not None), "")

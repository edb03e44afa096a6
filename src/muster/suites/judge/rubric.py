"""The judge with a rubric: asked in samples, each repaired once. One that fails is a value, and nothing is raised.

Here is only what asks; what the replies come to is told in `retelling`, now and whenever they are read again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

from muster.domain.agent import Command
from muster.domain.call import Reply, Request
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput, RecordedFailure
from muster.domain.money import NOTHING, Microdollars
from muster.engine.context import Context
from muster.judging.base import FAILED_CALL, cause_of, code_of, words_of
from muster.suites.checks.opinions import weighted_mean
from muster.suites.judge.command import failed, read_answer
from muster.suites.judge.question import (
    VERSION,
    ItemVerdict,
    JudgeQuestion,
    JudgeReading,
    pose,
    pose_again,
    read,
    rubric_of,
)
from muster.suites.values.case import Case, RubricItem
from muster.suites.values.rules import CURRENT_RULES, DEFAULT_THRESHOLD, ScoringRules
from muster.suites.values.verdict import ItemScore, Judgement, Observation
from muster.text.scores import reaches

BY = "judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one sample came to: verdicts in the order of the rubric, or why there are none."""

    verdicts: tuple[ItemVerdict, ...] = ()
    failure: str = ""
    model: str = ""
    cost: Microdollars = NOTHING
    keys: tuple[str, ...] = ()


def combine(judge: str, rubric: tuple[RubricItem, ...], samples: Sequence[Sample], threshold: float) -> Judgement:
    """Return the judgement of all samples; it counts only when more than half of them are good."""
    good = [sample for sample in samples if sample.verdicts]
    enough = 2 * len(good) > len(samples)
    return Judgement(
        by=judge,
        version=VERSION,
        model=next((sample.model for sample in good or samples if sample.model), ""),
        items=items_of(rubric, good) if enough else (),
        samples=len(samples),
        failures=tuple(
            f"sample {number}: {sample.failure}" for number, sample in enumerate(samples, 1) if not sample.verdicts
        ),
        agreement=agreement_of(rubric, good, threshold) if enough else None,
        cost=Microdollars(sum(sample.cost for sample in samples)),
        keys=tuple(key for sample in samples for key in sample.keys),
    )


def items_of(rubric: tuple[RubricItem, ...], good: Sequence[Sample]) -> tuple[ItemScore, ...]:
    """Return what good samples come to, item by item."""
    return tuple(_item(item, [sample.verdicts[place] for sample in good]) for place, item in enumerate(rubric))


def _item(item: RubricItem, verdicts: Sequence[ItemVerdict]) -> ItemScore:
    mean = fsum(verdict.score for verdict in verdicts) / len(verdicts)
    nearest = min(verdicts, key=lambda verdict: abs(verdict.score - mean))
    return ItemScore(
        id=item.id,
        weight=item.weight,
        critical=item.critical,
        score=mean,
        by=BY,
        rationale=nearest.rationale,
        evidence=nearest.evidence,
        quoted=nearest.quoted,
        samples=tuple(verdict.score for verdict in verdicts),
    )


def agreement_of(
    rubric: tuple[RubricItem, ...], good: Sequence[Sample], threshold: float, *, critical: bool = False
) -> float | None:
    """Return the share of pairs of samples that agree on whether the answer passes."""
    passing = [passes(rubric, sample, threshold, critical=critical) for sample in good]
    pairs = [one == other for one, other in combinations(passing, 2)]
    return sum(pairs) / len(pairs) if pairs else None


def passes(rubric: tuple[RubricItem, ...], sample: Sample, threshold: float, *, critical: bool) -> bool:
    """Return whether an answer passes by one sample alone; where they count, every critical item must pass too."""
    items = items_of(rubric, [sample])
    needed = [weighted_mean(items), *(item.score for item in items if critical and item.critical)]
    return all(score is not None and reaches(score, threshold) for score in needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A call to a judge as it was recorded: with a reply, or with the failure that took its place."""

    reply: Reply | None = None
    error: Mapping[str, Json] | None = None


Calls = Mapping[str, Heard]  # by key

NOT_RECORDED = Heard(error={"code": "not_recorded", "message": "its call is not recorded"})


def retell_judge(
    case: Case,
    observation: Observation,
    calls: Calls,
    *,
    judge: str | None,
    samples: int,
    key: str,
    threshold: float,
) -> Judgement:
    """Return the judgement that the recorded replies of a judge come to, as if it had been asked just now."""
    if judge is None:
        return Judgement(by="", failures=("this case wants a judge, and none was named",))
    if why := missing(case, observation):
        return Judgement(by=judge, version=VERSION, samples=samples, failures=(why,))
    question = pose(case, observation)
    told = [_sample(question, judge, one, calls) for one in keys_of(key, judge, samples)]
    return combine(judge, question.rubric, told, threshold if case.threshold is None else case.threshold)


def retell_command(case: Case, calls: Calls, *, key: str, rules: ScoringRules = CURRENT_RULES) -> Judgement:
    """Return the judgement that the recorded answer of a case's command comes to."""
    if not case.process:
        return failed("", "the case names no command: give it process_cmd")
    name, place = Command(argv=case.process).name, f"{key}/process"
    heard = calls.get(place, NOT_RECORDED)
    if heard.reply is None:
        return failed(name, f"the command gave no verdict: {words_of(_failure(heard))}", place)
    return read_answer(case, name, heard.reply, place, rules)


def keys_of(key: str, judge: str, samples: int) -> list[str]:
    """Name the first call of every sample."""
    return [f"{key}/judge/{judge}/{number}" for number in range(1, samples + 1)]


def flaw_of(heard: Heard, question: JudgeQuestion) -> str:
    """Return what is to be repaired in a reply; nothing when it is good, or when there is none."""
    return "" if _is_lost(heard) else _reading(heard, question).flaw


def missing(case: Case, observation: Observation) -> str:
    """Return what keeps a judge from being asked at all."""
    if not rubric_of(case):
        return "the case has no rubric, no description and no judge_prompt: there is nothing to judge by"
    return "" if observation.answers else "there is no answer to judge"


def _sample(question: JudgeQuestion, judge: str, key: str, calls: Calls) -> Sample:
    """Return one sample from its recorded calls: its first reply, and the repair when that one has a flaw."""
    replies: list[Reply | None] = []
    keys: tuple[str, ...] = ()
    reading = JudgeReading()
    for place in (key, f"{key}/repair"):
        heard, keys = calls.get(place, NOT_RECORDED), (*keys, place)
        if _is_lost(heard):
            return _told(replies, keys, failure=f"the judge {judge} gave no reply: {words_of(_failure(heard))}")
        replies.append(heard.reply)
        reading = _reading(heard, question)
        if not reading.flaw:
            break
    failure = "" if reading.verdicts else f"the judge's reply cannot be used, after a repair too: {reading.flaw}"
    return _told(replies, keys, reading, failure)


def _told(
    replies: Sequence[Reply | None], keys: tuple[str, ...], reading: JudgeReading | None = None, failure: str = ""
) -> Sample:
    given = [reply for reply in replies if reply is not None]
    return Sample(
        verdicts=() if reading is None else reading.verdicts,
        failure=failure,
        model=given[-1].model if given else "",
        cost=Microdollars(sum((reply.cost for reply in given), NOTHING)),
        keys=keys,
    )


def _is_lost(heard: Heard) -> bool:
    """Return whether a call brought nothing; an answer in no shape is a reply that can be repaired like any other."""
    return heard.reply is None and code_of(_failure(heard)) != BadOutput.code


def _reading(heard: Heard, question: JudgeQuestion) -> JudgeReading:
    return JudgeReading(flaw=words_of(_failure(heard))) if heard.reply is None else read(heard.reply, question)


def _failure(heard: Heard) -> RecordedFailure:
    return RecordedFailure((heard.error or NOT_RECORDED.error) or {})


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
        raise BadArgument(f"the number of judge samples must be at least 1, not {samples}")
    heard: Calls = {}
    if not missing(case, observation):
        question = pose(case, observation)
        asked = [_ask_sample(ctx, question, judge, one, dispatch) for one in keys_of(key, judge, samples)]
        for sample in await ctx.gather(*asked):
            heard = {**heard, **sample}
    return retell_judge(case, observation, heard, judge=judge, samples=samples, key=key, threshold=threshold)


async def _ask_sample(ctx: Context, question: JudgeQuestion, judge: str, key: str, dispatch: str | None) -> Calls:
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

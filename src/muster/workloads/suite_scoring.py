"""What one unit of a suite comes to: asked, observed, judged, scored."""

from collections.abc import Awaitable, Mapping

from muster.checks.evaluators import evaluators_of
from muster.checks.scoring import not_asked, score, skipped
from muster.domain.case import Evaluator
from muster.domain.errors import ReplayMiss
from muster.domain.suite import MENDABLE
from muster.domain.verdict import CaseResult, Judgement, Observation
from muster.engine.context import Context
from muster.formats.suite_spec import SuiteSpec
from muster.judges.command import ask_command
from muster.judges.rubric import judge
from muster.workloads.suite_talk import talk
from muster.workloads.suite_units import Unit

RULES = (Evaluator.RULES,)  # nobody needs to be asked


async def examine(ctx: Context, unit: Unit, spec: SuiteSpec, answers: Mapping[str, str] | None) -> CaseResult:
    """Find out how a unit ends; what is known for good is not done again."""
    if unit.known is not None and unit.known.status not in MENDABLE:
        return unit.known
    if unit.case.skip:
        return skipped(unit.case, unit.subject.label, unit.epoch)
    if unit.case.flaw:
        return not_asked(unit.case, unit.subject.label, unit.epoch)
    if answers is None:
        observation = await talk(ctx, unit, spec)
    else:
        observation = recorded(unit, answers)
    evaluators = evaluators_of(unit.case, spec.evaluator)
    heard = {} if evaluators == RULES else await _judge(ctx, unit, spec, observation, evaluators)
    return score(
        unit.case,
        observation,
        subject=unit.subject.label,
        epoch=unit.epoch,
        evaluators=evaluators,
        default_threshold=spec.threshold,
        judgements=heard,
    )


def recorded(unit: Unit, answers: Mapping[str, str]) -> Observation:
    """Give what was recorded for a case as if it had been said now."""
    text = answers.get(unit.case.id)
    if text is None:
        return Observation(error={"code": "not_recorded", "message": "there is no recorded answer to this case"})
    return Observation(answers=(text,))


async def _judge(
    ctx: Context, unit: Unit, spec: SuiteSpec, observation: Observation, evaluators: tuple[Evaluator, ...]
) -> dict[Evaluator, Judgement]:
    """Let judges and commands speak about an answer, when there is one."""
    if observation.error is not None:
        return {}
    said = {}
    if Evaluator.PROCESS in evaluators:
        asked = ask_command(ctx, unit.case, observation, key=unit.key)
        said[Evaluator.PROCESS] = await _heard(asked, "the command")
    if Evaluator.JUDGE in evaluators:
        said[Evaluator.JUDGE] = await _heard(_ask_judge(ctx, unit, spec, observation), spec.judge or "")
    return said


async def _heard(judgement: Awaitable[Judgement], by: str) -> Judgement:
    """Wait for a judgement; one that a replay does not know is a failed one, and the other cases go on."""
    try:
        return await judgement
    except ReplayMiss as error:
        return Judgement(by=by, failures=(error.message,))


async def _ask_judge(ctx: Context, unit: Unit, spec: SuiteSpec, observation: Observation) -> Judgement:
    if spec.judge is None:
        return Judgement(by="", failures=("this case wants a judge, and none was named",))
    return await judge(
        ctx,
        unit.case,
        observation,
        judge=spec.judge,
        samples=spec.judge_samples,
        key=unit.key,
        dispatch=spec.judge_dispatch,
        threshold=spec.threshold,
    )

"""How a case ended: what was observed, checked and judged, brought to one status and one score.

Checks of output and tools always count, whoever decides. Several evaluators must all be content, and the lowest score
counts. What nobody could judge is unjudged: no pass, and no 0.
"""

from collections.abc import Mapping, Sequence

from muster.domain.call import Quality
from muster.domain.case import Status
from muster.domain.errors import BadArgument
from muster.domain.money import NOTHING, Microdollars
from muster.suites.checks.opinions import EvaluatorOpinion, by_golden, by_judge, by_process, by_rules, check_rubric
from muster.suites.checks.output import MAX_INLINE_LENGTH, check_output, is_quick
from muster.suites.checks.tool_calls import check_tools
from muster.suites.values.case import OF_JSON, Case, CheckKind, Evaluator
from muster.suites.values.rules import CURRENT_RULES, ScoringRules
from muster.suites.values.verdict import (
    CaseResult,
    CheckResult,
    ItemScore,
    Judgement,
    Observation,
)
from muster.text.scores import reaches
from muster.text.words import choice_error

QUALITY = "quality"
_NAMED = frozenset(map(str, CheckKind)) - frozenset(map(str, OF_JSON))

_QUALITY_ADVICE = {
    Quality.CUT: "the answer was cut at max_tokens; raise it, or accept cut answers in the case",
    Quality.REFUSED: "the agent refused to answer; if that is right, accept refused answers in the case",
    Quality.EMPTY: "the answer is empty; if that is right, accept empty answers in the case",
    Quality.UNFINISHED: (
        "the answer may be incomplete (its finish_reason is missing, an error, unknown, or "
        "names tools that were not called); "
        "if the server never sends one, accept unfinished answers in the case"
    ),
}

Ruling = tuple[Status, float | None, str]


def score(
    case: Case,
    observation: Observation,
    *,
    subject: str,
    epoch: int,
    evaluators: tuple[Evaluator, ...],
    default_threshold: float,
    judgements: Mapping[Evaluator, Judgement],
    rules: ScoringRules = CURRENT_RULES,
) -> CaseResult:
    """Bring one observation of a case to its result."""
    if case.skip:
        return skipped(case, subject, epoch)
    if case.flaw:
        return not_asked(case, subject, epoch)
    threshold = default_threshold if case.threshold is None else case.threshold
    if observation.timed_out or observation.error is not None:
        return _result(case, observation, subject, epoch, evaluators, _no_answer(case, observation), threshold)
    checks = _checks(case, observation, rules)
    items, broken = check_rubric(case, observation, rules) if case.rubric else ((), "")
    opinions = [_opinion(one, case, observation, judgements, items, checks, threshold) for one in evaluators]
    every = opinions[0].items if len(opinions) == 1 else _merged(opinions)
    ruling = _ruling(checks, broken, opinions, every, threshold)
    likeness = None
    if case.golden is not None and Evaluator.GOLDEN in evaluators:
        likeness = opinions[evaluators.index(Evaluator.GOLDEN)].score
        threshold = case.golden.threshold if len(evaluators) == 1 else threshold
    heard = tuple(judgements[one] for one in evaluators if one in judgements) if judgements else ()
    return _result(case, observation, subject, epoch, evaluators, ruling, threshold, checks, every, heard, likeness)


def all_quick(case: Case, observation: Observation) -> bool:
    """Return whether every check of a case takes so little that it is done at once, and not in another thread."""
    golden = case.golden is None or len(observation.text) <= MAX_INLINE_LENGTH
    checks = (*case.output, *(item.auto_check for item in case.rubric if item.auto_check is not None))
    return golden and all(is_quick(check, observation) for check in checks)


def skipped(case: Case, subject: str, epoch: int) -> CaseResult:
    """Return the result of a case that is not run."""
    return CaseResult(case=case.id, subject=subject, epoch=epoch, status=Status.SKIPPED, why=case.skip or "skipped")


def not_asked(case: Case, subject: str, epoch: int) -> CaseResult:
    """Return the result of a case that is damaged: an error, without a call."""
    why = f"the case was not run: {case.flaw}"
    return CaseResult(case=case.id, subject=subject, epoch=epoch, status=Status.ERROR, why=why)


def _no_answer(case: Case, observation: Observation) -> Ruling:
    if observation.timed_out:
        limit = f" within {case.timeout:g} s" if case.timeout is not None else " in time"
        return Status.TIMED_OUT, None, f"the agent did not finish{limit}; raise the timeout, or make the task smaller"
    message = str((observation.error or {}).get("message") or "no reason recorded")
    return Status.ERROR, None, f"the agent failed: {message}"


def _checks(case: Case, observation: Observation, rules: ScoringRules) -> tuple[CheckResult, ...]:
    """Do everything that counts whoever decides."""
    found = [check_output(check, observation, rules) for check in case.output]
    if case.tool_sequence and (tools := check_tools(case.tool_sequence, observation.tool_calls)):
        found.append(tools)
    quality = observation.quality
    if quality is not Quality.GOOD and quality not in case.accepts:
        advice = _QUALITY_ADVICE[quality]
        found.insert(0, CheckResult(name=QUALITY, passed=False, expected=Quality.GOOD.value, why=advice))
    return tuple(found)


def _opinion(
    evaluator: Evaluator,
    case: Case,
    observation: Observation,
    judgements: Mapping[Evaluator, Judgement],
    items: tuple[ItemScore, ...],
    checks: tuple[CheckResult, ...],
    threshold: float,
) -> EvaluatorOpinion:
    if evaluator is Evaluator.RULES:
        return by_rules(items, checks, threshold)
    if evaluator is Evaluator.GOLDEN:
        return by_golden(case, observation, items)
    if evaluator is Evaluator.PROCESS:
        return by_process(case, judgements.get(evaluator), items, threshold)
    return by_judge(case, judgements.get(evaluator), items, threshold)


def _merged(opinions: Sequence[EvaluatorOpinion]) -> tuple[ItemScore, ...]:
    """Return every score once; an item without any only when it was not scored."""
    every = {(item.id, item.by): item for opinion in opinions for item in opinion.items}
    scored = {item.id for item in every.values() if item.score is not None}
    return tuple(item for item in every.values() if item.score is not None or item.id not in scored)


def _ruling(
    checks: tuple[CheckResult, ...],
    broken: str,
    opinions: Sequence[EvaluatorOpinion],
    items: tuple[ItemScore, ...],
    threshold: float,
) -> Ruling:
    """Decide, in this order: a broken check, a failed one, a bad opinion, a missing one, and then it passed."""
    for check in checks:
        if check.broken:
            return Status.ERROR, None, f"{check.name} could not be run: {check.why}"
    if broken:
        return Status.ERROR, None, broken
    for check in checks:
        if not check.passed:
            return Status.FAILED, 0.0, check.why if check.name == QUALITY else f"{_named(check)}: {check.why}"
    lowest = min([opinion.score for opinion in opinions if opinion.score is not None], default=None)
    if why := _failure(opinions, items, threshold):
        return Status.FAILED, lowest, why
    if why := _gap(opinions, items):
        return Status.UNJUDGED, None, why
    return Status.PASSED, lowest, ""


def _named(check: CheckResult) -> str:
    """Name a check by what it looked for, where that is short: one case may have several of a kind."""
    return f'{check.name} "{check.expected}"' if check.name in _NAMED and check.expected else check.name


def _failure(opinions: Sequence[EvaluatorOpinion], items: tuple[ItemScore, ...], threshold: float) -> str:
    for opinion in opinions:
        if opinion.passed is False:
            return opinion.why
    for item in items:
        if item.critical and item.score is not None and not reaches(item.score, threshold):
            return f"the critical item {item.id} scored {item.score:.2f}, below the threshold {threshold:g}"
    return ""


def _gap(opinions: Sequence[EvaluatorOpinion], items: tuple[ItemScore, ...]) -> str:
    for opinion in opinions:
        if opinion.passed is None:
            return opinion.why
    for item in items:
        if item.critical and item.score is None:
            return f"the critical item {item.id} was not judged; use a judge, or add an auto_check"
    return "" if opinions else "no evaluator was asked"


def _result(
    case: Case,
    observation: Observation,
    subject: str,
    epoch: int,
    evaluators: tuple[Evaluator, ...],
    ruling: Ruling,
    threshold: float,
    checks: tuple[CheckResult, ...] = (),
    items: tuple[ItemScore, ...] = (),
    judgements: tuple[Judgement, ...] = (),
    golden: float | None = None,
) -> CaseResult:
    status, points, why = ruling
    return CaseResult(
        case=case.id,
        subject=subject,
        epoch=epoch,
        status=status,
        score=points,
        threshold=threshold,
        why=why,
        evaluators=evaluators,
        checks=checks,
        items=items,
        judgements=judgements,
        golden=golden,
        quality=observation.quality,
        seconds=observation.seconds,
        cost=observation.cost,
        judge_cost=Microdollars(sum([one.cost for one in judgements])) if judgements else NOTHING,
        input_tokens=observation.input_tokens,
        output_tokens=observation.output_tokens,
        thinking_tokens=observation.thinking_tokens,
        model=observation.model,
        tools=tuple([call.name for call in observation.tool_calls]) if observation.tool_calls else (),
        keys=observation.keys,
        error=observation.error,
    )


ALL = "all"


def evaluators_of(case: Case, override: str | None = None) -> tuple[Evaluator, ...]:
    """Return the evaluators of a case: the one that was named, all that it has material for, or else its own."""
    if override is None:
        return (case.evaluator or Evaluator.RULES,)
    if override == ALL:
        return tuple(one for one in Evaluator if has_material(case, one)) or (Evaluator.RULES,)
    try:
        return (Evaluator(override),)
    except ValueError:
        raise BadArgument(choice_error((*Evaluator, ALL), override), argument="evaluator") from None


def has_material(case: Case, evaluator: Evaluator) -> bool:
    """Return whether a case holds what an evaluator needs; its own evaluator always counts."""
    if evaluator is case.evaluator:
        return True
    if evaluator is Evaluator.RULES:
        return bool(case.output or case.tool_sequence or any(item.auto_check for item in case.rubric))
    if evaluator is Evaluator.GOLDEN:
        return case.golden is not None
    return bool(case.process if evaluator is Evaluator.PROCESS else case.rubric)

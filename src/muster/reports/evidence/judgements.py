"""Whether the judgements of an archive are what the replies of its judges and commands say."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from muster.domain.case import Case, Evaluator
from muster.domain.suite import case_key
from muster.domain.verdict import CaseResult, ItemScore, Judgement, Observation
from muster.formats.suite_spec import SuiteSpec
from muster.judges.retelling import Calls, retell_command, retell_judge

_SHOWN = 80  # characters of a value


def retold(
    case: Case, seen: Observation, result: CaseResult, spec: SuiteSpec, evaluators: Sequence[Evaluator], calls: Calls
) -> dict[Evaluator, Judgement]:
    """Give what judges and commands said about an answer, from their replies; without an answer nobody was asked."""
    if case.skip or case.flaw or seen.error is not None:
        return {}
    key = case_key(result.case, result.subject, result.epoch)
    said = {}
    if Evaluator.PROCESS in evaluators:
        said[Evaluator.PROCESS] = retell_command(case, calls, key=key)
    if Evaluator.JUDGE in evaluators:
        said[Evaluator.JUDGE] = retell_judge(
            case,
            seen,
            calls,
            judge=spec.judge,
            samples=spec.judge_samples,
            key=key,
            threshold=spec.threshold,
        )
    return said


def unsaid(was: Sequence[Judgement], now: Sequence[Judgement]) -> str:
    """Say which judgement the replies do not bear out; empty: they bear out all of them."""
    if len(was) != len(now):
        return f"{len(was)} judgements are recorded, and the replies are those of {len(now)}"
    for recorded, told in zip(was, now, strict=True):
        if found := _unlike(recorded, told):
            where, left, right = found
            by = told.by or recorded.by or "nobody"
            return f"the replies of {by} do not bear out its judgement:{where} is {left}, and they say {right}"
    return ""


def _unlike(was: Judgement, now: Judgement) -> tuple[str, str, str] | None:
    """Find what differs; failures first, since all else follows from them.

    The version says how a judge was asked: its replies can be read also when judges are asked otherwise by now.
    """
    return _first(was.failures, now.failures, " failures") or _first(replace(was, version=now.version), now, "")


def _first(was: Any, now: Any, where: str) -> tuple[str, str, str] | None:
    """Find the first place where two judgements differ."""
    if was == now:
        return None
    if is_dataclass(was) and type(was) is type(now):
        inner = ((f"{where} {field.name}", getattr(was, field.name), getattr(now, field.name)) for field in fields(was))
    elif isinstance(was, tuple) and len(was) == len(now):
        inner = ((f"{where} {place}", *pair) for place, pair in enumerate(zip(was, now, strict=True), 1))
    else:
        return where, _short(was), _short(now)
    return next((found for name, left, right in inner if (found := _first(left, right, name))), None)


def _short(value: object) -> str:
    text = "; ".join(map(_name, value)) if isinstance(value, tuple) else str(value)
    return (text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…") or "nothing"


def _name(value: object) -> str:
    return f"{value.id} {value.score}" if isinstance(value, ItemScore) else str(value)

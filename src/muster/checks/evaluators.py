"""Who decides about a case."""

from muster.domain.case import Case, Evaluator
from muster.domain.errors import BadArgument

ALL = "all"


def evaluators_of(case: Case, override: str | None = None) -> tuple[Evaluator, ...]:
    """Give the evaluators of a case: the one that was named, all that it has material for, or else its own."""
    if override is None:
        return (case.evaluator or Evaluator.RULES,)
    if override == ALL:
        return tuple(one for one in Evaluator if has_material(case, one)) or (Evaluator.RULES,)
    try:
        return (Evaluator(override),)
    except ValueError:
        known = ", ".join((*Evaluator, ALL))
        raise BadArgument(f"there is no evaluator {override!r}", suggestions=(f"one of: {known}",)) from None


def has_material(case: Case, evaluator: Evaluator) -> bool:
    """Whether a case holds what an evaluator needs; its own evaluator always counts."""
    if evaluator is case.evaluator:
        return True
    if evaluator is Evaluator.RULES:
        return bool(case.output or case.tool_sequence or any(item.auto_check for item in case.rubric))
    if evaluator is Evaluator.GOLDEN:
        return case.golden is not None
    return bool(case.process if evaluator is Evaluator.PROCESS else case.rubric)

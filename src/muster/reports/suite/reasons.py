"""Why a case did not pass, in lines for a person: checks that do not hold, what judges said, what broke."""

from collections.abc import Iterator

from muster.checks.thresholds import reaches
from muster.domain.verdict import CaseResult, CheckResult, ItemScore, Status
from muster.reports.words import one_line

LONGEST_LINE = 600


def reasons(result: CaseResult) -> tuple[str, ...]:
    """Give the reasons of one epoch, one on each line."""
    return tuple(one_line(line, LONGEST_LINE) for line in _reasons(result))


def _reasons(result: CaseResult) -> Iterator[str]:
    if result.why:
        yield result.why
    if result.error is not None and (message := str(result.error.get("message", ""))) not in result.why:
        yield f"error: {message}"
    for check in result.checks:
        if not check.passed and (said := _check(check, told=bool(check.why) and check.why in result.why)):
            yield said
    for item in result.items:
        if item.score is None or not reaches(item.score, result.threshold):
            yield _item(item)
    for judgement in result.judgements:
        for failure in judgement.failures:
            yield f"judge {judgement.by or 'unnamed'}: {failure}"


def _check(check: CheckResult, *, told: bool) -> str:
    """Say what a check found, or what it looked for when the rest is told already."""
    if told:
        return f"it looks for: {check.expected}" if check.expected else ""
    word = "could not be done" if check.broken else "does not hold"
    expected = f" (it looks for: {check.expected})" if check.expected else ""
    return f"check {check.name} {word}{expected}" + (f": {check.why}" if check.why else "")


def _item(item: ItemScore) -> str:
    found = "nobody judged it" if item.score is None else f"{item.score:.2f}"
    critical = ", critical" if item.critical else ""
    said = f" – {item.rationale}" if item.rationale else ""
    return f"rubric {item.id} (weight {item.weight:g}{critical}): {found}{said}"


def kind(result: CaseResult | None, status: Status) -> str:
    """Name the kind of a failure, for tools that sort by it."""
    if status is not Status.FAILED or result is None:
        return str(status).replace("_", "-")
    broken = next((check.name for check in result.checks if not check.passed), None)
    if broken is not None:
        return f"check-{broken.replace('_', '-')}"
    return "score"

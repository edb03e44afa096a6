"""Values that the tests of this room begin with."""

from typing import Any

from muster.domain.call import ToolCall
from muster.domain.case import Status
from muster.suites.checks.output import check_output
from muster.suites.checks.scoring import score
from muster.suites.values.case import Case, CheckKind, Evaluator, OutputCheck, RubricItem, ToolExpectation, ToolOrder
from muster.suites.values.verdict import (
    CaseResult,
    CheckResult,
    Judgement,
    Observation,
)


def case(**given: Any) -> Case:
    """Make a case with nothing in it but what is given."""
    fields: dict[str, Any] = {"id": "skill/one", "suite": "skill", "file": "cases.yaml", "line": 3, "messages": ()}
    return Case(**fields | given)


def output(kind: str, value: str = "", **given: Any) -> OutputCheck:
    return OutputCheck(kind=CheckKind(kind), value=value, **given)


def said(*answers: str, **given: Any) -> Observation:
    return Observation(answers=answers, **given)


def check(kind: str, value: str, answer: str, **given: Any) -> CheckResult:
    """Do one output check on one answer."""
    return check_output(output(kind, value, **given), said(answer))


def item(id_: str, weight: float = 1.0, contains: str | None = None, critical: bool = False) -> RubricItem:
    auto = None if contains is None else output("contains", contains)
    return RubricItem(id=id_, description=id_, weight=weight, critical=critical, auto_check=auto)


def expect(tool: str, order: str = "subsequence", **arguments: Any) -> ToolExpectation:
    return ToolExpectation(tool=tool, args_match=arguments, order=ToolOrder(order))


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id="1", name=name, arguments=arguments)


def scored(
    tested: Case,
    observation: Observation,
    *evaluators: Evaluator,
    judgements: dict[Evaluator, Judgement] | None = None,
    threshold: float = 0.7,
) -> CaseResult:
    return score(
        tested,
        observation,
        subject="sim/echo",
        epoch=1,
        evaluators=evaluators or (Evaluator.RULES,),
        default_threshold=threshold,
        judgements=judgements or {},
    )


def result(name: str, status: Status = Status.PASSED, points: float | None = 1.0, **given: Any) -> CaseResult:
    fields: dict[str, Any] = {"case": name, "subject": "sim/echo", "epoch": 1, "status": status, "score": points}
    return CaseResult(**fields | given)

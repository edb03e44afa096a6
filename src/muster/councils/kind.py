"""Councils as a kind of work."""

from typing import TYPE_CHECKING, Any

from muster.domain.kind import KindReport, RunVerdict, Tone, WorkKind, passed_or_not

if TYPE_CHECKING:
    from muster.domain.run import Run


def _verdict(spec: Any, result: Any, run: "Run") -> RunVerdict:
    if not any(held["score"]["winner"] for held in result["result"]["rounds"]):
        return passed_or_not(ok=False, words="not decided")
    if result["result"]["stop"]["reason"] == "convinced":
        return passed_or_not(ok=True, words="convinced")
    return RunVerdict(ok=True, tone=Tone.PLAIN, words="decided without conviction")


COUNCIL = WorkKind(
    workload="deliberation",
    word="council",
    about="Let several agents propose answers and weigh each other's proposals until they are convinced.",
    module="muster.councils.workload",
    command="muster council",
    example="muster council QUESTION --agent A --agent B",
    order="muster.councils.order:CouncilOrder",
    subject=lambda spec: (spec.get("question"),),
    verdict=_verdict,
    report=KindReport(
        function="muster.councils.reports.formats:report_of_council", formats=("json", "markdown", "html")
    ),
)

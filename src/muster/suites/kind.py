"""Suite runs, and the generation of cases, as kinds of work."""

from typing import TYPE_CHECKING, Any

from muster.domain.kind import KindReport, RunVerdict, WorkKind, file_names, joined, passed_or_not

if TYPE_CHECKING:
    from muster.domain.run import Run


def _verdict(spec: Any, result: Any, run: "Run") -> RunVerdict:
    counts = {status: int(number) for status, number in result["counts"].items() if status != "skipped"}
    passed, cases = counts.get("passed", 0), sum(counts.values())
    if not cases:
        return passed_or_not(ok=False, words="no case was run")
    return passed_or_not(bool(result["ok"]) and not run.error, f"{passed:,} of {cases:,} passed", rate=passed / cases)


SUITE = WorkKind(
    workload="suite",
    word="suite",
    about="Put every case of a suite to every agent, and judge the answers.",
    order="muster.suites.order:SuiteOrder",
    module="muster.suites.workload",
    command="muster run",
    example="muster run PATH --agent A",
    subject=lambda spec: (joined(spec.get("agents")), file_names(spec.get("path"))),
    verdict=_verdict,
    report=KindReport(
        function="muster.suites.reports.formats:report_of_suite",
        formats=("json", "junit", "sarif", "markdown", "html"),
    ),
)
GENERATION = WorkKind(
    workload="generate",
    word="generate",
    words="generations",
    about="Have a model write the cases of a suite.",
    order="muster.suites.order:GenerationOrder",
    module="muster.suites.generate.workload",
    command="muster generate",
    subject=lambda spec: (spec.get("agent"), spec.get("skill") or file_names(spec.get("extend"))),
)

"""Verifications, and the changes that their findings propose, as kinds of work."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from muster.domain.kind import KindReport, RunVerdict, StoredSpec, WorkKind, part_of, passed_or_not
from muster.text.words import count

if TYPE_CHECKING:
    from muster.domain.run import Run


def _files(spec: StoredSpec) -> tuple[object, ...]:
    files = spec.get("files")
    if not isinstance(files, Sequence):
        return ()
    first = part_of(files, 0)
    return count(len(files), "file"), first if isinstance(first, str) else part_of(first, "path")


def _verdict(spec: Any, result: Any, run: "Run") -> RunVerdict:
    ok, findings = bool(result["passed"]), int(result["findings"])
    words = count(findings, "finding") if findings else "no findings" if ok else "not all was verified"
    return passed_or_not(ok, words, findings=findings)


def _repair_verdict(spec: Any, result: Any, run: "Run") -> RunVerdict:
    changed, left = len(result["changed"]), len(result["left"])
    words = f"{count(changed, 'file')} changed" + (f", {left:,} left" if left else "")
    return passed_or_not(bool(changed) and not left, words)


VERIFICATION = WorkKind(
    workload="waves",
    word="verification",
    about="Have checkers and agents look for flaws in files.",
    order="muster.verify.order:VerificationOrder",
    module="muster.verify.workload",
    command="muster verify",
    example="muster verify PATH",
    subject=_files,
    verdict=_verdict,
    report=KindReport(
        function="muster.verify.reports.formats:report_of_verification", formats=("markdown", "json", "sarif", "junit")
    ),
    trees=lambda run: (PurePath(str(part_of(run.spec, "root"))).name,),
)
REPAIR = WorkKind(  # without an order: what it changes is decided by the verification that asks for it
    workload="fix",
    word="fix",
    words="fixes",
    about="Make the changes that findings propose.",
    module="muster.verify.fix",
    command="muster verify --fix",
    subject=_files,
    verdict=_repair_verdict,
)

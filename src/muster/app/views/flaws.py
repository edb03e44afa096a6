"""What is wrong in files that people write."""

from collections.abc import Sequence

from muster.suites.format.suite import Examination
from muster.text.document_tree import Flaw
from muster.text.views import UNSET, UnsetType, View


class FlawView(View):
    """A flaw of a file."""

    file: str
    line: int | None
    case: str | None
    message: str
    column: int | UnsetType = UNSET
    code: str | UnsetType = UNSET


class ExaminationView(View):
    """What is wrong in a suite."""

    file: str
    name: str
    cases: int
    flaws: Sequence[FlawView]
    warnings: Sequence[FlawView]


def flaw_view(flaw: Flaw) -> FlawView:
    """Return a flaw of a file."""
    return FlawView(
        file=flaw.file,
        line=flaw.line,
        case=flaw.case or None,
        message=flaw.message,
        column=UNSET if flaw.column is None else flaw.column,
        code=flaw.code or UNSET,
    )


def examination_view(file: str, examination: Examination) -> ExaminationView:
    """Return what is wrong in a suite."""
    return ExaminationView(
        file=file,
        name=examination.name,
        cases=examination.cases,
        flaws=[flaw_view(flaw) for flaw in examination.flaws],
        warnings=[flaw_view(flaw) for flaw in examination.doubts],
    )

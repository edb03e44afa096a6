"""The formats in which runs can be reported, by kind: quick to load, since helps name them."""

from muster.app.kinds import KINDS
from muster.domain.kind import WorkKind

TERMINAL = "terminal"


def formats_of(kind: WorkKind) -> tuple[str, ...]:
    """Return the formats in which runs of a kind can be reported."""
    return (TERMINAL, *(() if kind.report is None else kind.report.formats))


ALL_FORMATS = tuple(dict.fromkeys(name for known in KINDS for name in formats_of(known.kind)))

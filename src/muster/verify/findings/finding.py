"""What was found in code: where, how bad, and what to do about it. A finding whose place does not exist is rejected."""

from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


RANKS = {severity: rank for rank, severity in enumerate(Severity)}  # 0 is the worst


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, at lines that exist."""

    file: str  # relative to the root of what is verified, with slashes
    line: int
    end_line: int
    severity: Severity
    finding: str
    fix: str = ""
    cwe: str = ""  # "CWE-89"
    confidence: float | None = None  # 0 to 1; None: nothing was said
    rule: str = ""  # of a checker: "E501", "arg-type", a test's name
    replacement: str | None = None  # the text that would stand in the lines instead


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A finding that cannot be: its file or its line was not shown, or does not exist."""

    finding: Finding
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingOrigin:
    """What one agent said of a finding that others found too."""

    agent: str
    severity: Severity
    line: int
    end_line: int
    finding: str
    rule: str = ""
    cwe: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """One finding each of some agents that say the same, as one; of differing severities the worst."""

    finding: Finding
    by: tuple[str, ...]  # names of who found it, in order
    origins: tuple[FindingOrigin, ...] = ()  # what each of them said; empty when only one did


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many findings there are; counted by us and taken from nobody."""

    critical: int = 0
    high: int = 0
    medium: int = 0
    low: int = 0
    rejected: int = 0

    @property
    def total(self) -> int:
        """All that were not rejected."""
        return self.critical + self.high + self.medium + self.low


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What came of one call to an agent about one chunk, or of one run of a checker. A failure is a value too."""

    findings: tuple[Finding, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    score: float | None = None  # 0 to 10
    parts: dict[str, float] = field(default_factory=dict)  # parts of the score by name
    coverage: float | None = None  # percent
    failure: str = ""  # why there is no report; then nothing else here counts
    code: str = ""  # of the failure: "unparsed", "expired", "timed_out", …
    repaired: bool = False
    lines: int = 0  # that were looked at; what coverage is weighed by
    model: str = ""
    seconds: float = 0.0
    cost: int = 0  # microdollars
    keys: tuple[str, ...] = ()  # of its calls in the journal

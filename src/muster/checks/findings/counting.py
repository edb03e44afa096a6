"""How many findings there are of each severity: counted by us, and taken from nobody."""

from collections import Counter
from collections.abc import Iterable

from muster.domain.finding import Counts, Finding, Severity


def count(findings: Iterable[Finding], rejected: int = 0) -> Counts:
    """Count findings."""
    counted = Counter(finding.severity for finding in findings)
    return Counts(
        critical=counted[Severity.CRITICAL],
        high=counted[Severity.HIGH],
        medium=counted[Severity.MEDIUM],
        low=counted[Severity.LOW],
        rejected=rejected,
    )


def add(one: Counts, other: Counts) -> Counts:
    """Add up two counts."""
    return Counts(
        critical=one.critical + other.critical,
        high=one.high + other.high,
        medium=one.medium + other.medium,
        low=one.low + other.low,
        rejected=one.rejected + other.rejected,
    )


def less(one: Counts, other: Counts) -> Counts:
    """Give what is left of a count when another is taken out of it; never less than nothing."""
    return Counts(
        critical=max(0, one.critical - other.critical),
        high=max(0, one.high - other.high),
        medium=max(0, one.medium - other.medium),
        low=max(0, one.low - other.low),
        rejected=max(0, one.rejected - other.rejected),
    )

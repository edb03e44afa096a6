"""Where a checker's finding is: below the root, in a file that is there, at a line that it has. Pure."""

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from muster.checks.findings.wording import LONGEST_PATH, bounded
from muster.domain.canonical import Json
from muster.domain.finding import Finding, Rejected
from muster.judges.findings.disk import MOST_PLACES

_LAST_LINE = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """How many lines files have: those that are verified, and those that were looked up by the path that was given."""

    root: str
    known: Mapping[str, int]
    looked: Mapping[str, Json]  # the path below the root and the number of lines, or None

    def of(self, path: str) -> tuple[str, int] | None:
        """Give a file's path below the root and its number of lines; None when there is no such file."""
        own = relative(path, self.root)
        if own in self.known:
            return own, self.known[own]
        found = self.looked.get(path)
        if not isinstance(found, Sequence):
            return None
        own, lines = str(found[0]), int(found[1])
        return own, self.known.get(own, lines)


def relative(path: str, root: str) -> str:
    """Give a path below a root as it is named there, as far as that can be known without a look at the disk."""
    below = posixpath.relpath(path, root) if path.startswith("/") else path
    return posixpath.normpath(below) if below else ""


def elsewhere(findings: Iterable[Finding], root: str, known: Mapping[str, int]) -> list[str]:
    """Name the files of findings that are not verified, so that somebody can look them up."""
    files = dict.fromkeys(finding.file for finding in findings)
    return sorted(path for path in files if path and relative(path, root) not in known)[:MOST_PLACES]


def locate(finding: Finding, lines: Lines) -> Finding | Rejected:
    """Give a finding at lines that exist, or say why it cannot be."""
    place = lines.of(finding.file) if finding.file else None
    if place is None:
        return _rejected(finding, "there is no such file below the root" if finding.file else "it names no file")
    path, count = place
    # Checkers say 0 for a whole file, 1 for an empty one, and count the end of a file as a line of its own.
    last = max(1, count)
    if not 0 <= finding.line <= last + 1:
        return _rejected(replace(finding, file=path), f"the file has {count} lines")
    line = min(max(1, finding.line), last)
    return replace(finding, file=path, line=line, end_line=min(max(line, finding.end_line), last))


def _rejected(finding: Finding, why: str) -> Rejected:
    """Keep what was said, as far as a journal can hold it."""
    line, end = (min(max(number, -1), _LAST_LINE) for number in (finding.line, finding.end_line))
    file = bounded(finding.file, LONGEST_PATH)
    return Rejected(finding=replace(finding, file=file, line=line, end_line=end), why=why)

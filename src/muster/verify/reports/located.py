"""Findings in the code they are about: the worst file first, page by page, each with the lines around it.

The code is what the run stored when it read its files, which is what agents were shown: secrets are taken out of it,
and a file that has changed since is shown as it was verified. Nothing is read from disk.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from muster.domain.errors import BadArgument
from muster.verify.findings.finding import RANKS, Finding, FindingOrigin, Severity
from muster.verify.reports.run import WavesRun
from muster.verify.reports.summary import VerifyReport

AROUND = 3  # lines that are shown before and after
MAX_LINES = 40  # of one excerpt
MAX_SHOWN_LINE = 400  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeExcerpt:
    """Some lines of a file as it was verified."""

    first: int  # number of the first line
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedFinding:
    """A finding with who found it, and the code that it is about."""

    finding: Finding
    by: tuple[str, ...]
    origins: tuple[FindingOrigin, ...] = ()  # what each of several said
    rejected: str = ""  # why it cannot be; empty: it counts
    code: CodeExcerpt | None = None  # None: the run has no such lines


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingPage:
    """Some findings in a row."""

    findings: tuple[LocatedFinding, ...]
    total: int  # on all pages
    next: str | None  # to ask for what follows; None: this is the last page


class _Place(NamedTuple):
    """Where a finding stands among all; files by the worst that was found in them."""

    rank: int
    file: str
    line: int
    nth: int  # of those at this line

    def __str__(self) -> str:
        return f"{self.rank}.{self.line}.{self.nth}.{self.file}"


_PLACE = re.compile(r"(?P<rank>\d{1,2})\.(?P<line>\d{1,9})\.(?P<nth>\d{1,9})\.(?P<file>.+)", re.DOTALL)


def page_of_findings(
    report: VerifyReport, *, severity: Severity | None, rejected: bool, after: str | None, limit: int
) -> FindingPage:
    """Return the findings after a place, still without code; raises BadArgument for a place that is none."""
    chosen = _rejected(report) if rejected else _merged(report)
    placed = _placed([one for one in chosen if severity in (None, one.finding.severity)])
    begin = None if after is None else _read_place(after)
    rest = placed if begin is None else [item for item in placed if item[0] > begin]
    shown = rest[:limit]
    return FindingPage(
        findings=tuple(one for _, one in shown),
        total=len(placed),
        next=str(shown[-1][0]) if len(rest) > limit else None,
    )


def _merged(report: VerifyReport) -> Iterator[LocatedFinding]:
    for one in report.merged:
        yield LocatedFinding(finding=one.finding, by=one.by, origins=one.origins)


def _rejected(report: VerifyReport) -> Iterator[LocatedFinding]:
    for one in report.rejected:
        yield LocatedFinding(finding=one.rejected.finding, by=(one.agent,), rejected=one.rejected.why)


def _placed(found: Sequence[LocatedFinding]) -> list[tuple[_Place, LocatedFinding]]:
    ranks: dict[str, int] = {}
    for one in found:
        rank = RANKS[one.finding.severity]
        ranks[one.finding.file] = min(rank, ranks.get(one.finding.file, rank))
    ordered = sorted(found, key=lambda one: (one.finding.file, one.finding.line, RANKS[one.finding.severity]))
    counts: dict[tuple[str, int], int] = {}
    placed = []
    for one in ordered:
        spot = (one.finding.file, one.finding.line)
        counts[spot] = counts.get(spot, 0) + 1
        placed.append((_Place(ranks[spot[0]], *spot, counts[spot]), one))
    return sorted(placed, key=lambda item: item[0])


def _read_place(text: str) -> _Place:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise BadArgument("is not the `next` of a page of findings", argument="after")
    return _Place(int(found["rank"]), found["file"], int(found["line"]), int(found["nth"]))


async def with_code(waves: WavesRun, page: FindingPage) -> FindingPage:
    """Return the same findings with the lines around them, as far as the run has their files."""
    wanted = {one.finding.file for one in page.findings}
    files: dict[str, tuple[str, ...]] = {}
    async for source in waves.sources():
        if source.path in wanted:
            files[source.path] = source.lines
        if len(files) == len(wanted):
            break
    return replace(page, findings=tuple(replace(one, code=_excerpt(one.finding, files)) for one in page.findings))


def _excerpt(finding: Finding, files: Mapping[str, tuple[str, ...]]) -> CodeExcerpt | None:
    lines = files.get(finding.file, ())
    if not 1 <= finding.line <= len(lines):
        return None
    first = max(1, finding.line - AROUND)
    last = min(len(lines), finding.end_line + AROUND, first + MAX_LINES - 1)
    return CodeExcerpt(first=first, lines=tuple(line[:MAX_SHOWN_LINE] for line in lines[first - 1 : last]))

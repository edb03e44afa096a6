"""What a model's reply says about a chunk, if it can be used, and which of its findings are at lines that it saw. Pure.

A flaw is repaired once. A finding at a place that was not shown is no flaw: it is rejected, and counted.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from muster.checks.findings.answer import Answer, read_text, read_value
from muster.checks.findings.summary import speaks_flaw
from muster.checks.findings.wording import LONGEST_PATH, bounded
from muster.domain.call import Quality, Reply
from muster.domain.finding import Finding, Rejected
from muster.domain.source import Chunk, Piece
from muster.domain.verification import Verifier

BAD = {
    Quality.CUT: "it was cut off before its end; be brief, and give the worst findings first",
    Quality.REFUSED: "it is a refusal",
    Quality.EMPTY: "it is empty",
    Quality.UNFINISHED: "it does not say that it came to its end, so it may not be whole",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What came of a reply; with a flaw nothing else counts."""

    findings: tuple[Finding, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    score: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    coverage: float | None = None
    flaw: str = ""


def read(reply: Reply, verifier: Verifier, chunk: Chunk) -> Reading:
    """Read a reply."""
    if reply.quality in BAD and (reply.quality is not Quality.EMPTY or reply.data is None):
        return Reading(flaw=BAD[reply.quality])
    answer = _answer(reply, verifier)
    if answer.flaw:
        return Reading(flaw=answer.flaw)
    shown = _Shown(chunk)
    placed = [shown.place(finding) for finding in answer.findings]
    return Reading(
        findings=tuple(one for one in placed if isinstance(one, Finding)),
        rejected=tuple(one for one in placed if isinstance(one, Rejected)),
        score=answer.score,
        parts=answer.parts,
        coverage=answer.coverage,
    )


def _answer(reply: Reply, verifier: Verifier) -> Answer:
    """Read what a reply is; data beside a text counts only where the text does not say otherwise."""
    if reply.data is None or "{" in reply.text:
        return read_text(reply.text, verifier.shape, verifier.schema)
    answer = read_value(reply.data, verifier.shape, verifier.schema)
    flaw = answer.flaw or speaks_flaw(reply.text, answer.findings, "the text beside the data")
    return Answer(flaw=flaw) if flaw else answer


class _Shown:
    """The lines that a chunk shows."""

    def __init__(self, chunk: Chunk) -> None:
        self._pieces: dict[str, list[Piece]] = {}
        for piece in chunk.pieces:
            self._pieces.setdefault(piece.path, []).append(piece)
        self._composed: dict[str, list[str]] = {}
        for path in self._pieces:
            self._composed.setdefault(_composed(path), []).append(path)

    def place(self, finding: Finding) -> Finding | Rejected:
        """Give a finding with the path as we spell it, or say why it cannot be."""
        path = self._path(finding.file)
        if path is None:
            return _rejected(finding, "this file was not shown")
        if finding.end_line < finding.line:
            return _rejected(finding, f"it ends at line {finding.end_line}, before it begins at line {finding.line}")
        ranges = _ranges(self._pieces[path])
        if not any(first <= finding.line and finding.end_line <= last for first, last in ranges):
            shown = ", ".join(f"{first} to {last}" for first, last in ranges)
            return _rejected(finding, f"{_lines(finding)} not shown; lines {shown} were")
        return replace(finding, file=path)

    def _path(self, said: str) -> str | None:
        """Find the file that is meant: ./a is a, and letters may be composed otherwise; nothing else is guessed."""
        for path in (said, said.removeprefix("./")):
            if path in self._pieces:
                return path
        alike = self._composed.get(_composed(said.removeprefix("./")), [])
        return alike[0] if len(alike) == 1 else None


def _composed(path: str) -> str:
    return unicodedata.normalize("NFC", path)


def _ranges(pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """Join pieces of a file that touch or overlap."""
    ordered = sorted((piece.first, piece.last) for piece in pieces)
    starts = [0, *(index for index, (one, other) in enumerate(pairwise(ordered), 1) if other[0] > one[1] + 1)]
    ends = [*starts[1:], len(ordered)]
    return [(ordered[a][0], max(last for _, last in ordered[a:b])) for a, b in zip(starts, ends, strict=True)]


def _lines(finding: Finding) -> str:
    if finding.line == finding.end_line:
        return f"line {finding.line} was"
    return f"lines {finding.line} to {finding.end_line} were"


def _rejected(finding: Finding, why: str) -> Rejected:
    return Rejected(finding=replace(finding, file=bounded(finding.file, LONGEST_PATH)), why=why)

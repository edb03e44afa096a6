"""Which of the proposed changes can be made, and what a file is after them. Pure: nothing is written here.

A change is made only to lines that the agent saw as they are: one that would replace a line with a redacted secret, or
that overlaps a change for a worse finding, is left to a person.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.domain.finding import RANKS, Finding, Merged
from muster.domain.redaction import MARK
from muster.domain.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Lines of a file that are replaced by a text."""

    line: int
    end_line: int
    text: tuple[str, ...] = ()  # line by line; none: the lines go


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdits:
    """All changes to one file, the first lines first; they fit only the file of this digest."""

    path: str
    digest: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfixed:
    """A proposed change that is not made."""

    finding: Finding
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixes:
    """What can be changed, and what cannot."""

    files: tuple[FileEdits, ...] = ()
    unfixed: tuple[Unfixed, ...] = ()


def fixes_of(merged: Iterable[Merged], sources: Mapping[str, Source]) -> Fixes:
    """Choose among the changes that were proposed: those for the worst findings first, and no two that meet."""
    proposed = [one.finding for one in merged if one.finding.replacement is not None]
    proposed.sort(key=lambda one: (RANKS[one.severity], one.file, one.line, one.end_line, one.finding))
    chosen: dict[str, list[Finding]] = {}
    unfixed: list[Unfixed] = []
    for finding in proposed:
        why = _why_not(finding, sources.get(finding.file), chosen.get(finding.file, ()))
        if why:
            unfixed.append(Unfixed(finding=finding, why=why))
        else:
            chosen.setdefault(finding.file, []).append(finding)
    files = [_of_file(sources[path], found) for path, found in sorted(chosen.items())]
    return Fixes(files=tuple(files), unfixed=tuple(unfixed))


def applied(text: str, edits: Sequence[Edit]) -> str:
    """Give a text after its changes; new lines end like the others of the file."""
    lines = text.split("\n")  # the last one has no end, and is empty when the text ends with one
    end = "\r" if "\r\n" in text else ""
    for edit in sorted(edits, key=lambda one: one.line, reverse=True):
        new = [line.removesuffix("\r") + end for line in edit.text]
        if new and edit.end_line == len(lines):
            new[-1] = new[-1].removesuffix(end)
        lines[edit.line - 1 : edit.end_line] = new
    return "\n".join(lines)


def _why_not(finding: Finding, source: Source | None, chosen: Iterable[Finding]) -> str:
    if source is None:
        return "the file was not read by us"
    shown = source.lines[finding.line - 1 : finding.end_line]
    if len(shown) != finding.end_line - finding.line + 1:
        return "there are no such lines"
    if source.note:
        return "the file is no plain UTF-8"
    if MARK in (finding.replacement or "") or any(MARK in line for line in shown):
        return "a secret was taken out of these lines before they were shown"
    if any(one.line <= finding.end_line and finding.line <= one.end_line for one in chosen):
        return "another change is made to these lines"
    return ""


def _of_file(source: Source, found: Sequence[Finding]) -> FileEdits:
    edits = [Edit(line=one.line, end_line=one.end_line, text=_lines(one.replacement or "")) for one in found]
    return FileEdits(
        path=source.path, digest=source.digest, edits=tuple(sorted(edits, key=lambda one: (one.line, one.end_line)))
    )


def _lines(text: str) -> tuple[str, ...]:
    """Give the lines of a text; nothing at all has none, and a line end alone is an empty line."""
    return tuple(text.removesuffix("\n").split("\n")) if text else ()

"""The fix workload: changes that a verification proposed, made to files that are still what was verified."""

import codecs
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from muster.domain.canonical import Json
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.text.declared_values import read_value
from muster.text.document_tree import Unreadable
from muster.text.secrets.redaction import MARK
from muster.verify.findings.finding import RANKS, Finding, Merged
from muster.verify.kind import REPAIR
from muster.verify.sources.source import Source, real_place


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
    """Return a text after its changes; new lines end like the others of the file."""
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
        return "the file was not part of the verification"
    shown = source.lines[finding.line - 1 : finding.end_line]
    if len(shown) != finding.end_line - finding.line + 1:
        return "the file does not have these lines"
    if source.note:
        return "the file is not plain UTF-8"
    if MARK in (finding.replacement or "") or any(MARK in line for line in shown):
        return "a secret was removed from these lines before they were shown"
    if any(one.line <= finding.end_line and finding.line <= one.end_line for one in chosen):
        return "another fix changes these lines"
    return ""


def _of_file(source: Source, found: Sequence[Finding]) -> FileEdits:
    edits = [Edit(line=one.line, end_line=one.end_line, text=_lines(one.replacement or "")) for one in found]
    return FileEdits(
        path=source.path, digest=source.digest, edits=tuple(sorted(edits, key=lambda one: (one.line, one.end_line)))
    )


def _lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text; nothing at all has none, and a line end alone is an empty line."""
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


_LONE = re.compile(rb"\r(?!\n)")  # an editor sees a line end where `applied` sees none


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairSpec:
    """What is changed below which folder."""

    root: str
    files: tuple[FileEdits, ...]


def _read(spec: Any) -> RepairSpec:
    return read_value(spec, RepairSpec, about="not a valid spec of a fix")


@workload(REPAIR.workload, check=_read)
async def fix(ctx: Context, spec: Any) -> Json:
    """Change files one by one, and say which; the others are named with the reason."""
    wanted = _read(spec)
    told = {edits.path: await _fix_one(ctx, Path(wanted.root), edits) for edits in wanted.files}
    return {
        "changed": [path for path, why in told.items() if not why],
        "left": {p: why for p, why in told.items() if why},
    }


async def _fix_one(ctx: Context, root: Path, edits: FileEdits) -> str:
    """Change one file; what it is to become is written down before, so that a crash in between is understood."""
    goal = await ctx.step(f"fix/{edits.path}/goal", lambda: goal_of(root, edits))
    if goal["why"]:
        return str(goal["why"])
    return str(await ctx.step(f"fix/{edits.path}/done", lambda: change(root, edits, str(goal["digest"]))))


def goal_of(root: Path, edits: FileEdits) -> dict[str, str]:
    """Return the digest of a file as it is to be, or why it is left alone."""
    try:
        after = _after(real_place(root, edits.path).read_bytes(), edits)
    except (Unreadable, OSError) as error:
        return {"digest": "", "why": f"cannot be read: {error}"}
    return {"digest": "", "why": after} if isinstance(after, str) else {"digest": _digest(after), "why": ""}


def change(root: Path, edits: FileEdits, goal: str) -> str:
    """Change one file, whole or not at all; gives why it was left alone, or nothing."""
    try:
        place = real_place(root, edits.path)
        data = place.read_bytes()
        if _digest(data) == goal:
            return ""  # whoever changed it died before the step was kept
        after = _after(data, edits)
        if isinstance(after, str):
            return after
        _write(place, after)
    except (Unreadable, OSError) as error:
        return f"cannot be changed: {error}"
    return ""


def _after(data: bytes, edits: FileEdits) -> bytes | str:
    """Return a file after its changes, or say why they do not fit it."""
    if _digest(data) != edits.digest:
        return "was changed after it was verified"
    if _LONE.search(data):
        return "has unusual line endings"
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    return mark + applied(data.removeprefix(mark).decode("utf-8"), edits.edits).encode("utf-8")


def _write(place: Path, data: bytes) -> None:
    unfinished = place.with_name(f".{place.name[:100]}.{uuid4().hex[:8]}.part")
    try:
        with unfinished.open("xb") as out:
            os.fchmod(out.fileno(), place.stat().st_mode & 0o7777)
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(place)
    finally:
        unfinished.unlink(missing_ok=True)


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()

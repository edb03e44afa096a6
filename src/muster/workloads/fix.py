"""The fix workload: changes that a verification proposed, made to files that are still what was verified."""

import codecs
import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from muster.checks.findings.fixing import FileEdits, applied
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.formats.flaw import Unreadable
from muster.formats.waves.places import real_place

_LONE = re.compile(rb"\r(?!\n)")  # an editor sees a line end where `applied` sees none


@workload("fix")
async def fix(ctx: Context, spec: Any) -> Json:
    """Change files one by one, and say which; the others are named with the reason."""
    try:
        root, files = Path(spec["root"]), msgspec.convert(spec["files"], tuple[FileEdits, ...])
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise BadArgument(f"this is no spec of a fix: {error}") from None
    told = {edits.path: await _fix_one(ctx, root, edits) for edits in files}
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
    """Give the digest of a file as it is to be, or why it is left alone."""
    try:
        after = _after(real_place(root, edits.path).read_bytes(), edits)
    except (Unreadable, OSError) as error:
        return {"digest": "", "why": f"it cannot be read: {error}"}
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
        return f"it cannot be changed: {error}"
    return ""


def _after(data: bytes, edits: FileEdits) -> bytes | str:
    """Give a file after its changes, or say why they do not fit it."""
    if _digest(data) != edits.digest:
        return "it was changed after it was verified"
    if _LONE.search(data):
        return "it has line ends of an odd kind"
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

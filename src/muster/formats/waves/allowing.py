"""Writes an exception for a secret into verify.yaml: one line is put in, and every other stays as it is.

The new text counts only if it reads as the old declaration with this exception and nothing else; a file in which that
cannot be done is left alone, and the person is told what to write.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shutil import copymode
from uuid import uuid4

from muster.domain.errors import BadArgument
from muster.domain.verification import AllowedSecret
from muster.formats.waves.declaration import inspect, read_declaration

KEY = "allow_secrets"
_HEAD = re.compile(rf"{KEY}:[ \t]*(?P<value>\[[ \t]*\])?[ \t]*(?P<comment>#.*)?")
_WITHIN = re.compile(r"[ \t].*|-(?:[ \t].*)?|#.*|")  # a line that can belong to a list below a key
_ITEM = re.compile(r"(?P<indent> *)-[ \t]")


def allow(path: Path, secrets: Sequence[AllowedSecret]) -> None:
    """Write exceptions into a declaration; raises BadArgument when its layout does not let that be done."""
    before = read_declaration(path)
    lines = [spelled(one) for one in secrets]
    text = path.read_bytes().decode("utf-8")
    changed = _with_items(text, lines)
    unfinished = path.with_name(f".{path.stem[:100]}.{uuid4().hex[:8]}.part{path.suffix}")
    try:
        unfinished.write_bytes(changed.encode("utf-8"))
        found = inspect(unfinished).declaration
        wanted = replace(before, allow_secrets=(*before.allow_secrets, *secrets))
        if found is None or replace(found, file=before.file) != wanted:
            raise _by_hand(path, lines)
        copymode(path, unfinished)
        unfinished.replace(path.resolve())
    except OSError as error:
        raise BadArgument(f"{path} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):  # it is in its place
            unfinished.unlink()


def spelled(secret: AllowedSecret) -> str:
    """Return an exception as it is written."""
    return f"{{file: {json.dumps(secret.file, ensure_ascii=False)}, line: {secret.line}, kind: {secret.kind}}}"


def _with_items(text: str, items: Sequence[str]) -> str:
    """Put items below the key, after those that are there; without the key it is put at the end."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(end)
    place = next((number for number, line in enumerate(lines) if _HEAD.fullmatch(line)), None)
    if place is None:
        body = text if not text or text.endswith(end) else text + end
        return body + end.join([f"{KEY}:", *(f"  - {item}" for item in items), ""])
    head = _HEAD.fullmatch(lines[place])
    if head is not None and head["value"]:
        lines[place] = f"{KEY}:{'  ' + head['comment'] if head['comment'] else ''}"
    last, indent = _last_item(lines, place)
    return end.join([*lines[: last + 1], *(f"{indent}- {item}" for item in items), *lines[last + 1 :]])


def _last_item(lines: Sequence[str], place: int) -> tuple[int, str]:
    """Return the last line of a list below a key, and how its items are indented."""
    last, indent = place, "  "
    for number in range(place + 1, len(lines)):
        line = lines[number]
        if not _WITHIN.fullmatch(line):
            break
        if line.strip() and not line.lstrip().startswith("#"):
            last = number
            item = _ITEM.match(line)
            indent = item["indent"] if item is not None and last == place + 1 else indent
    return last, indent


def _by_hand(path: Path, lines: Sequence[str]) -> BadArgument:
    items = ", ".join(lines)
    return BadArgument(
        f"{path} is written in a way that cannot be added to without changing its layout",
        suggestions=(f"write into it by hand: {KEY}: [{items}]",),
    )

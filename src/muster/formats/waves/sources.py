"""Reads the files that are verified: bounded, as text, without secrets, with the line numbers that an editor shows."""

import codecs
import re
from hashlib import sha256
from pathlib import Path

from muster.domain.errors import BadFile
from muster.domain.redaction import Redactor
from muster.domain.source import Source
from muster.domain.verification import LeftOut
from muster.formats.flaw import Unreadable
from muster.formats.source import opened
from muster.formats.waves.generated import HEAD, why_generated
from muster.formats.waves.places import check_name, real_place

__all__ = ["EMPTY", "LONGEST_LINE", "MOST_BYTES", "read_source", "why_generated"]

MOST_BYTES = 2_000_000
LONGEST_LINE = 20_000  # characters: a line that cannot be shown whole would be verified by nobody
EMPTY = "empty"
_REPLACED = "some bytes are no UTF-8 and were replaced"
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_source(root: Path, path: str, *, redactor: Redactor | None = None) -> Source | LeftOut:
    """Read one file, or say why it is left out; raises BadFile when it cannot be read.

    A redactor that is given numbers the secrets of several files; what it found before is forgotten.
    """
    check_name(path)
    try:
        with opened(real_place(root, path)) as file:
            data = file.read(MOST_BYTES + 1)
    except Unreadable as error:
        raise BadFile(path, error.message) from error
    if why := _why_no_text(data):
        return LeftOut(path=path, why=why)
    text, note = _text_of(data)
    if why := why_generated(path, text[:HEAD]) or _why_too_wide(text):
        return LeftOut(path=path, why=why)
    redactor = redactor or Redactor()
    redactor.found()
    clean = redactor.code(text)
    found = sum(redactor.found().values())
    return Source(path=path, digest=sha256(data).hexdigest(), text=clean, redacted=found, note=note)


def _why_no_text(data: bytes) -> str:
    if len(data) > MOST_BYTES:
        return f"larger than {MOST_BYTES:,} bytes"
    if not data.removeprefix(codecs.BOM_UTF8):
        return EMPTY
    if data.startswith(_WIDE):
        return "UTF-16, which is not read"
    return "binary" if b"\0" in data else ""


def _why_too_wide(text: str) -> str:
    longest = max(map(len, text.split("\n")))
    return f"it has a line of {longest:,} characters" if longest > LONGEST_LINE else ""


def _text_of(data: bytes) -> tuple[str, str]:
    """Decode a text and say what is odd about it; every kind of line end becomes the one that lines are split at."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text, note = data.decode("utf-8"), ""
    except UnicodeDecodeError:
        text, note = data.decode("utf-8", "replace"), _REPLACED
    return re.sub(r"\r\n?", "\n", text), note

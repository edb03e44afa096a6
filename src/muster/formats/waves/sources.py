"""Reads the files that are verified: bounded, as text, without secrets, with the line numbers that an editor shows."""

import codecs
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

from muster.domain.errors import BadFile
from muster.domain.redaction import Redactor
from muster.domain.source import Source
from muster.domain.verification import LeftOut
from muster.formats.flaw import Unreadable
from muster.formats.source import opened
from muster.formats.waves.generated import HEAD, why_generated
from muster.formats.waves.places import check_name, real_place

__all__ = ["EMPTY", "LONGEST_LINE", "MOST_BYTES", "Unverifiable", "look_into", "read_source", "why_generated"]

MOST_BYTES = 2_000_000
LONGEST_LINE = 20_000  # characters: a line that cannot be shown whole would be verified by nobody
EMPTY = "empty"
BINARY = "binary"
_REPLACED = "some bytes are no UTF-8 and were replaced"
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CODE = frozenset(
    {
        *(".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".vue", ".go", ".rs", ".java", ".kt", ".kts"),
        *(".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".cs", ".fs", ".vb", ".m", ".mm", ".swift", ".scala", ".dart"),
        *(".rb", ".php", ".pl", ".pm", ".lua", ".r", ".jl", ".ex", ".exs", ".erl", ".hs", ".ml", ".clj", ".zig"),
        *(".sh", ".bash", ".zsh", ".ps1", ".bat", ".cmd", ".sql", ".tf", ".yaml", ".yml", ".toml", ".html", ".css"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unverifiable:
    """A file that somebody may have written and nobody can be shown; to leave it out would be to let it pass."""

    path: str
    why: str


def read_source(root: Path, path: str, *, redactor: Redactor | None = None) -> Source | LeftOut:
    """Read one file, or say why it is left out; raises BadFile when it cannot be read or verified.

    A redactor that is given numbers the secrets of several files; what it found before is forgotten.
    """
    found = look_into(root, path, redactor=redactor)
    if isinstance(found, Unverifiable):
        raise BadFile(path, f"it cannot be verified: {found.why}; take it out with exclude in verify.yaml")
    return found


def look_into(root: Path, path: str, *, redactor: Redactor | None = None) -> Source | LeftOut | Unverifiable:
    """Read one file, or say why that makes no sense or cannot be done; raises BadFile when it cannot be read."""
    check_name(path)
    try:
        with opened(real_place(root, path)) as file:
            data = file.read(MOST_BYTES + 1)
    except Unreadable as error:
        raise BadFile(path, error.message) from error
    if why := _why_not(path, data):
        return LeftOut(path=path, why=why)
    if why := _why_no_text(data):
        return Unverifiable(path=path, why=why)
    text, note = _text_of(data)
    if why := _why_too_wide(text):
        return Unverifiable(path=path, why=why)
    redactor = redactor or Redactor()
    redactor.found()
    clean, secrets = redactor.code_and_secrets(text)
    found = sum(redactor.found().values())
    return Source(path=path, digest=sha256(data).hexdigest(), text=clean, redacted=found, note=note, secrets=secrets)


def _why_not(path: str, data: bytes) -> str:
    """Say why nobody needs to look at a file; empty when somebody should."""
    if not data.removeprefix(codecs.BOM_UTF8):
        return EMPTY
    if _is_binary(data) and PurePosixPath(path).suffix.lower() not in _CODE:
        return BINARY
    head, _ = _text_of(data[: 4 * HEAD])  # a character has four bytes at most
    return why_generated(path, head[:HEAD])


def _is_binary(data: bytes) -> bool:
    return b"\0" in data and not data.startswith(_WIDE)


def _why_no_text(data: bytes) -> str:
    if data.startswith(_WIDE):
        return "UTF-16, which is not read"
    if _is_binary(data):
        return "binary, though it is named like code"
    return f"larger than {MOST_BYTES:,} bytes" if len(data) > MOST_BYTES else ""


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

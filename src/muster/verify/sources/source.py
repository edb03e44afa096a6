"""The code that is verified: files as they are sent, and the chunks they are shown in."""

import codecs
import os
import re
import unicodedata
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

from muster.domain.errors import BadFile
from muster.text.document_tree import Unreadable
from muster.text.files import opened
from muster.text.secrets.redaction import GUESSED, Redactor, Secret, redact
from muster.verify.declaration.verification import LeftOut

__all__ = [
    "EMPTY",
    "MAX_BYTES",
    "MAX_LINE",
    "Unverifiable",
    "is_generated",
    "look_into",
    "read_source",
    "secrets_in",
    "why_generated",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file as it is sent: its lines, without secrets."""

    path: str
    digest: str  # SHA-256 of the bytes on disk
    text: str
    redacted: int = 0  # secrets that were taken out
    note: str = ""  # what is odd about it
    secrets: tuple[Secret, ...] = ()  # where those that were taken out stood

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, numbered from one; as editors and compilers count them."""
        return tuple(self.text.removesuffix("\n").split("\n")) if self.text else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """What is known of a file without its text."""

    path: str
    digest: str
    lines: int
    bytes: int
    redacted: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySnapshot:
    """Everything that was read before the first call, but for the texts."""

    files: tuple[FileInfo, ...]
    left_out: tuple[LeftOut, ...] = ()
    pages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some lines of one file, in a row."""

    path: str
    first: int
    last: int
    of: int  # how many lines the file has


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What is shown in one call."""

    name: str  # stands in keys: made from what is in it, so that the same files have the same name
    pieces: tuple[Piece, ...]
    text: str  # with line numbers; the same for every agent

    @property
    def lines(self) -> int:
        """How many lines are shown."""
        return sum(piece.last - piece.first + 1 for piece in self.pieces)


MAX_BYTES = 2_000_000
MAX_SEARCHED = 20_000_000  # bytes of a file that nobody is shown, in which secrets are looked for
MAX_LINE = 20_000  # characters: a line that cannot be shown whole would be verified by nobody
EMPTY = "empty"
_GENERATED_BY = "generated:"
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
        raise BadFile(path, f"cannot be verified: {found.why}; exclude it with exclude in verify.yaml")
    return found


def look_into(root: Path, path: str, *, redactor: Redactor | None = None) -> Source | LeftOut | Unverifiable:
    """Read one file, or say why that makes no sense or cannot be done; raises BadFile when it cannot be read."""
    check_name(path)
    try:
        with opened(real_place(root, path)) as file:
            data = file.read(MAX_BYTES + 1)
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
    clean, secrets = redactor.code_and_secrets(text, PurePosixPath(path).name)
    found = sum(redactor.found().values())
    return Source(path=path, digest=sha256(data).hexdigest(), text=clean, redacted=found, note=note, secrets=secrets)


def secrets_in(root: Path, path: str) -> tuple[Secret, ...]:
    """Return where secrets stand in a text that nobody is shown, such as a lock file; a binary file has none."""
    with opened(real_place(root, path)) as file:
        data = file.read(MAX_SEARCHED)
    if _is_binary(data) or data.startswith(_WIDE):
        return ()
    return Redactor().code_and_secrets(_text_of(data)[0], PurePosixPath(path).name)[1]


def is_generated(left_out: LeftOut) -> bool:
    """Return whether a file is left out because a program wrote it, or says so."""
    return left_out.why.startswith(_GENERATED_BY)


def _why_not(path: str, data: bytes) -> str:
    """Return why a file needs no verification; empty when it does."""
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
        return "UTF-16, which is not supported"
    if _is_binary(data):
        return "binary, although its name is that of code"
    return f"larger than {MAX_BYTES:,} bytes" if len(data) > MAX_BYTES else ""


def _why_too_wide(text: str) -> str:
    longest = max(map(len, text.split("\n")))
    return f"has a line of {longest:,} characters" if longest > MAX_LINE else ""


def _text_of(data: bytes) -> tuple[str, str]:
    """Decode a text and say what is odd about it; every kind of line end becomes the one that lines are split at."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text, note = data.decode("utf-8"), ""
    except UnicodeDecodeError:
        text, note = data.decode("utf-8", "replace"), _REPLACED
    return re.sub(r"\r\n?", "\n", text), note


HEAD = 8_192  # characters at the beginning of a file that are looked at

_LOCKS = frozenset(
    {
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "deno.lock"),
        *("poetry.lock", "uv.lock", "pdm.lock", "pixi.lock", "Pipfile.lock", "Cargo.lock", "Gemfile.lock", "go.sum"),
        *("composer.lock", "mix.lock", "flake.lock", "packages.lock.json", "gradle.lockfile", ".terraform.lock.hcl"),
        *("Podfile.lock", "pubspec.lock"),
    }
)
_ENDINGS = (
    *(".min.js", ".min.mjs", ".min.cjs", ".min.css", ".js.map", ".mjs.map", ".css.map"),
    *("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", ".pb.go", ".pb.cc", ".pb.h", ".g.dart", ".designer.cs"),
)
# In these a line as long as a page is what a packer wrote; in a language that people write, somebody may hide in one.
_PACKED = frozenset({".js", ".mjs", ".cjs", ".css", ".json", ".svg", ".html", ".htm", ".xml"})
_FIRST_LINES = 20
_MIN_CHARACTERS = 2_000  # characters: a short text says nothing about how long its lines are
_LONG_LINES = 300  # characters on the average

_COMMENT = re.compile(r"\s*+(?:#|//|/\*|\*|--|;|<!--|%|\"\"\"|''')(?P<words>.*)")
_MARK = re.compile(r"(?<!\w)@generated\b|<auto-?generated", re.IGNORECASE)
_GENERATED = re.compile(r"\bgenerated\b|\bauto-?generated\b", re.IGNORECASE)
_HANDS_OFF = re.compile(r"\bdo not (?:edit|modify|change)\b", re.IGNORECASE)


def why_generated(path: str, head: str) -> str:
    """Return why a file counts as generated; empty when a person may have written it."""
    name = PurePosixPath(path).name
    if name in _LOCKS:
        return f"{_GENERATED_BY} a lock file"
    if name.lower().endswith(_ENDINGS):
        return f"{_GENERATED_BY} by its name"
    if PurePosixPath(name).suffix.lower() in _PACKED and _has_long_lines(head):
        return f"{_GENERATED_BY} minified"
    return f"{_GENERATED_BY} marked as such" if _says_so(head) else ""


def _has_long_lines(head: str) -> bool:
    return len(head) >= _MIN_CHARACTERS and len(head) / (head.count("\n") + 1) >= _LONG_LINES


def _says_so(head: str) -> bool:
    """Look for the usual marks; only in comments, so that code which speaks of them is not taken for it."""
    lines = [found["words"] for line in head.split("\n")[:_FIRST_LINES] if (found := _COMMENT.match(line))]
    if any(_MARK.search(line) for line in lines):
        return True
    pairs = zip(lines, [*lines[1:], ""], strict=False)  # a sentence may go over two lines
    return any(_GENERATED.search(one) and _HANDS_OFF.search(f"{one} {two}") for one, two in pairs)


_NO_TEXT = ("Cc", "Cs")  # control characters, and bytes that are no UTF-8


def place_in(root: Path, name: str | Path) -> str | None:
    """Spell a path relative to the root; None when it, or what it leads to, is not under the root."""
    path = Path(os.path.normpath(root / name))
    try:
        real, base = path.resolve(), root.resolve()
    except (OSError, RuntimeError, ValueError):  # links in a circle, a NUL in the name
        return None
    if not real.is_relative_to(base):
        return None
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return real.relative_to(base).as_posix()  # the root is spelled in another way, through a link


def real_place(root: Path, name: str) -> Path:
    """Return where a file really is; raises Unreadable when that is out of the root."""
    try:
        real = (root / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, a NUL in the name
        raise Unreadable("cannot be found: its links form a loop, or it is not a path") from error
    if not real.is_relative_to(root.resolve()):
        raise Unreadable("leads out of the verified folder; name a file inside it")
    return real


def check_name(path: str) -> None:
    """Refuse a path that cannot be written into a text as one line."""
    if any(unicodedata.category(character) in _NO_TEXT for character in path):
        shown = path.encode("unicode_escape").decode("ascii")
        raise BadFile(shown, "its name has a control character, or is not UTF-8; rename it")
    named = redact(path)
    if kinds := sorted({*named.found} - GUESSED):  # it would be sent, and stand in every report
        raise BadFile(named.text, f"its name holds a secret ({', '.join(kinds)}); rename it and replace the secret")

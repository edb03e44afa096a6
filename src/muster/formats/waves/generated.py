"""Which files no person wrote. Pure: it looks at the path and at the first lines, and at nothing else."""

import re
from pathlib import PurePosixPath

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
_FEWEST = 2_000  # characters: a short text says nothing about how long its lines are
_LONG_LINES = 300  # characters on the average

_COMMENT = re.compile(r"\s*+(?:#|//|/\*|\*|--|;|<!--|%|\"\"\"|''')(?P<words>.*)")
_MARK = re.compile(r"(?<!\w)@generated\b|<auto-?generated", re.IGNORECASE)
_GENERATED = re.compile(r"\bgenerated\b|\bauto-?generated\b", re.IGNORECASE)
_HANDS_OFF = re.compile(r"\bdo not (?:edit|modify|change)\b", re.IGNORECASE)


def why_generated(path: str, head: str) -> str:
    """Say why a file counts as generated; empty when a person may have written it."""
    name = PurePosixPath(path).name
    if name in _LOCKS:
        return "generated: a lock file"
    if name.lower().endswith(_ENDINGS):
        return "generated: by its name"
    if PurePosixPath(name).suffix.lower() in _PACKED and _has_long_lines(head):
        return "generated: minified"
    return "generated: it says so" if _says_so(head) else ""


def _has_long_lines(head: str) -> bool:
    return len(head) >= _FEWEST and len(head) / (head.count("\n") + 1) >= _LONG_LINES


def _says_so(head: str) -> bool:
    """Look for the usual marks; only in comments, so that code which speaks of them is not taken for it."""
    lines = [found["words"] for line in head.split("\n")[:_FIRST_LINES] if (found := _COMMENT.match(line))]
    if any(_MARK.search(line) for line in lines):
        return True
    pairs = zip(lines, [*lines[1:], ""], strict=False)  # a sentence may go over two lines
    return any(_GENERATED.search(one) and _HANDS_OFF.search(f"{one} {two}") for one, two in pairs)

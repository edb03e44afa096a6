"""The manifest of a bundle, beside a suite: whether it still says the truth about its files and cases."""

import hashlib
import json
from collections.abc import Iterator, Set
from pathlib import Path, PurePosixPath
from typing import Any

from muster.formats.flaw import Flaw, Unreadable
from muster.formats.source import opened, shown, whole_text

NAME = "bundle.manifest.json"
MOST_BYTES = 8_000_000
_SHOWN = 5


def manifest_findings(folder: Path, suite: str, ids: Set[str]) -> Iterator[Flaw]:
    """Say what in the manifest does not fit the suite beside it; without a manifest nothing."""
    path = folder / NAME
    if not path.exists():
        return
    try:
        manifest = json.loads(whole_text(path, MOST_BYTES))
        if not isinstance(manifest, dict):
            raise ValueError("it must be an object")
    except Unreadable as error:
        yield _finding(path, "manifest-unreadable", error.message, error.line)
    except (ValueError, RecursionError) as error:
        yield _finding(path, "manifest-unreadable", f"this is no manifest: {error}")
    else:
        if manifest.get("skill_or_agent", suite) == suite:
            yield from _about_cases(path, manifest, ids)
        yield from _about_files(path, manifest)


def _about_cases(path: Path, manifest: dict[str, Any], ids: Set[str]) -> Iterator[Flaw]:
    listed = manifest.get("case_ids")
    if not isinstance(listed, list):
        return
    named = {str(name) for name in listed}
    for names, words in ((ids - named, "does not list"), (named - ids, "lists, and the suite does not have:")):
        if names:
            shortened = ", ".join(sorted(names)[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
            yield _finding(path, "manifest-cases", f"case_ids {words} {shortened}")


def _about_files(path: Path, manifest: dict[str, Any]) -> Iterator[Flaw]:
    fixtures = manifest.get("fixtures")
    for entry in fixtures if isinstance(fixtures, list) else []:
        name, digest = (entry.get("path"), entry.get("sha256")) if isinstance(entry, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(digest, str) or not _is_below(name):
            continue
        try:
            found = _sha256(path.parent / name)
        except Unreadable as error:
            yield _finding(path, "manifest-digest", f"{name}: {error.message}")
            continue
        if found != digest.removeprefix("sha256:").lower():
            yield _finding(path, "manifest-digest", f"{name} has the SHA-256 {found}, and not {digest}")


def _is_below(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\0" not in name


def _sha256(path: Path) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _finding(path: Path, code: str, message: str, line: int | None = None) -> Flaw:
    return Flaw(file=shown(path), line=line, code=code, message=message)

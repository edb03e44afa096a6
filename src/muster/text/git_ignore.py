"""What git ignores below a folder, by the .gitignore files and info/exclude of its repository. Git itself is not asked.

Left out are excludes of the user's own. Files that git knows are not ignored, whatever the rules say: `tracked_below`.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from muster.text.git_index import common_folder, git_folder, tracked_files

_NAME = ".gitignore"
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """One line of a file."""

    pattern: re.Pattern[str]
    base: Path  # the folder that it is meant from
    negated: bool
    folders_only: bool


class IgnoredPaths:
    """The rules of the repository that a folder is in; without a repository nothing is ignored."""

    def __init__(self, folder: Path) -> None:
        here = folder.resolve()
        root = next((base for base in (here, *here.parents) if (base / ".git").exists()), None)
        self._root, self._here = root, here
        self._rules: dict[Path, tuple[_Rule, ...]] = {}

    def has(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether a path is ignored by itself; whether a folder above it is, is asked of that folder."""
        if self._root is None:
            return False
        place = path.parent.resolve() / path.name
        if not place.is_relative_to(self._root):
            return False
        for rule in reversed(self._rules_for(place.parent)):
            if rule.folders_only and not is_folder:
                continue
            if rule.pattern.fullmatch(place.relative_to(rule.base).as_posix()):
                return not rule.negated
        return False

    def tracked_below(self) -> list[str]:
        """Return the files below the folder that git knows, from that folder; raises Unreadable without its index."""
        if self._root is None:
            return []
        prefix = "" if self._here == self._root else f"{self._here.relative_to(self._root).as_posix()}/"
        return [name.removeprefix(prefix) for name in tracked_files(self._root) if name.startswith(prefix)]

    def _rules_for(self, folder: Path) -> tuple[_Rule, ...]:
        """Return the rules that hold in a folder, those of nearer files last."""
        if folder not in self._rules:
            own = _read(folder / _NAME, folder)
            if folder == self._root:
                above = _read(common_folder(git_folder(folder)) / "info" / "exclude", folder)
            else:
                above = self._rules_for(folder.parent)
            self._rules[folder] = (*above, *own)
        return self._rules[folder]


def _read(file: Path, base: Path) -> tuple[_Rule, ...]:
    try:
        text = file.read_bytes()[:_MAX_BYTES].decode("utf-8", "replace")
    except OSError:  # most folders have none
        return ()
    return tuple(rule for line in text.splitlines() if (rule := _rule(line, base)) is not None)


def _rule(line: str, base: Path) -> _Rule | None:
    line = line.rstrip()
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    wanted = line.removeprefix("!").removeprefix("\\") if negated or line.startswith("\\") else line
    folders_only = wanted.endswith("/")
    wanted = wanted.rstrip("/")
    anchored = "/" in wanted
    wanted = wanted.lstrip("/")
    if not wanted:
        return None
    text = wanted if anchored else f"**/{wanted}"
    return _Rule(pattern=_pattern(text), base=base, negated=negated, folders_only=folders_only)


_PARTS = re.compile(
    r"(?P<any>\*\*/)|(?P<rest>/\*\*$)|(?P<stars>\*+)|(?P<one>\?)|(?P<set>\[!?\]?[^\]/]*\])|(?P<is>\\.|.)"
)


@lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile("".join(_part(found) for found in _PARTS.finditer(text)), re.DOTALL)


def _part(found: re.Match[str]) -> str:
    text = found[0]
    if found["any"]:
        return "(?:[^/]+/)*+"
    if found["rest"]:
        return "/.+"
    if found["stars"]:
        return "[^/]*"
    if found["one"]:
        return "[^/]"
    if found["set"]:
        inside = text[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    return re.escape(text.removeprefix("\\") if len(text) > 1 else text)

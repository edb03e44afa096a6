"""What changed in the user's repository while an agent worked: refs, settings, hooks, exclusions. Nothing is undone.

All worktrees of a repository share its refs and its settings, so git does not keep an agent from changing them; and
the user, or another task, may change them meanwhile. What differs is said, with the command that restores it.
"""

import asyncio
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from muster.git.branches import commit_of
from muster.git.layout import HEADS, PREFIX, Layout, own_exclusions
from muster.text.secrets.redaction import redact

MAX_REFS = 1_000  # that are compared
_MAX_VALUE = 200  # characters of a setting
_MAX_HOOK = 1_048_576  # bytes
_OURS = (HEADS + PREFIX, "refs/muster/", "refs/stash", "refs/remotes/", "refs/bisect/", "refs/worktree/")
_HIDDEN = " (sha256 "  # follows a setting that is not stored as it is
_IDLE = ", not executable"  # follows the digest of a hook that git does not run
_REPLACED = "refs/replace/"  # git reads the objects that these name in place of others
_FILES = ("info/exclude", "info/attributes", "info/grafts", "shallow")  # of the shared git folder
WATCHED = "file /"  # begins what is compared beside the repository: absolute paths
_DECISIVE = ("setting ", f"ref {_REPLACED}", "file info/attributes", "file info/grafts", "file shallow")
_PLACE = '"$(git rev-parse --git-common-dir)"/'


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryChange:
    """A ref, a setting, a hook or a file of git's that is not what it was."""

    # "ref refs/heads/main", "setting core.hookspath", "hook pre-commit", "file info/exclude" or "HEAD"; "file /…" is
    # one beside the repository.
    what: str
    before: str | None  # of a setting with several values all of them, after commas
    after: str | None
    restore: str | None  # the command that restores it; None when what it was is not known


async def repository_state(layout: Layout) -> dict[str, str]:
    """Return the refs, settings, hooks and exclusions of the user's repository.

    Our branches, those of remotes and what we have git ignore are left out. Values of a setting are in one line each.
    """
    state = {f"ref {name}": commit for name, commit in (await _refs(layout)).items()}
    head = await layout.git.run("symbolic-ref", "--quiet", "HEAD")
    state["HEAD"] = head.text if head.code == 0 else str(await commit_of(layout.git, "HEAD"))
    settings = await layout.git.run("config", "--local", "--no-includes", "--list", "-z")
    for part in settings.shown if settings.code == 0 else ():
        name, _, value = part.partition("\n")
        known = state.get(f"setting {name}")
        state[f"setting {name}"] = _stored(value) if known is None else f"{known}\n{_stored(value)}"
    return state | await asyncio.to_thread(_hooks, layout.common / "hooks") | await asyncio.to_thread(_files, layout)


def decides_check_outs(what: str) -> bool:
    """Return whether a part of a repository decides which files and which history git tells of a commit."""
    return what.startswith(_DECISIVE)


def is_decisive(what: str) -> bool:
    """Return whether a change must never be left out of a list that is too long."""
    return what.startswith(WATCHED) or decides_check_outs(what)


def changes_between(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[RepositoryChange, ...]:
    """Return what differs between two states, with the commands that restore the first."""
    names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return tuple(
        RepositoryChange(
            what=name,
            before=_shown(before.get(name)),
            after=_shown(after.get(name)),
            restore=_restore(name, before, after),
        )
        for name in names
    )


def _shown(value: str | None) -> str | None:
    return None if value is None else value.replace("\n", ", ")


def _restore(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> str | None:
    kind, _, what = name.partition(" ")
    old, new = before.get(name), after.get(name)
    match kind, old:
        case "ref", None:
            return shlex.join(["git", "update-ref", "-d", what, str(new)])
        case "ref", _:
            return shlex.join(["git", "update-ref", what, str(old), *([] if new is None else [new])])
        case "HEAD", str() if old.startswith("refs/"):
            return shlex.join(["git", "symbolic-ref", "HEAD", old])
        case "setting", None:
            return shlex.join(["git", "config", "--local", "--unset-all", what])
        case "setting", str() if _HIDDEN not in old:
            return _restore_setting(what, old.split("\n"), is_set=new is not None)
        case "hook", None:
            return f"rm {_PLACE}hooks/{shlex.quote(what)}"
        case "hook", str() if new is not None and old.removesuffix(_IDLE) == new.removesuffix(_IDLE):
            return f"chmod {'-x' if old.endswith(_IDLE) else '+x'} {_PLACE}hooks/{shlex.quote(what)}"
        case "file", None if what.startswith("/"):
            return shlex.join(["rm", what])
        case "file", None:
            return f"rm {_PLACE}{what}"
    return None


def _restore_setting(name: str, values: Sequence[str], *, is_set: bool) -> str:
    """Return the command that gives a setting all of its values back."""
    command = ("git", "config", "--local")
    if len(values) == 1:
        return shlex.join([*command, "--replace-all", name, values[0]])
    removed = [shlex.join([*command, "--unset-all", name])] if is_set else []
    return " && ".join([*removed, *(shlex.join([*command, "--add", name, value]) for value in values)])


async def _refs(layout: Layout) -> dict[str, str]:
    """Return the first refs that are the user's: those that replace objects, branches, then all others."""
    found: dict[str, str] = {}
    for place in (_REPLACED, "refs/heads", "refs"):
        lines = (await layout.git.ask("for-each-ref", "--format=%(objectname) %(refname)", place)).text.splitlines()
        for commit, _, name in (line.partition(" ") for line in lines):
            if len(found) < MAX_REFS and not name.startswith(_OURS):
                found[name] = commit
    return found


def _stored(value: str) -> str:
    """Return the value of a setting without secrets; one that is not whole is still told from another."""
    shown = redact(value).text[:_MAX_VALUE].replace("\n", " ")
    return value if shown == value else f"{shown}{_HIDDEN}{sha256(value.encode()).hexdigest()[:12]})"


def _hooks(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if path.is_file() and path.suffix != ".sample":
            runs = os.access(path, os.X_OK)
            found[f"hook {path.name}"] = _digest(_content(path)) + ("" if runs else _IDLE)
    return found


def _files(layout: Layout) -> dict[str, str]:
    """Return the files that say what git ignores and how it treats files, without what is ours in them."""
    ours = own_exclusions(layout)
    found: dict[str, str] = {}
    for name in _FILES:
        path = layout.common / name
        lines = [line for line in _content(path).splitlines() if line not in ours] if path.is_file() else []
        if lines:
            found[f"file {name}"] = _digest(b"\n".join(lines))
    return found


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_HOOK)


def _digest(content: bytes) -> str:
    return f"sha256 {sha256(content).hexdigest()[:12]}"

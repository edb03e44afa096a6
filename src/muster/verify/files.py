"""Which files a verification is about: chosen in one of four ways, and each read once before anything is spent."""

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from muster.domain.errors import BadArgument, BadFile
from muster.git.repository import Git
from muster.text.redaction import Redactor
from muster.verify.markers import read_markers
from muster.verify.source import Source, Unverifiable, look_into, place_in
from muster.verify.verification import LeftOut, Limits, Marker, UnseenSecret, Verifier, matches

OWN = ".muster"  # the store and its markers are never what is verified
_VENDORED = frozenset({"node_modules", "bower_components", "vendor", "third_party", "site-packages"})
_MADE = frozenset({"__pycache__", "dist", "build", "target", "htmlcov", "__pypackages__"})
_ENVIRONMENT = "pyvenv.cfg"
_HIDDEN = "a hidden folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFiles:
    """The files below a folder; a folder that is left out is told once, and ends with a slash."""

    files: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()


def among(paths: Iterable[str], place: str) -> FoundFiles:
    """Sort out what git lists below a folder; what lies in a vendored one is left out."""
    files: list[str] = []
    left_out: dict[str, LeftOut] = {}
    for path in without_own(paths):
        folder = _vendored(path, place)
        if folder:
            left_out.setdefault(folder, LeftOut(path=folder, why="vendored"))
        else:
            files.append(path)
    return FoundFiles(files=tuple(files), left_out=tuple(left_out.values()))


def walk(root: Path, place: str) -> FoundFiles:
    """Find the files below a folder that is in no repository."""
    files: list[str] = []
    left_out: list[LeftOut] = []
    for found in _walked(root, root / place):
        if isinstance(found, LeftOut):
            left_out.append(found)
        else:
            files.append(found)
    return FoundFiles(files=tuple(files), left_out=tuple(left_out))


def without_own(paths: Iterable[str]) -> list[str]:
    """Take out what is Muster's own."""
    return [path for path in paths if not path.startswith(f"{OWN}/")]


def _vendored(path: str, place: str) -> str:
    """Return the folder, below the one that was named, that others wrote; empty when there is none."""
    parts = path.split("/")
    skipped = 0 if place == "." else place.count("/") + 1
    for number, part in enumerate(parts[:-1]):
        if number >= skipped and part in _VENDORED:
            return "/".join(parts[: number + 1]) + "/"
    return ""


def _walked(root: Path, top: Path) -> Iterator[str | LeftOut]:
    for base, folders, files in os.walk(top, onerror=_refused):
        kept = []
        for name in sorted(folders):
            why = _why_not(Path(base, name))
            if not why:
                kept.append(name)
            elif name != OWN:
                yield LeftOut(path=_spelled(root, Path(base, name)) + "/", why=why)
        folders[:] = kept
        for name in files:
            path = Path(base, name)
            spelled = _spelled(root, path)
            yield LeftOut(path=spelled, why="a symbolic link") if path.is_symlink() else spelled


def _why_not(folder: Path) -> str:
    """Say why a folder is not walked; empty when it is."""
    if folder.is_symlink():
        return "a symbolic link"
    if folder.name in _VENDORED:
        return "vendored"
    if folder.name in _MADE:
        return "made by programs"
    if (folder / _ENVIRONMENT).exists():
        return "a virtual environment"
    return _HIDDEN if folder.name.startswith(".") else ""


def _spelled(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _refused(error: OSError) -> None:
    """Tell of a folder that cannot be read; to pass over it would be to verify less than was asked for."""
    raise BadFile(str(error.filename), f"the folder cannot be read: {error.strerror}") from error


NOBODY = "no agent looks at such files"
EXCLUDED = "excluded in verify.yaml"
MOST_TOLD = 10  # files that cannot be verified, in one message
_WAYS = "paths, --changed [REF], --staged or --pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSelection:
    """How a person chose files; exactly one way."""

    paths: tuple[str, ...] = ()  # files and folders
    changed: bool = False
    ref: str | None = None  # what changed files are compared with; None: HEAD
    staged: bool = False
    pending: Path | None = None  # the folder of markers; a relative one is below the root


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is asked of a file that is to be verified."""

    limits: Limits = field(default_factory=Limits)
    exclude: tuple[str, ...] = ()  # globs of files that nobody is to look at
    asked: tuple[Verifier, ...] = ()  # those who look at files; none: everybody looks at everything

    def why_not(self, path: str) -> str:
        """Say why a file is not even read; empty when it is."""
        return EXCLUDED if matches(path, self.exclude) else ""

    def is_seen(self, path: str) -> bool:
        """Return whether somebody looks at a file."""
        return not self.asked or any(one.looks_at(path) for one in self.asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """The files that were chosen, and what is known of them."""

    root: Path
    source: Path  # where contents are read from: the root, or where staged ones were written
    files: tuple[str, ...]  # relative to both; sorted, each once
    left_out: tuple[LeftOut, ...] = ()
    markers: tuple[Marker, ...] = ()
    bytes: int = 0  # of all files as they are sent
    redacted: int = 0  # secrets that were taken out
    unseen_secrets: tuple[UnseenSecret, ...] = ()  # in files that are left out only because nobody looks at them


async def select(
    folder: Path, selection: FileSelection, *, into: Path | None = None, bounds: Bounds | None = None
) -> Selected:
    """Choose files and read each once; staged contents are written below `into`.

    Raises BadArgument or BadFile for what cannot be verified as it was asked for.
    """
    _check(selection, into)
    folder = await asyncio.to_thread(folder.resolve)
    git = Git(folder)
    top = await git.root()
    root, chosen = top or folder, _Chosen()
    if selection.changed:
        chosen.found += without_own(await git.changed(selection.ref))
    elif selection.staged and into is not None:
        chosen.found += await git.staged()
        await git.check_out_staged(chosen.found, into)
    elif selection.pending is not None:
        chosen.markers = await asyncio.to_thread(read_markers, root / selection.pending, root)
        chosen.found += (path for marker in chosen.markers for path in marker.files)
    else:
        await _choose_paths(chosen, folder, root, selection.paths, git if top else None)
    source = into if selection.staged and into is not None else root
    return await asyncio.to_thread(_read, chosen, root, source, bounds or Bounds())


def _check(selection: FileSelection, into: Path | None) -> None:
    ways = [bool(selection.paths), selection.changed, selection.staged, selection.pending is not None]
    if not any(ways):
        raise BadArgument(f"nothing says which files are to be verified; give {_WAYS}")
    if sum(ways) > 1:
        raise BadArgument(f"there is one way of choosing files at a time; give only one of {_WAYS}")
    if selection.ref is not None and not selection.changed:
        raise BadArgument("a commit to compare with goes with --changed")
    if selection.staged and into is None:
        raise BadArgument("staged contents need a folder to be written to")


@dataclass(slots=True)
class _Chosen:
    found: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)  # by themselves: one that is left out is an error
    left_out: list[LeftOut] = field(default_factory=list)
    markers: tuple[Marker, ...] = ()


async def _choose_paths(chosen: _Chosen, folder: Path, root: Path, paths: Iterable[str], git: Git | None) -> None:
    for name in paths:
        place, is_folder = await asyncio.to_thread(_look_up, folder, root, name)
        if not is_folder:
            chosen.named.add(place)
            chosen.found.append(place)
            continue
        found = await _below(root, place, git)
        chosen.found += found.files
        chosen.left_out += found.left_out


async def _below(root: Path, place: str, git: Git | None) -> FoundFiles:
    if git is None:
        return await asyncio.to_thread(walk, root, place)
    return among(await git.listed(root / place), place)


def _look_up(folder: Path, root: Path, name: str) -> tuple[str, bool]:
    """Return where a named path lies under the root, and whether it is a folder."""
    path = folder / name
    place = place_in(root, path) if name else None
    if place is None:
        raise BadArgument(
            f"{name!r} is not under {root}, which is what is verified from here",
            suggestions=("go to its folder first",),
        )
    try:
        if not path.exists():
            raise BadFile(name, "there is no such file or folder")
    except OSError as error:  # a name too long, a folder that may not be looked into
        raise BadFile(name, f"it cannot be read: {error.strerror}") from error
    return place, path.is_dir()


def _read(chosen: _Chosen, root: Path, source: Path, bounds: Bounds) -> Selected:
    """Read every file: what is left out, cannot be read or cannot be verified is known now."""
    redactor, files, left_out = Redactor(), list[str](), set(chosen.left_out)
    wrong: list[Unverifiable] = []
    secrets: list[UnseenSecret] = []
    total = redacted = 0
    wanted = sorted(set(chosen.found))
    for number, path in enumerate(wanted, 1):
        found = _read_one(source, path, path in chosen.named, redactor, bounds)
        if isinstance(found, LeftOut):
            left_out.add(found)
        elif isinstance(found, Unverifiable):
            wrong.append(found)
        elif not bounds.is_seen(path):
            left_out.add(LeftOut(path=path, why=NOBODY))
            secrets += (UnseenSecret(file=path, line=one.line, kind=one.kind) for one in found.secrets)
        else:
            files.append(path)
            total += len(found.text.encode())
            redacted += found.redacted
        if total > bounds.limits.total_bytes:
            raise _too_much(total, number, len(wanted), bounds.limits)
    if wrong:
        raise _unverifiable(wrong)
    return Selected(
        root=root,
        source=source,
        files=tuple(files),
        left_out=tuple(sorted(left_out, key=lambda one: one.path)),
        markers=chosen.markers,
        bytes=total,
        redacted=redacted,
        unseen_secrets=tuple(secrets),
    )


def _read_one(
    source: Path, path: str, named: bool, redactor: Redactor, bounds: Bounds
) -> Source | LeftOut | Unverifiable:
    found = _looked_into(source, path, named, redactor, bounds)
    unseen = isinstance(found, Source) and not bounds.is_seen(path)
    why = NOBODY if unseen else found.why if isinstance(found, LeftOut) else ""
    if named and why:
        raise BadArgument(f"{path} was named and cannot be verified: {why}", suggestions=("do not name it",))
    return found


def _looked_into(
    source: Path, path: str, named: bool, redactor: Redactor, bounds: Bounds
) -> Source | LeftOut | Unverifiable:
    if why := bounds.why_not(path):
        return LeftOut(path=path, why=why)
    if not named and place_in(source, path) is None:
        return LeftOut(path=path, why="a symbolic link that leads out")
    found = look_into(source, path, redactor=redactor)
    # One that no agent looks at is read for its secrets; when it cannot be read for them either, it is left out.
    return LeftOut(path=path, why=NOBODY) if isinstance(found, Unverifiable) and not bounds.is_seen(path) else found


def _unverifiable(wrong: Sequence[Unverifiable]) -> BadArgument:
    """Name the files that somebody should look at and nobody can: to go on without them would be to let them pass."""
    told = [f"{one.path} ({one.why})" for one in wrong[:MOST_TOLD]]
    more = [f"and {len(wrong) - MOST_TOLD:,} more"] if len(wrong) > MOST_TOLD else []
    return BadArgument(
        f"{len(wrong):,} of the files cannot be verified: {', '.join([*told, *more])}",
        suggestions=(
            "take them out with exclude: [GLOB, …] at the top of verify.yaml; muster init NAME --kind verify makes one",
            "or save them as UTF-8, in smaller files with shorter lines",
        ),
    )


def _too_much(total: int, number: int, of: int, limits: Limits) -> BadArgument:
    return BadArgument(
        f"the first {number:,} of {of:,} files have {total:,} bytes, more than the {limits.total_bytes:,} allowed",
        suggestions=("name fewer files or folders", "or raise total_bytes under limits in verify.yaml"),
    )

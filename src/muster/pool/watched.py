"""Files outside of its working tree that the agent of a task must leave alone, as they are: content, links, rights."""

import os
from collections.abc import Iterator, Sequence
from hashlib import file_digest, sha256
from itertools import islice
from pathlib import Path

MAX_FILES = 500  # below one folder that are read; of more, only sizes and times of change are compared
_MAX_FOLDERS = 1_000  # in which they are looked for
_PATTERN = "*."  # begins the last part of what stands for all files in a folder with one suffix
_COMPILED = (".pyc", ".pyo")
_SHOWN = 32  # characters of a digest


def watched_state(paths: Sequence[str]) -> dict[str, str]:
    """Return what files are now, by "file" and their paths; a folder, or `FOLDER/*.SUFFIX`, stands for all in it."""
    found: dict[str, str] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        suffix = name.removeprefix("*") if name.startswith(_PATTERN) else ""
        if suffix or Path(path).is_dir():
            found |= _folder_state(folder if suffix else path, suffix)
        elif os.path.lexists(path):
            found[f"file {path}"] = _file_state(Path(path))
    return found


def _folder_state(folder: str, suffix: str) -> dict[str, str]:
    files = list(_files_below(folder, suffix))
    if len(files) <= MAX_FILES:
        return {f"file {path}": _file_state(path) for path in files}
    listed = sha256()
    for path in files:
        listed.update(f"{path}\0{_stamp(path)}\n".encode("utf-8", "surrogateescape"))
    return {f"file {folder}": f"{len(files)} files, {listed.hexdigest()[:_SHOWN]}"}


def _stamp(path: Path) -> str:
    """Return the size of a file, and when it was changed, which nobody can set back."""
    try:
        found = path.lstat()
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _files_below(folder: str, suffix: str) -> Iterator[Path]:
    """Yield the files below a folder; without caches, which checkers write themselves."""
    for top, folders, names in islice(os.walk(folder), _MAX_FOLDERS):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and "cache" not in name)
        wanted = (name for name in sorted(names) if name.endswith(suffix) and not name.endswith(_COMPILED))
        yield from (Path(top) / name for name in wanted)


def _file_state(path: Path) -> str:
    real = os.path.realpath(path)
    place = "" if real == str(path) else f", a link to {real}"
    rights = "" if os.access(path, os.X_OK) else ", not executable"
    try:
        if not Path(real).is_file():
            return f"not a file{place}"
        with path.open("rb") as file:
            return f"sha256 {file_digest(file, 'sha256').hexdigest()[:_SHOWN]}{rights}{place}"
    except OSError as error:
        return f"unreadable: {error.strerror}{place}"

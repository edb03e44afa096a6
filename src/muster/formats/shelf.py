"""Files that a suite names: goldens, schemas, datasets. They are looked for near the suite, and nowhere else."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath

from muster.formats.flaw import Unreadable
from muster.formats.source import whole_text

MOST_BYTES = 4_000_000
_KEPT = 64  # texts that are kept at hand: many cases name the same file
_FENCES = (".git", "muster.toml")  # a folder with one of them is the root of a project
_UNFENCED = 3  # folders above the suite that are looked into when nothing says where the project ends


class Shelf:
    """Finds and reads what stands near one suite."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._above = _folders_above(self.folder)
        self._texts: dict[str, str] = {}

    @property
    def folders(self) -> tuple[Path, ...]:
        """The suite's folder and those above it, the last of which is the root of the project."""
        return (self.folder, *self._above)

    def find(self, name: str, suites: Sequence[str] = ()) -> Path:
        """Find a named file, in the end also as SUITE/golden/FILE; raises Unreadable when there is none."""
        parts = _named(name)
        for base, rest in chain(self._candidates(parts), self._goldens(parts, suites)):
            if found := _regular(base, rest):
                return found
        raise Unreadable(f"there is no file {name} beside the suite, in {self.folder}, or above it")

    def beside(self, name: str) -> Path | None:
        """Find a file that has its place right beside the suite; as a link it may lead anywhere in the project."""
        path = self.folder / name
        if not path.exists():
            return None
        real = path.resolve()
        if not any(real.is_relative_to(base) for base in (self.folder, *self._above)):
            raise Unreadable("it is a link that leads out of the project")
        return real

    def text(self, name: str, suites: Sequence[str] = ()) -> str:
        """Read a named file; a golden one may stand in the folder of its suite."""
        if name not in self._texts:
            if len(self._texts) >= _KEPT:
                self._texts.clear()
            path = self.find(name, suites)
            try:
                self._texts[name] = whole_text(path, MOST_BYTES)
            except Unreadable as error:
                place = name if error.line is None else f"{name}:{error.line}"
                raise Unreadable(f"{place}: {error.message}") from None
        return self._texts[name]

    def home_of(self, command: Sequence[str]) -> Path:
        """Say from which folder a command is meant: the nearest one that has a file which it names."""
        names = [word for word in command if "/" in word or "." in word]
        for base in (self.folder, *self._above):
            if any(_is_there(base, name) for name in names):
                return base
        return self.folder

    def _candidates(self, parts: tuple[str, ...]) -> Iterator[tuple[Path, tuple[str, ...]]]:
        yield self.folder, parts
        if not any(part.startswith(".") for part in parts):  # what is hidden above is none of the suite's business
            yield from ((base, parts) for base in self._above)
        # Suites are moved around: one that names its files from an old root still has them below itself.
        yield from ((self.folder, parts[start:]) for start in range(1, len(parts)))

    def _goldens(self, parts: tuple[str, ...], suites: Sequence[str]) -> Iterator[tuple[Path, tuple[str, ...]]]:
        """Return the places of a golden file of a suite whose file stands beside the folder with its name."""
        for suite in suites:
            yield self.folder, (suite, *parts)
            yield from ((base, (suite, "golden", parts[-1])) for base in (self.folder, *self._above))


def _named(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise Unreadable(f"{name!r} may not be named: name a file below the suite's folder, without ..")
    if not path.parts:
        raise Unreadable(f"{name!r} names no file")
    return path.parts


def _regular(base: Path, parts: tuple[str, ...]) -> Path | None:
    try:
        path = base.joinpath(*parts)
        if not path.is_file():
            return None
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):  # a name that is too long, or a link that leads to itself
        return None
    if not real.is_relative_to(base):
        raise Unreadable(f"{'/'.join(parts)} is a link that leads out of {base}")
    return real


def _is_there(base: Path, name: str) -> bool:
    try:
        return _regular(base, _named(name)) is not None
    except Unreadable:
        return False


def _folders_above(folder: Path) -> tuple[Path, ...]:
    """Give the folders above, up to the root of the project; the root of the file system is never one of them."""
    folders = [folder, *folder.parents][:-1]
    fence = next((index for index, base in enumerate(folders) if any((base / name).exists() for name in _FENCES)), None)
    if fence is None:
        working = Path.cwd()
        fence = folders.index(working) if working in folders[1:] else _UNFENCED
    return tuple(folders[1 : fence + 1])

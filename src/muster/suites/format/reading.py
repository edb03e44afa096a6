"""Reads one suite as it is written: its head first, then case by case. Nothing is resolved here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from muster.domain.errors import NotFound
from muster.domain.media import Media, MediaKind
from muster.suites.format.forms import CaseForm, HeadForm
from muster.suites.format.names import rest_of, unknown_names
from muster.text.diagnostics import Diagnostics, places_of
from muster.text.document_tree import Flaw, Map, Unreadable
from muster.text.documents.readers import READERS
from muster.text.documents.toml_reader import TomlFile
from muster.text.documents.yaml_reader import YamlFile
from muster.text.files import shown, whole_text
from muster.text.media_files import media_at

PROMPT = "prompt.md"
MAX_PROMPT = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCase:
    """One case as it stands in the file; without a form it does not fit one."""

    tree: Any
    line: int
    form: CaseForm | None
    rest: CaseForm | None = None  # of a case that does not fit, what can be looked at all the same
    diagnostics: Diagnostics


class SuiteReader:
    """One suite file that is being read.

    With `once` its cases are not parsed before they are read, if they can do without: whoever wants to hear first what
    is wrong anywhere in the file reads it without that.
    """

    def __init__(self, path: Path, *, once: bool = False) -> None:
        if not path.exists():
            raise NotFound(f"no such file: {path}")
        self.path, self.file = path, shown(path)
        self.files = SuiteFiles(path.parent)
        self.tree = Map(1)
        self.head: HeadForm | None = None  # None when it does not fit
        self.prompt: str | None = None
        self.flaws: list[Flaw] = []  # of all but the cases
        self.doubts: list[Flaw] = []
        try:
            source = _source(path)
            self._read_head(source, once=once)
        except Unreadable as error:
            self.flaws.append(self.flaw(error))
        self._read_prompt()

    @property
    def name(self) -> str:
        """The skill or agent that is tested, or else the name of the file."""
        return self.head.skill_or_agent if self.head is not None else self.path.stem

    def written(self) -> Iterator[WrittenCase]:
        """Yield the cases as they stand there; raises Unreadable when the file changed since its head was read."""
        if not self.tree:  # not even the head could be read
            return
        for tree, line in self._cases():
            name = tree.get("id") if isinstance(tree, Mapping) else None
            diagnostics = Diagnostics(self.file, tree, line, str(name) if isinstance(name, str) else "")
            form = rest = None
            if isinstance(tree, Unreadable):
                diagnostics.flaws.append(self.flaw(tree))
                yield WrittenCase(tree=None, line=line, form=None, diagnostics=diagnostics)
                continue
            form = _whole(tree)
            if form is None:
                diagnostics.take_names(unknown_names(CaseForm, tree))
                try:
                    form = CaseForm.model_validate(tree)
                except ValidationError as error:
                    diagnostics.take(error)
                    rest = rest_of(tree, places_of(error), f"{self.name}/line-{line}")
            yield WrittenCase(tree=tree, line=line, form=form, diagnostics=diagnostics, rest=rest)

    def flaw(self, error: Unreadable) -> Flaw:
        """Return the flaw of a file that cannot be read."""
        return Flaw(file=self.file, line=error.line, column=error.column, message=error.message)

    def _read_head(self, source: YamlFile | TomlFile, *, once: bool) -> None:
        first = None
        self._cases: Callable[[], Iterator[tuple[Any, int]]] = source.cases
        if once and isinstance(source, YamlFile) and (first := source.first_head()) is not None:
            self._cases = partial(source.cases, once=True)
        self.tree = source.head() if first is None else first
        diagnostics = Diagnostics(self.file, self.tree, self.tree.line)
        diagnostics.take_names(unknown_names(HeadForm, self.tree))
        try:
            self.head = HeadForm.model_validate(self.tree)
        except ValidationError as error:
            diagnostics.take(error)
        if "cases" not in self.tree:
            diagnostics.say(("cases",), "missing; a suite needs a list of cases")
        self.flaws += diagnostics.flaws
        self.doubts += diagnostics.doubts

    def _read_prompt(self) -> None:
        try:
            path = self.files.beside(PROMPT)
            text = "" if path is None else whole_text(path, MAX_PROMPT)
        except Unreadable as error:
            file = shown(self.path.parent / PROMPT)
            self.flaws.append(Flaw(file=file, line=error.line, message=error.message))
        else:
            self.prompt = text if text.strip() else None


def _whole(tree: Any) -> CaseForm | None:
    """Return the form of a case that has only known fields and fits; None when something is to be said about it."""
    try:
        return CaseForm.model_validate(tree, extra="forbid")
    except ValidationError:
        return None


def _source(path: Path) -> YamlFile | TomlFile:
    kind = READERS.get(path.suffix.lower())
    if kind is None:
        raise Unreadable(f"the name of a suite must end in one of {', '.join(READERS)}")
    return kind(path)


MAX_BYTES = 4_000_000
_KEPT = 64  # texts that are kept at hand: many cases name the same file
_FENCES = (".git", "muster.toml")  # a folder with one of them is the root of a project
_UNFENCED = 3  # folders above the suite that are looked into when nothing says where the project ends


class SuiteFiles:
    """Finds and reads what stands near one suite."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._above = _folders_above(self.folder)
        self._texts: dict[str, str] = {}
        self._shown: dict[str, Media] = {}  # by name, without their bytes
        self.media: dict[str, Path] = {}  # where the images and documents are that were named, by digest

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
                self._texts[name] = whole_text(path, MAX_BYTES)
            except Unreadable as error:
                place = name if error.line is None else f"{name}:{error.line}"
                raise Unreadable(f"{place}: {error.message}") from None
        return self._texts[name]

    def shown(self, name: str, kind: MediaKind) -> Media:
        """Return a named image or document; its bytes are read again when they are stored."""
        if name not in self._shown:
            path = self.find(name)
            try:
                found = media_at(path)
            except Unreadable as error:
                raise Unreadable(f"{name}: {error.message}") from None
            self._shown[name] = found.reference
            self.media[found.digest] = path
        if self._shown[name].kind is not kind:
            raise Unreadable(f"{name}: is of the type {self._shown[name].type}, which is not of the type {kind} here")
        return self._shown[name]

    def home_of(self, command: Sequence[str]) -> Path:
        """Return from which folder a command is meant: the nearest one that has a file which it names."""
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
    """Return the folders above, up to the root of the project; the root of the file system is never one of them."""
    folders = [folder, *folder.parents][:-1]
    fence = next((index for index, base in enumerate(folders) if any((base / name).exists() for name in _FENCES)), None)
    if fence is None:
        working = Path.cwd()
        fence = folders.index(working) if working in folders[1:] else _UNFENCED
    return tuple(folders[1 : fence + 1])

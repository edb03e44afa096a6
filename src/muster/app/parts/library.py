"""What requests may name: agents and models that are declared, and the files of the library. `Muster.library`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from muster.app.base.file_kinds import CHAIN_STEM, COUNCIL_STEM, SUITE_STEM, is_chain, is_council, is_suite
from muster.domain.effort import split_effort
from muster.domain.errors import BadArgument, BadConfiguration, did_you_mean
from muster.domain.flaw import FieldFlaw, FlawCode, nearest
from muster.domain.named import COUNCIL_JUDGE
from muster.domain.order import FieldForm
from muster.settings import Settings
from muster.settings.sections import HumanSection
from muster.text.documents.readers import READERS

MAX_FILES = 2_000
MAX_NAMED = 20  # in a suggestion
STEMS = frozenset({SUITE_STEM, CHAIN_STEM, COUNCIL_STEM})


class LibraryKind(StrEnum):
    """What a file of the library is."""

    SUITE = "suite"
    CHAIN = "chain"
    COUNCIL = "council"


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryItem:
    """A suite, a chain or the policy of a council, by the name that requests use."""

    kind: LibraryKind
    name: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedAgent:
    """An agent that requests may name, and what it is."""

    name: str
    kind: str  # as muster.toml declares it; of one that is named by its provider and model it is "model"
    model: str | None = None  # where one is declared


class Library:
    """The agents and files that requests may name; they name nothing else of this machine."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @property
    def agents(self) -> Sequence[str]:
        """The names of agents that requests may name."""
        return list(dict.fromkeys((*self._settings.agents, *self._settings.serve.models)))

    def offers(self) -> Sequence[OfferedAgent]:
        """Return the agents that requests may name, with what they are."""
        return [self._offer(name) for name in self.agents]

    def _offer(self, name: str) -> OfferedAgent:
        section = self._settings.agents.get(name)
        if section is None:
            return OfferedAgent(name=name, kind="model")
        return OfferedAgent(name=name, kind=section.kind, model=getattr(section, "model", None))

    @property
    def people(self) -> frozenset[str]:
        """The names of agents that are persons: a run waits for their answers."""
        return frozenset(name for name, one in self._settings.agents.items() if isinstance(one, HumanSection))

    def require_agents(self, named: Iterable[tuple[str, str | None]]) -> None:
        """Raise BadArgument for all agents that requests may not name, by the fields that do; None is the usual one."""
        known = self.agents
        flaws = [
            _unknown(field, f"agent {name[:100]!r} is not available to requests", name, known, "known agents: ")
            for field, name in named
            if name is not None and name not in known and split_effort(name)[0] not in known
        ]
        if flaws:
            raise BadArgument.of(flaws, suggestions=tuple(dict.fromkeys(flaw.suggestion for flaw in flaws)))

    def flaws(self, named: Iterable[tuple[FieldForm, str, str]]) -> Sequence[FieldFlaw]:
        """Return what is wrong with names of a request, each after what it names and the path of its field."""
        given = list(named)
        asked = [(path, name) for form, path, name in given if form is FieldForm.AGENT]
        agents = [(path, name) for path, name in asked if not name.startswith(COUNCIL_JUDGE)]
        found = _raised(self.require_agents, agents)
        for kind in LibraryKind:
            files = [(path, name) for form, path, name in given if form.value == kind.value]
            found += _raised(self.find_all, kind, files) if files else []
        return found

    def items(self) -> Sequence[LibraryItem]:
        """Return what the library holds; raises BadConfiguration for two files of one kind and name."""
        found: dict[tuple[LibraryKind, str], LibraryItem] = {}
        for item in self._found():
            other = found.setdefault((item.kind, item.name), item)
            if other.path.resolve() != item.path.resolve():
                raise BadConfiguration(
                    f"library.paths: two files are the {item.kind} {item.name!r}: "
                    f"{self._place(other.path)} and {self._place(item.path)}",
                    suggestions=("rename one of them",),
                )
        return [found[key] for key in sorted(found)]

    def find(self, kind: LibraryKind, name: str, field: str) -> Path:
        """Return the file of a name; raises BadArgument for a name that the library does not have."""
        return self.find_all(kind, [(field, name)])[0]

    def find_all(self, kind: LibraryKind, named: Sequence[tuple[str, str]]) -> Sequence[Path]:
        """Return the files of names; raises BadArgument for all that the library does not have, by their fields."""
        items = {item.name: item.path for item in self.items() if item.kind is kind}
        flaws = [
            _unknown(field, f"the library has no {kind} {name[:100]!r}", name, items, "it has: ")
            for field, name in named
            if name not in items
        ]
        if flaws:
            raise BadArgument.of(flaws, suggestions=tuple(dict.fromkeys(flaw.suggestion for flaw in flaws)))
        return [items[name] for _, name in named]

    def judge(self, name: str | None) -> str | None:
        """Return a judge as a suite takes it: an agent that requests may name, or a council of the library."""
        if name is None or not name.startswith(COUNCIL_JUDGE):
            self.require_agents([("judge", name)])
            return name
        return f"{COUNCIL_JUDGE}{self.find(LibraryKind.COUNCIL, name.removeprefix(COUNCIL_JUDGE), 'judge')}"

    def _place(self, path: Path) -> Path:
        """Return a path as muster.toml would name it."""
        folder = self._settings.folder
        return path.relative_to(folder) if path.is_relative_to(folder) else path

    def _found(self) -> Iterator[LibraryItem]:
        for top in self._settings.library.paths:
            path = self._settings.folder / top
            if not path.exists():
                raise BadConfiguration(f"library.paths: {top} not found", suggestions=("correct muster.toml",))
            files = [path] if path.is_file() else sorted(path.rglob("*"))[:MAX_FILES]
            for file in files:
                kind = _kind_of(file)
                if kind is not None:
                    yield LibraryItem(kind=kind, name=_name_of(file, path), path=file)


def _raised(check: Callable[..., object], *given: Any) -> list[FieldFlaw]:
    try:
        check(*given)
    except BadArgument as error:
        return list(error.flaws)
    return []


def _unknown(field: str, message: str, name: str, known: Iterable[str], before: str) -> FieldFlaw:
    """Return that the value of a field names nothing that there is, with what may be meant or what there is."""
    near = nearest(name, known)
    way = did_you_mean([near])[0] if near else f"{before}{_known(known) or 'none'}"
    return FieldFlaw(path=field, message=message, code=FlawCode.UNKNOWN, suggestion=way, by_itself=True)


def _known(names: Iterable[str]) -> str:
    """Return what can be named instead; nothing when there is nothing."""
    known = sorted(names)
    return ", ".join(known[:MAX_NAMED]) + (", …" if len(known) > MAX_NAMED else "")


def _kind_of(file: Path) -> LibraryKind | None:
    if file.suffix.lower() not in READERS or not file.is_file():
        return None
    if is_council(file):
        return LibraryKind.COUNCIL
    if is_chain(file):
        return LibraryKind.CHAIN
    return LibraryKind.SUITE if is_suite(file) else None


def _name_of(file: Path, top: Path) -> str:
    """Return the name of a file: where it is below its folder, without the ending; of `x/cases.yaml` it is `x`."""
    if file == top:
        return file.parent.name if file.stem.lower() in STEMS else file.stem
    place = file.relative_to(top)
    if file.stem.lower() in STEMS:
        return place.parent.as_posix() if place.parent.parts else top.name
    return place.with_suffix("").as_posix()

"""verify.yaml as a value: who verifies, in which wave, and what must hold over all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from muster.domain.errors import BadConfiguration, BadFile, NotFound
from muster.domain.verification import AllowedSecret, Kind, Limits, Verifier
from muster.formats.complaints import Complaints
from muster.formats.flaw import MOST_FLAWS, Flaw, Unreadable
from muster.formats.readers import READERS
from muster.formats.source import opened, shown
from muster.formats.toml_reader import TomlFile
from muster.formats.tree import Items, Map
from muster.formats.waves.forms import ALLOWED, LIMITS, TOP, TopForm, unknown
from muster.formats.waves.resolve import read_thresholds, resolve
from muster.formats.yaml_reader import YamlFile

MOST_BYTES = 4_000_000
MOST_AGENTS = 1_000
_USUAL = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One file with verification agents that is sound."""

    file: str
    agents: tuple[Verifier, ...]  # as they were declared: one may name no model
    model: str = ""  # of agents that name none
    thresholds: tuple[str, ...] = ()  # over all agents together
    exclude: tuple[str, ...] = ()  # globs of files that nobody is to look at
    limits: Limits = _USUAL
    allow_secrets: tuple[AllowedSecret, ...] = ()
    fallback: str = ""  # the model when nobody says anything at all

    @property
    def waves(self) -> tuple[int, ...]:
        """The waves that there are, in order."""
        return tuple(sorted({agent.wave for agent in self.agents}))

    def verifiers(self, model: str | None = None, otherwise: str | None = None) -> tuple[Verifier, ...]:
        """Give the agents with a model for each: its own, else the given one, else the file's, else the other.

        Raises BadConfiguration when there is none for somebody.
        """
        chosen = model or self.model or otherwise or self.fallback
        return tuple(self._with_model(agent, chosen) for agent in self.agents)

    def _with_model(self, agent: Verifier, chosen: str) -> Verifier:
        if agent.kind is Kind.COMMAND or agent.model:
            return agent
        if not chosen:
            raise BadConfiguration(
                f"{self.file}: {agent.name} names no model, and nothing else says which one to ask",
                suggestions=(f"put model: MODEL at the top of {self.file}", "--model MODEL"),
            )
        return replace(agent, model=chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What is in a file with verification agents, and everything that is wrong with it."""

    file: str
    declaration: Declaration | None  # None when something is wrong
    flaws: tuple[Flaw, ...] = ()


def read_declaration(path: Path) -> Declaration:
    """Read verify.yaml; raises NotFound, or one BadFile with everything that is wrong."""
    found = inspect(path)
    if found.declaration is None:
        first, *rest = found.flaws
        message = ": ".join(part for part in (first.case, first.message) if part)
        raise BadFile(first.file, "\n".join([message, *map(str, rest)]), line=first.line, column=first.column)
    return found.declaration


def inspect(path: Path) -> Inspection:
    """Look through verify.yaml, and say everything that is wrong with it, up to a bound."""
    if not path.exists():
        raise NotFound(f"there is no {path}", suggestions=("muster init NAME --kind verify makes one",))
    file = shown(path)
    try:
        tree = _tree(path)
    except Unreadable as error:
        flaw = Flaw(file=file, line=error.line, column=error.column, message=error.message)
        return Inspection(file=file, declaration=None, flaws=(flaw,))
    reading = _Reading(file, path.parent, tree)
    declaration = reading.declaration()
    return Inspection(file=file, declaration=declaration, flaws=tuple(reading.flaws[:MOST_FLAWS]))


def _tree(path: Path) -> Map:
    kind = READERS.get(path.suffix.lower())
    if kind is None:
        raise Unreadable(f"a file with verification agents is one of {', '.join(READERS)}")
    with opened(path) as file:
        if len(file.read(MOST_BYTES + 1)) > MOST_BYTES:
            raise Unreadable(f"it is larger than {MOST_BYTES:,} bytes, which is the most for such a file")
    return YamlFile(path).head() if kind is YamlFile else _toml_tree(TomlFile(path, "agents"))


def _toml_tree(source: TomlFile) -> Map:
    tree = source.head()
    if "agents" in tree:
        agents = Items(tree.lines["agents"])
        for agent, line in source.cases():
            agents.add(agent, line)
        tree.put("agents", agents, agents.line)
    return tree


class _Reading:
    """One file that is being read."""

    def __init__(self, file: str, folder: Path, tree: Map) -> None:
        self._file, self._folder, self._tree = file, folder, tree
        self._top = Complaints(file, tree, tree.line)
        self._agents: list[Complaints] = []

    @property
    def flaws(self) -> list[Flaw]:
        """All that is wrong, from top to bottom."""
        found = [flaw for complaints in (self._top, *self._agents) for flaw in complaints.flaws]
        return sorted(found, key=lambda flaw: flaw.line or 0)

    def declaration(self) -> Declaration | None:
        """Give what is declared; None when there is a flaw."""
        form = self._form()
        given = self._tree.get("thresholds")
        thresholds = () if given is None else read_thresholds(given, self._top)
        agents = self._verifiers(form.max_tokens if form else None)
        if form is None or self.flaws:
            return None
        return Declaration(
            file=self._file,
            agents=tuple(agents),
            model=form.model or "",
            thresholds=thresholds,
            exclude=tuple(form.exclude),
            limits=Limits(**form.limits.model_dump(include=set(LIMITS))),
            allow_secrets=tuple(AllowedSecret(**one.model_dump(include=set(ALLOWED))) for one in form.allow_secrets),
        )

    def _form(self) -> TopForm | None:
        for key, message in unknown(self._tree, TOP):
            self._top.say((key,), message)
        for key, message in unknown(self._tree.get("limits"), LIMITS):
            self._top.say(("limits", key), message)
        allowed = self._tree.get("allow_secrets")
        for index, one in enumerate(allowed if isinstance(allowed, list) else ()):
            for key, message in unknown(one, ALLOWED):
                self._top.say(("allow_secrets", index, key), message)
        try:
            return TopForm.model_validate(self._tree)
        except ValidationError as error:
            self._top.take(error)
            return None

    def _verifiers(self, max_tokens: int | None) -> list[Verifier]:
        listed = self._tree.get("agents")
        if not isinstance(listed, list) or not 0 < len(listed) <= MOST_AGENTS:
            self._top.say(("agents",), _list_flaw(listed))
            return []
        found, names = [], [_name(tree) for tree in listed]
        for index, tree in enumerate(listed):
            line = listed.lines[index] if isinstance(listed, Items) else self._tree.lines["agents"]
            complaints = Complaints(self._file, tree, line, names[index])
            self._agents.append(complaints)
            found.append(resolve(tree, self._folder, complaints, max_tokens))
            if names[index] and names[index] in names[:index]:
                complaints.say(("name",), "there is an agent of this name already")
        return [verifier for verifier in found if verifier is not None]


def _list_flaw(listed: Any) -> str:
    if listed is None:
        return "it is missing: a list of agents"
    if not isinstance(listed, list):
        return "it must be a list of agents"
    return f"there are more than {MOST_AGENTS:,}" if listed else "it is empty: nobody would verify anything"


def _name(tree: Any) -> str:
    name = tree.get("name") if isinstance(tree, Mapping) else None
    return str(name) if isinstance(name, str) else ""

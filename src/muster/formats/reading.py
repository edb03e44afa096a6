"""Reads one suite as it is written: its head first, then case by case. Nothing is resolved here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from muster.domain.errors import NotFound
from muster.formats.complaints import Complaints, places_of
from muster.formats.flaw import Flaw, Unreadable
from muster.formats.forms import CaseForm, HeadForm
from muster.formats.names import unknown_names
from muster.formats.partial import rest_of
from muster.formats.readers import READERS
from muster.formats.shelf import Shelf
from muster.formats.source import shown, whole_text
from muster.formats.toml_reader import TomlFile
from muster.formats.tree import Map
from muster.formats.yaml_reader import YamlFile

PROMPT = "prompt.md"
MOST_PROMPT = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One case as it stands in the file; without a form it does not fit one."""

    tree: Any
    line: int
    form: CaseForm | None
    rest: CaseForm | None = None  # of a case that does not fit, what can be looked at all the same
    complaints: Complaints


class Reading:
    """One suite file that is being read."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise NotFound(f"there is no {path}")
        self.path, self.file = path, shown(path)
        self.shelf = Shelf(path.parent)
        self.tree = Map(1)
        self.head: HeadForm | None = None  # None when it does not fit
        self.prompt: str | None = None
        self.flaws: list[Flaw] = []  # of all but the cases
        self.doubts: list[Flaw] = []
        try:
            self._source = _source(path)
            self._read_head()
        except Unreadable as error:
            self.flaws.append(self.flaw(error))
        self._read_prompt()

    @property
    def name(self) -> str:
        """The skill or agent that is tested, or else the name of the file."""
        return self.head.skill_or_agent if self.head is not None else self.path.stem

    def written(self) -> Iterator[Written]:
        """Give the cases as they stand there; raises Unreadable when the file changed since its head was read."""
        if not self.tree:  # not even the head could be read
            return
        for tree, line in self._source.cases():
            name = tree.get("id") if isinstance(tree, Mapping) else None
            complaints = Complaints(self.file, tree, line, str(name) if isinstance(name, str) else "")
            form = rest = None
            if isinstance(tree, Unreadable):
                complaints.flaws.append(self.flaw(tree))
                yield Written(tree=None, line=line, form=None, complaints=complaints)
                continue
            complaints.take_names(unknown_names(CaseForm, tree))
            try:
                form = CaseForm.model_validate(tree)
            except ValidationError as error:
                complaints.take(error)
                rest = rest_of(tree, places_of(error), f"{self.name}/line-{line}")
            yield Written(tree=tree, line=line, form=form, complaints=complaints, rest=rest)

    def flaw(self, error: Unreadable) -> Flaw:
        """Say that the file cannot be read."""
        return Flaw(file=self.file, line=error.line, column=error.column, message=error.message)

    def _read_head(self) -> None:
        self.tree = self._source.head()
        complaints = Complaints(self.file, self.tree, self.tree.line)
        complaints.take_names(unknown_names(HeadForm, self.tree))
        try:
            self.head = HeadForm.model_validate(self.tree)
        except ValidationError as error:
            complaints.take(error)
        if "cases" not in self.tree:
            complaints.say(("cases",), "it is missing")
        self.flaws += complaints.flaws
        self.doubts += complaints.doubts

    def _read_prompt(self) -> None:
        try:
            path = self.shelf.beside(PROMPT)
            text = "" if path is None else whole_text(path, MOST_PROMPT)
        except Unreadable as error:
            file = shown(self.path.parent / PROMPT)
            self.flaws.append(Flaw(file=file, line=error.line, message=error.message))
        else:
            self.prompt = text if text.strip() else None


def _source(path: Path) -> YamlFile | TomlFile:
    kind = READERS.get(path.suffix.lower())
    if kind is None:
        raise Unreadable(f"a suite is one of {', '.join(READERS)}")
    return kind(path)

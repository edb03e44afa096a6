"""verify.yaml as a value: who verifies, in which wave, and what must hold over all of them."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copymode
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from muster.domain.errors import BadArgument, BadConfiguration
from muster.text.diagnostics import Diagnostics
from muster.text.document_tree import MAX_FLAWS, Flaw, Items, Map, Unreadable
from muster.text.documents.declared import bad_file, read_tree, require_file, unreadable_flaw
from muster.text.files import shown
from muster.text.words import unknown_keys
from muster.verify.declaration.forms import ALLOWED, LIMITS, TOP, TopForm
from muster.verify.declaration.resolve import read_thresholds, resolve
from muster.verify.declaration.verification import AllowedSecret, Kind, Limits, Verifier

MAX_AGENTS = 1_000
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
    fail_named_secrets: bool = False
    fallback: str = ""  # the model when nobody says anything at all

    @property
    def waves(self) -> tuple[int, ...]:
        """The waves that there are, in order."""
        return tuple(sorted({agent.wave for agent in self.agents}))

    def verifiers(self, model: str | None = None, otherwise: str | None = None) -> tuple[Verifier, ...]:
        """Return the agents with a model for each: its own, else the given one, else the file's, else the other.

        Raises BadConfiguration when there is none for somebody.
        """
        chosen = model or self.model or otherwise or self.fallback
        return tuple(self._with_model(agent, chosen) for agent in self.agents)

    def _with_model(self, agent: Verifier, chosen: str) -> Verifier:
        if agent.kind is Kind.COMMAND or agent.model:
            return agent
        if not chosen:
            raise BadConfiguration(
                f"{self.file}: no model given for agent {agent.name}",
                suggestions=(f"or put model: MODEL at the top of {self.file}", "--model MODEL"),
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
        raise bad_file(found.flaws)
    return found.declaration


def inspect(path: Path) -> Inspection:
    """Look through verify.yaml, and say everything that is wrong with it, up to a bound."""
    require_file(path, kind="verify")
    file = shown(path)
    try:
        tree = read_tree(path, what="a file with verification agents", listed="agents")
    except Unreadable as error:
        return Inspection(file=file, declaration=None, flaws=(unreadable_flaw(path, error),))
    reading = _DeclarationReader(file, path.parent, tree)
    declaration = reading.declaration()
    return Inspection(file=file, declaration=declaration, flaws=tuple(reading.flaws[:MAX_FLAWS]))


class _DeclarationReader:
    """One file that is being read."""

    def __init__(self, file: str, folder: Path, tree: Map) -> None:
        self._file, self._folder, self._tree = file, folder, tree
        self._top = Diagnostics(file, tree, tree.line)
        self._agents: list[Diagnostics] = []

    @property
    def flaws(self) -> list[Flaw]:
        """All that is wrong, from top to bottom."""
        found = [flaw for diagnostics in (self._top, *self._agents) for flaw in diagnostics.flaws]
        return sorted(found, key=lambda flaw: flaw.line or 0)

    def declaration(self) -> Declaration | None:
        """Return what is declared; None when there is a flaw."""
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
            fail_named_secrets=form.named_secrets == "fail",
            allow_secrets=tuple(AllowedSecret(**one.model_dump(include=set(ALLOWED))) for one in form.allow_secrets),
        )

    def _form(self) -> TopForm | None:
        for key, message in unknown_keys(self._tree, TOP):
            self._top.say((key,), message)
        for key, message in unknown_keys(self._tree.get("limits"), LIMITS):
            self._top.say(("limits", key), message)
        allowed = self._tree.get("allow_secrets")
        for index, one in enumerate(allowed if isinstance(allowed, list) else ()):
            for key, message in unknown_keys(one, ALLOWED):
                self._top.say(("allow_secrets", index, key), message)
        try:
            return TopForm.model_validate(self._tree)
        except ValidationError as error:
            self._top.take(error)
            return None

    def _verifiers(self, max_tokens: int | None) -> list[Verifier]:
        listed = self._tree.get("agents")
        if not isinstance(listed, list) or not 0 < len(listed) <= MAX_AGENTS:
            self._top.say(("agents",), _list_flaw(listed))
            return []
        found, names = [], [_name(tree) for tree in listed]
        for index, tree in enumerate(listed):
            line = listed.lines[index] if isinstance(listed, Items) else self._tree.lines["agents"]
            diagnostics = Diagnostics(self._file, tree, line, names[index])
            self._agents.append(diagnostics)
            found.append(resolve(tree, self._folder, diagnostics, max_tokens))
            if names[index] and names[index] in names[:index]:
                diagnostics.say(("name",), "duplicate name of an agent")
        return [verifier for verifier in found if verifier is not None]


def _list_flaw(listed: Any) -> str:
    if listed is None:
        return "missing: a list of agents"
    if not isinstance(listed, list):
        return "must be a list of agents"
    return f"has more than {MAX_AGENTS:,} agents" if listed else "is empty: at least one agent is needed"


def _name(tree: Any) -> str:
    name = tree.get("name") if isinstance(tree, Mapping) else None
    return str(name) if isinstance(name, str) else ""


NAME = "verify.yaml"
SHIPPED = "the built-in agents"  # how they are told where a file would be named
_PROMPTS = "prompts"


@cache
def shipped() -> Declaration:
    """Return the shipped agents; their model is what the file says when nobody else says anything."""
    with as_file(files("muster.verify.declaration").joinpath("shipped")) as folder:
        found = read_declaration(folder / NAME)
    return replace(found, file=SHIPPED, model="", fallback=found.model)


def starter() -> Mapping[str, str]:
    """Return the shipped agents as files by their paths in a new folder."""
    folder = files("muster.verify.declaration").joinpath("shipped")
    prompts = sorted(folder.joinpath(_PROMPTS).iterdir(), key=lambda file: file.name)
    texts = {f"{_PROMPTS}/{file.name}": file.read_text(encoding="utf-8") for file in prompts}
    return {NAME: folder.joinpath(NAME).read_text(encoding="utf-8"), **texts}


KEY = "allow_secrets"
_HEAD = re.compile(rf"{KEY}:[ \t]*(?P<value>\[[ \t]*\])?[ \t]*(?P<comment>#.*)?")
_WITHIN = re.compile(r"[ \t].*|-(?:[ \t].*)?|#.*|")  # a line that can belong to a list below a key
_ITEM = re.compile(r"(?P<indent> *)-[ \t]")


def allow(path: Path, secrets: Sequence[AllowedSecret]) -> None:
    """Write exceptions into a declaration; raises BadArgument when its layout does not let that be done."""
    before = read_declaration(path)
    lines = [spelled(one) for one in secrets]
    text = path.read_bytes().decode("utf-8")
    changed = _with_items(text, lines)
    unfinished = path.with_name(f".{path.stem[:100]}.{uuid4().hex[:8]}.part{path.suffix}")
    try:
        unfinished.write_bytes(changed.encode("utf-8"))
        found = inspect(unfinished).declaration
        wanted = replace(before, allow_secrets=(*before.allow_secrets, *secrets))
        if found is None or replace(found, file=before.file) != wanted:
            raise _by_hand(path, lines)
        copymode(path, unfinished)
        unfinished.replace(path.resolve())
    except OSError as error:
        raise BadArgument(f"{path} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):  # it is in its place
            unfinished.unlink()


def spelled(secret: AllowedSecret) -> str:
    """Return an exception as it is written."""
    return f"{{file: {json.dumps(secret.file, ensure_ascii=False)}, line: {secret.line}, kind: {secret.kind}}}"


def _with_items(text: str, items: Sequence[str]) -> str:
    """Put items below the key, after those that are there; without the key it is put at the end."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(end)
    place = next((number for number, line in enumerate(lines) if _HEAD.fullmatch(line)), None)
    if place is None:
        body = text if not text or text.endswith(end) else text + end
        return body + end.join([f"{KEY}:", *(f"  - {item}" for item in items), ""])
    head = _HEAD.fullmatch(lines[place])
    if head is not None and head["value"]:
        lines[place] = f"{KEY}:{'  ' + head['comment'] if head['comment'] else ''}"
    last, indent = _last_item(lines, place)
    return end.join([*lines[: last + 1], *(f"{indent}- {item}" for item in items), *lines[last + 1 :]])


def _last_item(lines: Sequence[str], place: int) -> tuple[int, str]:
    """Return the last line of a list below a key, and how its items are indented."""
    last, indent = place, "  "
    for number in range(place + 1, len(lines)):
        line = lines[number]
        if not _WITHIN.fullmatch(line):
            break
        if line.strip() and not line.lstrip().startswith("#"):
            last = number
            item = _ITEM.match(line)
            indent = item["indent"] if item is not None and last == place + 1 else indent
    return last, indent


def _by_hand(path: Path, lines: Sequence[str]) -> BadArgument:
    items = ", ".join(lines)
    return BadArgument(
        f"{path} cannot be extended without changing its layout",
        suggestions=(f"add this by hand: {KEY}: [{items}]",),
    )

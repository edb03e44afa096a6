"""Turns one agent of verify.yaml into a verifier: files are read, thresholds parsed, what is missing is told."""

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from pydantic import ValidationError

from muster.domain.canonical import Json, JsonObject
from muster.domain.errors import BadArgument
from muster.text.diagnostics import Diagnostics
from muster.text.document_tree import Place, Plain, Unreadable, plain_value
from muster.text.expressions import PART, parse, spell_mapping
from muster.text.files_beside import object_beside, text_beside
from muster.text.json_documents import flaw_of
from muster.text.schemas.json_schema import schema_flaw
from muster.text.words import unknown_keys
from muster.verify.declaration.forms import AGENT, PARSERS, AgentForm, misplaced
from muster.verify.declaration.verification import Kind, Shape, Verifier

THRESHOLDS = ("critical == 0", "high == 0", "rejected == 0")  # of an agent that names none

_FILES = (".md", ".txt")
_GIVEN_BY = {"score": Shape.REVIEW, "coverage": Shape.TESTS}


def resolve(tree: Any, folder: Path, diagnostics: Diagnostics, max_tokens: int | None) -> Verifier | None:
    """Return the verifier; None when something is wrong with it, which is then complained about."""
    if not isinstance(tree, Mapping):
        diagnostics.say((), "must be a mapping")
        return None
    for key, message in (*unknown_keys(tree, AGENT), *misplaced(tree)):
        diagnostics.say((key,), message)
    reading = _AgentReader(tree, folder, diagnostics)
    texts = {"prompt": reading.prompt(), "schema": reading.schema(), "thresholds": reading.thresholds()}
    try:
        form = AgentForm.model_validate(tree)
    except ValidationError as error:
        diagnostics.take(error)
        return None
    parser = reading.parser(form)
    return None if diagnostics.flaws else _verifier(form, parser, max_tokens, texts)


def read_thresholds(given: Any, diagnostics: Diagnostics, place: Place = ("thresholds",)) -> tuple[str, ...]:
    """Read expressions from a list, one text or a mapping; complains about each that is none."""
    if isinstance(given, Mapping):
        parts: list[tuple[str | int, Any]] = [(name, {name: bound}) for name, bound in given.items()]
    elif isinstance(given, str | list):
        parts = list(enumerate(given if isinstance(given, list) else [given]))
    else:
        diagnostics.say(place, "must be a list of expressions, or a mapping of names to numbers")
        return ()
    found: list[str] = []
    for step, part in parts:
        try:
            found += _expressions(part)
        except (BadArgument, ValueError) as error:
            diagnostics.say((*place, step), str(error))
    return tuple(found)


def guessed_parser(command: tuple[str, ...]) -> str:
    """Name the parser for a program that is known, or nothing."""
    program = PurePath(command[0]).name.removesuffix(".exe")
    if program.startswith("python") and command[1:2] == ("-m",):
        program = command[2] if len(command) > 2 else ""
    return program if program in PARSERS else ""


def _expressions(part: Any) -> tuple[str, ...]:
    if isinstance(part, Mapping):
        return spell_mapping(plain_value(part))
    if not isinstance(part, str):
        raise BadArgument("must be an expression, such as critical + high == 0")
    return (parse(str(part)).text,)


def _verifier(form: AgentForm, parser: str, max_tokens: int | None, texts: Mapping[str, Any]) -> Verifier:
    return Verifier(
        name=form.name,
        wave=form.wave,
        kind=form.kind,
        include=tuple(form.include),
        model=form.model or "",
        shape=form.shape,
        dispatch=form.dispatch,
        max_tokens=form.max_tokens or max_tokens,
        temperature=form.temperature,
        command=tuple(form.command or ()),
        parser=parser,
        exits=tuple(form.exits),
        environment=form.env,
        timeout=form.timeout_secs,
        **texts,
    )


class _AgentReader:
    """One agent that is being read; looks at each of its keys as it was written, whatever is wrong with the others."""

    def __init__(self, tree: Mapping[str, Json], folder: Path, diagnostics: Diagnostics) -> None:
        self._tree, self._folder, self._say = tree, folder, diagnostics.say
        self._diagnostics = diagnostics
        self._is_model = tree.get("kind") in (None, Kind.MODEL)

    def prompt(self) -> str:
        """Return the text that a model is told."""
        text, file = self._tree.get("prompt"), self._tree.get("prompt_file")
        if text is not None and file is not None:
            self._say(("prompt_file",), "write prompt or prompt_file, not both")
        if not self._is_model:
            return ""
        if text is None and file is None:
            self._say(("prompt",), "missing: the prompt tells the model what to look for")
            return ""
        key, given = ("prompt", text) if file is None else ("prompt_file", file)
        return self._prompt_text(key, str(given)) if isinstance(given, str) else ""

    def _prompt_text(self, key: str, given: str) -> str:
        text = given
        try:
            if key == "prompt_file" or _names_file(given):
                text = text_beside(self._folder, given.strip())
        except Unreadable as error:
            hint = "; a prompt must not end like the name of a file" if key == "prompt" else ""
            self._say((key,), error.message + hint)
            return ""
        if not text.strip():
            self._say((key,), "is empty: the prompt tells the model what to look for")
        return text.strip()

    def schema(self) -> JsonObject | None:
        """Return the user's own schema."""
        given = self._tree.get("schema")
        if given is None:
            return None
        try:
            return self._schema(given)
        except (Unreadable, ValueError) as error:
            self._say(("schema",), str(error))
            return None

    def _schema(self, given: Any) -> JsonObject:
        named = isinstance(given, str) and not isinstance(given, Plain)
        found = object_beside(self._folder, str(given)) if named else plain_value(given)
        if not isinstance(found, dict):
            raise Unreadable("must be a JSON Schema as a mapping, or the name of a .json file")
        if wrong := flaw_of(found) or schema_flaw(found):
            raise Unreadable(f"not a valid JSON Schema: {wrong}")
        return found

    def thresholds(self) -> tuple[str, ...]:
        """Return the expressions that must hold; of an agent that names none, the usual ones."""
        given = self._tree.get("thresholds")
        if given is None:
            return THRESHOLDS
        found = read_thresholds(given, self._diagnostics)
        for name in dict.fromkeys(name for text in found for name in parse(text).names):
            self._require_given(name)
        return found

    def _require_given(self, name: str) -> None:
        """Refuse a threshold on something that a model of this shape never says: it could not hold."""
        needed = Shape.REVIEW if name.startswith(PART) else _GIVEN_BY.get(name)
        if self._is_model and needed not in (None, self._tree.get("shape", Shape.FINDINGS)):
            self._say(("thresholds",), f"{name} is never known here: only agents of the shape {needed} report it")

    def parser(self, form: AgentForm) -> str:
        """Return the name of what reads a command's output."""
        if form.kind is not Kind.COMMAND:
            return ""
        if form.command is None:
            self._say(("command",), "missing: a list of strings, [program, argument, …]")
            return ""
        found = form.parser or guessed_parser(tuple(form.command))
        if not found:
            self._say(("parser",), f"missing: one of {', '.join(PARSERS)}")
        return found


def _names_file(text: str) -> bool:
    return "\n" not in text.strip() and text.strip().lower().endswith(_FILES)

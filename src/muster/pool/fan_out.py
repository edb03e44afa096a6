"""fan-out.yaml: one agent and many prompts, each of them a task; results line up with prompts."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, ValidationError

from muster.domain.errors import BadFile, NotFound
from muster.domain.order import given_by
from muster.pool.order import AssignmentFields
from muster.text import forms as v
from muster.text.declared_forms import declared_form
from muster.text.diagnostics import Diagnostics
from muster.text.document_tree import Map, Unreadable
from muster.text.documents.readers import READERS
from muster.text.documents.yaml_reader import YamlFile
from muster.text.files import byte_lines, opened, shown
from muster.text.forms import Form

MAX_PROMPTS = 10_000
MAX_LINE = 4_000_000  # bytes


class PromptsForm(Form):
    """What a file has besides the fields of an assignment."""

    model_config = ConfigDict(extra="forbid")

    prompts: list[v.Text] | None = None
    file: v.String | None = None


FanOutForm: Any = declared_form(AssignmentFields, PromptsForm, name="FanOutForm")


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOut(AssignmentFields):
    """Many prompts for one agent."""

    prompts: tuple[str, ...]


def read_fan_out(path: Path) -> FanOut:
    """Read a fan-out file; raises NotFound, or BadFile with the line of what is wrong."""
    if not path.is_file():
        raise NotFound(f"no such file: {path}")
    file = shown(path)
    try:
        tree = _tree(path)
    except Unreadable as error:
        raise BadFile(file, error.message, line=error.line, column=error.column) from None
    try:
        form = FanOutForm.model_validate(tree)
    except ValidationError as error:
        diagnostics = Diagnostics(file, tree, tree.line)
        diagnostics.take(error)
        first = diagnostics.flaws[0]
        raise BadFile(file, first.message, line=first.line, column=first.column) from None
    if (form.prompts is None) == (form.file is None):
        raise BadFile(file, "set either prompts or file", line=1)
    prompts = tuple(form.prompts) if form.prompts is not None else tuple(_lines(path.parent / str(form.file)))
    if not prompts or len(prompts) > MAX_PROMPTS:
        raise BadFile(file, f"needs between 1 and {MAX_PROMPTS:,} prompts, not {len(prompts):,}", line=1)
    empty = next((place for place, prompt in enumerate(prompts, 1) if not prompt.strip()), None)
    if empty is not None:
        raise BadFile(file, f"prompt {empty} is empty", line=1)
    return FanOut(prompts=prompts, **given_by(AssignmentFields, form))


def _tree(path: Path) -> Map:
    kind = READERS.get(path.suffix.lower())
    if kind is not YamlFile:
        raise Unreadable("a fan-out file must be YAML")
    return YamlFile(path).head()


def _lines(path: Path) -> Iterator[str]:
    """Yield the prompts of a JSONL file: strings, or objects with a prompt."""
    if not path.is_file():
        raise NotFound(f"no such file: {path}")
    with opened(path) as file:
        for number, line in enumerate(byte_lines(file, MAX_LINE), 1):
            if line.strip():
                yield _prompt(path, number, line)


def _prompt(path: Path, number: int, line: bytes) -> str:
    try:
        found: Any = json.loads(line)
    except ValueError:
        raise BadFile(shown(path), "is not JSON", line=number) from None
    prompt = found.get("prompt") if isinstance(found, dict) else found
    if not isinstance(prompt, str):
        raise BadFile(shown(path), 'must be a string, or an object with "prompt"', line=number)
    return prompt

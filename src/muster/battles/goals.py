"""Files of goals and personas: YAML with a list `goals`, or JSON lines; what is wrong is told with its line."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from muster.battles.order import MAX_GOALS, BattleGoal
from muster.domain.errors import BadFile, NotFound
from muster.text import forms as v
from muster.text.diagnostics import Diagnostics, validation_words
from muster.text.document_tree import MAX_FLAWS, Flaw, Items, Unreadable
from muster.text.documents.yaml_reader import YamlFile
from muster.text.files import opened, shown, text_lines
from muster.text.forms import Form
from muster.text.json_documents import json_fault

MAX_BYTES = 10_000_000
_YAML, _LINES = (".yaml", ".yml", ".json"), (".jsonl", ".ndjson")


class GoalForm(Form):
    """One goal."""

    goal: v.Text = Field(min_length=1)
    persona: v.Text | None = None
    user_message: v.Text | None = None


def read_goals(path: Path) -> tuple[BattleGoal, ...]:
    """Read the goals of a file; raises NotFound, or BadFile with everything that is wrong."""
    if not path.exists():
        raise NotFound(f"no such file: {path}")
    file = shown(path)
    try:
        items = _items(path)
    except Unreadable as error:
        raise BadFile(file, error.message, line=error.line, column=error.column) from None
    diagnostics = Diagnostics(file, items, items.line)
    found = [_goal(one, place, diagnostics) for place, one in enumerate(items)]
    if diagnostics.flaws:
        raise _refused(sorted(diagnostics.flaws, key=lambda flaw: flaw.line or 0)[:MAX_FLAWS])
    if not found or len(found) > MAX_GOALS:
        raise BadFile(file, f"has {len(found):,} goals; it must have from 1 to {MAX_GOALS:,}")
    return tuple(one for one in found if one is not None)


def _refused(flaws: list[Flaw]) -> BadFile:
    first, *rest = flaws
    return BadFile(first.file, "\n".join([first.message, *map(str, rest)]), line=first.line, column=first.column)


def _items(path: Path) -> Items:
    with opened(path) as file:
        if len(file.read(MAX_BYTES + 1)) > MAX_BYTES:
            raise Unreadable(f"larger than {MAX_BYTES:,} bytes, the maximum for such a file")
    if path.suffix.lower() in _LINES:
        items = Items(1)
        for value, line in _rows(path):
            items.add(value, line)
        return items
    if path.suffix.lower() not in _YAML:
        raise Unreadable(f"a file of goals must be one of {', '.join((*_YAML, *_LINES))}")
    tree = YamlFile(path).head()
    unknown = next((name for name in tree if name != "goals" and not name.startswith("x-")), None)
    if unknown is not None:
        raise Unreadable(f"unknown key {unknown!r}; the only key is goals", tree.lines.get(unknown))
    goals = tree.get("goals")
    if not isinstance(goals, Items):
        raise Unreadable("goals must be a list", tree.lines.get("goals", tree.line))
    return goals


def _rows(path: Path) -> Iterator[tuple[Any, int]]:
    with opened(path) as file:
        for number, line in enumerate(text_lines(file, MAX_BYTES), 1):
            if not line.strip():
                continue
            try:
                yield json.loads(line), number
            except (ValueError, RecursionError) as error:
                raise Unreadable(f"not JSON: {json_fault(error)}", number) from None


def _goal(given: Any, place: int, diagnostics: Diagnostics) -> BattleGoal | None:
    written = {"goal": given} if isinstance(given, str) else given
    if not isinstance(written, Mapping):
        diagnostics.say((place,), "must be a text, or have goal, persona and user_message")
        return None
    for name in written:
        if name not in GoalForm.model_fields:
            diagnostics.say((place, name), f"unknown key; known keys: {', '.join(GoalForm.model_fields)}")
    try:
        form = GoalForm.model_validate(written)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            diagnostics.say((place, *detail["loc"]), validation_words(detail))
        return None
    return BattleGoal(goal=form.goal, persona=form.persona or "", user_message=form.user_message or "")

"""Turns a filled-in form into a case: defaults are applied and files read; variables are not filled in yet."""

import json
from pathlib import Path, PurePosixPath
from typing import Any

from muster.domain.call import Message, Quality, Role
from muster.domain.case import (
    DEFAULT_GOLDEN_THRESHOLD,
    Anchor,
    Case,
    CheckKind,
    Evaluator,
    Golden,
    OutputCheck,
    RubricItem,
    ScriptedTool,
    ToolExpectation,
    ToolResult,
)
from muster.formats.commands import leaving, missing, not_installed
from muster.formats.complaints import Complaints
from muster.formats.flaw import Unreadable
from muster.formats.forms import CaseForm, CheckForm, EvaluatorForm, HeadForm, RubricForm, ToolForm
from muster.formats.partial import STAND_IN
from muster.formats.shelf import Shelf
from muster.formats.tree import Place
from muster.formats.variables import JsonText, spell
from muster.shapes.json_limits import flaw_of
from muster.shapes.schema import schema_flaw

LONGEST_ID = 200

_CONFIG = "evaluator_config"


class Resolver:
    """Resolves the cases of one suite."""

    def __init__(self, head: HeadForm, shelf: Shelf, file: str, *, partial: bool = False) -> None:
        self._head, self._shelf, self._file, self._partial = head, shelf, file, partial

    def resolve(self, form: CaseForm, line: int, complaints: Complaints) -> Case:
        """Give the case; it counts only if nothing was complained about."""
        return _Resolution(self._head, self._shelf, form, complaints, self._file, partial=self._partial).case(
            self._file, line
        )


class _Resolution:
    """The work on one case."""

    def __init__(
        self, head: HeadForm, shelf: Shelf, form: CaseForm, complaints: Complaints, file: str, *, partial: bool
    ) -> None:
        self._partial = partial  # parts are missing that were complained about: what follows from that is not told
        self._head, self._shelf, self._form, self._say = head, shelf, form, complaints.say
        self._doubt = complaints.doubt
        self._config: EvaluatorForm = form.evaluator_config
        # Golden files may stand in a folder with the name of the suite, or of its file.
        self._folders = tuple(dict.fromkeys((head.skill_or_agent, Path(file).stem)))

    def case(self, file: str, line: int) -> Case:
        form, config, defaults = self._form, self._config, self._head.defaults
        if not self._partial:
            require_id(form.id, self._head.skill_or_agent, self._say)
        found = Case(
            id=form.id,
            suite=self._head.skill_or_agent,
            file=file,
            line=line,
            messages=tuple(Message(role=Role(said.role), text=said.content) for said in form.input.messages),
            description=form.description,
            tags=tuple(form.tags or defaults.tags),
            skip=form.skip or "",
            follow_ups=tuple(form.input.follow_ups),
            context=form.input.context,
            environment=dict(form.input.env_overrides),
            tools=self._tools(),
            agents=self._agents(),
            max_tokens=form.max_tokens,
            temperature=form.temperature,
            seed=form.seed,
            timeout=form.timeout_secs or defaults.timeout_secs,
            threshold=self._threshold(),
            accepts=tuple(Quality(name) for name in form.accepts),
            evaluator=config.evaluator or defaults.evaluator,
            output=self._output(),
            tool_sequence=self._tool_sequence(),
            rubric=self._rubric(),
            golden=self._own_golden(),
            process=tuple(config.process_cmd),
            process_folder=str(self._shelf.home_of(config.process_cmd)) if config.process_cmd else "",
            judge_prompt=config.judge_prompt,
        )
        self._require_work(found)
        self._require_command(found)
        return found

    def _require_command(self, case: Case) -> None:
        """Refuse a command that leads out of the project, or whose files are missing."""
        if not case.process:
            return
        folders, refused = self._shelf.folders, False
        for index, message in leaving(case.process, folders):
            refused = True
            self._say((_CONFIG, "process_cmd", index), message)
        if refused:
            return
        for index, message in missing(case.process, folders):
            if case.evaluator is Evaluator.PROCESS:
                self._say((_CONFIG, "process_cmd", index), message)
            else:
                self._doubt((_CONFIG, "process_cmd", index), message, "missing-command")
        if message := not_installed(case.process, folders):
            self._doubt((_CONFIG, "process_cmd", 0), message, "missing-command")

    def _require_work(self, case: Case) -> None:
        """Refuse a case that could pass without anybody looking at the answer."""
        if self._partial:
            return
        config = self._config  # a file that is named and missing was told already
        if case.evaluator is Evaluator.GOLDEN and config.golden_path is None:
            self._say((_CONFIG, "evaluator"), "the evaluator golden needs a golden_path")
        if case.evaluator is Evaluator.PROCESS and not case.process:
            self._say((_CONFIG, "evaluator"), "the evaluator process needs a process_cmd")
        if not (case.output or case.tool_sequence or case.rubric or config.golden_path or case.process):
            self._say((), "nothing is expected of the answer: name a check, a rubric, a golden file or a command")

    def _agents(self) -> tuple[str, ...]:
        if self._form.agent is not None and self._form.agents:
            self._say(("agents",), "write agent or agents, not both")
        return (self._form.agent,) if self._form.agent is not None else tuple(dict.fromkeys(self._form.agents))

    def _threshold(self) -> float | None:
        if self._form.threshold is not None and self._config.effectiveness_threshold is not None:
            self._say(("threshold",), "write threshold or effectiveness_threshold, not both")
        own = self._form.threshold
        return self._config.effectiveness_threshold if own is None else own

    def _output(self) -> tuple[OutputCheck, ...]:
        checks = self._form.expected.output
        return tuple(self._check(check, ("expected", "output", index)) for index, check in enumerate(checks))

    def _check(self, form: CheckForm, place: Place) -> OutputCheck:
        turns = 1 + len(self._form.input.follow_ups)
        if form.turn is not None and form.turn > turns and not self._partial:
            self._say((*place, "turn"), f"there are {turns} answers only" if turns > 1 else "there is one answer only")
        return OutputCheck(
            kind=form.kind,
            value=form.value or "",
            field=form.field,
            schema=self._schema(form, place) if form.kind is CheckKind.JSON_SCHEMA else None,
            golden=self._checked_golden(form, place) if form.kind is CheckKind.GOLDEN_DIFF else None,
            turn=form.turn,
        )

    def _schema(self, form: CheckForm, place: Place) -> dict[str, Any] | None:
        if form.schema_file is None:
            return form.inline_schema
        try:
            found = json.loads(self._shelf.text(form.schema_file))
            if not isinstance(found, dict):
                raise Unreadable(f"{form.schema_file}: a JSON Schema is an object")
            if wrong := flaw_of(found) or schema_flaw(found):
                raise Unreadable(f"{form.schema_file}: this is no JSON Schema: {wrong}")
        except Unreadable as error:
            self._say((*place, "schema_file"), error.message)
        except (ValueError, RecursionError) as error:
            self._say((*place, "schema_file"), f"{form.schema_file}: this is no JSON: {error}")
        else:
            return found
        return None

    def _checked_golden(self, form: CheckForm, place: Place) -> Golden | None:
        key = "golden_path" if form.golden_path else "value"
        name = form.golden_path or form.value or self._config.golden_path
        if name is None:
            self._say(place, "a check of the kind golden_diff names a file, as its value or golden_path")
            return None
        return self._golden(name, (*place, key), form)

    def _own_golden(self) -> Golden | None:
        name = self._config.golden_path
        return None if name is None else self._golden(name, (_CONFIG, "golden_path"), self._config)

    def _golden(self, name: str, place: Place, form: CheckForm | EvaluatorForm) -> Golden | None:
        try:
            text = self._shelf.text(name, self._folders)
        except Unreadable as error:
            self._say(place, error.message)
            return None
        likeness = (form.golden_threshold, self._config.golden_threshold, DEFAULT_GOLDEN_THRESHOLD)
        loosely = (form.golden_normalize_whitespace, self._config.golden_normalize_whitespace, False)
        return Golden(
            path=str(PurePosixPath(name)),
            text=text,
            threshold=next(share for share in likeness if share is not None),
            normalize_whitespace=next(said for said in loosely if said is not None),
        )

    def _tool_sequence(self) -> tuple[ToolExpectation, ...]:
        return tuple(
            ToolExpectation(tool=form.tool, args_match=form.args_match, order=form.order)
            for form in self._form.expected.tool_sequence
        )

    def _rubric(self) -> tuple[RubricItem, ...]:
        forms = self._form.expected.rubric
        names = [form.id for form in forms]
        for index, name in enumerate(names):
            if name in names[:index] and not (self._partial and name == STAND_IN):
                self._say(("expected", "rubric", index, "id"), f"there is an item {name!r} already")
        if forms and not sum(form.weight for form in forms) > 0:
            self._say(("expected", "rubric"), "the weights must come to more than 0")
        return tuple(self._item(form, ("expected", "rubric", index)) for index, form in enumerate(forms))

    def _item(self, form: RubricForm, place: Place) -> RubricItem:
        if not form.description.strip() and form.auto_check is None:
            self._say(place, "an item needs a description or an auto_check: nobody could judge it")
        check = form.auto_check
        return RubricItem(
            id=form.id,
            description=form.description,
            weight=form.weight,
            critical=form.critical,
            auto_check=None if check is None else self._check(check, (*place, "auto_check")),
            anchors=self._anchors(form, place),
        )

    def _anchors(self, form: RubricForm, place: Place) -> tuple[Anchor, ...]:
        found = []
        for score, text in form.anchors.items():
            try:
                found.append(Anchor(score=float(score), text=text))
            except ValueError:
                found.append(Anchor(score=-1, text=text))
            if not 0 <= found[-1].score <= 1:
                self._say((*place, "anchors", score), "an anchor stands at a score from 0 to 1")
        return tuple(sorted(found, key=lambda anchor: anchor.score))

    def _tools(self) -> tuple[ScriptedTool, ...]:
        forms = self._form.input.tools
        names = [form.name for form in forms]
        for index, form in enumerate(forms):
            if form.name in names[:index] and not (self._partial and form.name == STAND_IN):
                self._say(("input", "tools", index, "name"), f"there is a tool {form.name!r} already")
            if form.parameters is not None and (wrong := schema_flaw(form.parameters)):
                self._say(("input", "tools", index, "parameters"), f"this is no JSON Schema: {wrong}")
        return tuple(self._tool(form) for form in forms)

    def _tool(self, form: ToolForm) -> ScriptedTool:
        results = tuple(
            ToolResult(result=self._spoken(said.result), args_match=said.args_match) for said in form.results
        )
        if form.parameters is None:
            return ScriptedTool(name=form.name, description=form.description, results=results)
        return ScriptedTool(name=form.name, description=form.description, parameters=form.parameters, results=results)

    def _spoken(self, result: Any) -> str:
        if isinstance(result, str):
            return result
        return JsonText(spell(result)) if self.has_variables else spell(result)

    @property
    def has_variables(self) -> bool:
        return bool(self._head.variables or self._form.variables or self._form.dataset)


def is_usable_id(name: str, suite: str) -> bool:
    """Return whether an id can stand in keys and tables."""
    complaints: list[str] = []
    require_id(name, suite, lambda _, message: complaints.append(message))
    return not complaints


def require_id(name: str, suite: str, say: Any) -> None:
    """Complain about an id that cannot stand in keys and tables."""
    if not name.startswith(f"{suite}/") or len(name) == len(suite) + 1:
        say(("id",), f"an id begins with {suite}/ and goes on")
    if len(name) > LONGEST_ID:
        say(("id",), f"an id has {LONGEST_ID} characters at most")
    if not name.isprintable() or name != name.strip():
        say(("id",), "an id has printable characters only, and no blanks at its ends")

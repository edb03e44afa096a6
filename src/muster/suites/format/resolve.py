"""Turns a filled-in form into a case: defaults are applied and files read; variables are not filled in yet."""

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from muster.domain.call import Message, Quality, Role
from muster.domain.canonical import JsonObject
from muster.domain.media import Media, MediaKind
from muster.suites.format.forms import (
    CaseForm,
    CheckForm,
    EvaluatorForm,
    HeadForm,
    MessageForm,
    PartForm,
    RubricForm,
    ToolForm,
)
from muster.suites.format.names import STAND_IN
from muster.suites.format.reading import SuiteFiles
from muster.suites.format.variables import JsonText, MediaName, spell
from muster.suites.values.case import (
    DEFAULT_GOLDEN_THRESHOLD,
    OF_JSON,
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
from muster.text.diagnostics import Diagnostics
from muster.text.document_tree import Place, Unreadable
from muster.text.json_documents import flaw_of, json_fault
from muster.text.schemas.json_schema import schema_flaw

MAX_ID = 200

_CONFIG = "evaluator_config"
_ROLES = {str(role): role for role in Role}


class CaseResolver:
    """Resolves the cases of one suite."""

    def __init__(self, head: HeadForm, files: SuiteFiles, file: str, *, partial: bool = False) -> None:
        self._head, self._files, self._file, self._partial = head, files, file, partial

    def resolve(self, form: CaseForm, line: int, diagnostics: Diagnostics) -> Case:
        """Return the case; it counts only if nothing was complained about."""
        return _Resolution(self._head, self._files, form, diagnostics, self._file, partial=self._partial).case(
            self._file, line
        )


class _Resolution:
    """The work on one case."""

    def __init__(
        self, head: HeadForm, files: SuiteFiles, form: CaseForm, diagnostics: Diagnostics, file: str, *, partial: bool
    ) -> None:
        self._partial = partial  # parts are missing that were complained about: what follows from that is not told
        self._head, self._files, self._form, self._say = head, files, form, diagnostics.say
        self._doubt = diagnostics.doubt
        self._config: EvaluatorForm = form.evaluator_config
        self._file = file

    def case(self, file: str, line: int) -> Case:
        form, config, defaults = self._form, self._config, self._head.defaults
        if not self._partial:
            require_id(form.id, self._head.skill_or_agent, self._say)
        found = Case(
            id=form.id,
            suite=self._head.skill_or_agent,
            file=file,
            line=line,
            messages=self._messages(),
            description=form.description,
            tags=tuple(form.tags or defaults.tags),
            skip=form.skip or "",
            follow_ups=tuple(form.input.follow_ups),
            context=form.input.context,
            environment=dict(form.input.env_overrides),
            tools=self._tools(),
            agents=self._agents(),
            model_effort=form.model_effort,
            max_tokens=form.max_tokens,
            temperature=form.temperature,
            seed=form.seed,
            timeout=form.timeout_secs or defaults.timeout_secs,
            threshold=self._threshold(),
            accepts=tuple([Quality(name) for name in form.accepts]),
            evaluator=config.evaluator or defaults.evaluator,
            output=self._output(),
            tool_sequence=self._tool_sequence(),
            rubric=self._rubric(),
            golden=self._own_golden(),
            process=tuple(config.process_cmd),
            process_folder=str(self._files.home_of(config.process_cmd)) if config.process_cmd else "",
            judge_prompt=config.judge_prompt,
        )
        self._require_work(found)
        if found.process:
            self._require_command(found)
        return found

    def _messages(self) -> tuple[Message, ...]:
        return tuple(
            self._message(form, ("input", "messages", index)) for index, form in enumerate(self._form.input.messages)
        )

    def _message(self, form: MessageForm, place: Place) -> Message:
        if not form.parts:
            return Message(role=_ROLES[form.role], text=form.content)
        parts = [self._part(part, (*place, "content", index)) for index, part in enumerate(form.parts)]
        if all(type(part) is str for part in parts):
            return Message(role=_ROLES[form.role], text="\n\n".join(map(str, parts)))
        return Message(role=_ROLES[form.role], content=tuple(parts))

    def _part(self, form: PartForm, place: Place) -> str | Media:
        """Return a part as it is said or shown; a file whose name has variables is looked for when they are filled."""
        if form.file is None:
            return form.text or ""
        kind = MediaKind(form.type)
        if self.has_variables and "{{" in form.file:
            return MediaName.of(form.file, kind)
        try:
            return self._files.shown(form.file, kind)
        except Unreadable as error:
            self._say((*place, "file"), error.message)
            return ""

    def _require_command(self, case: Case) -> None:
        """Refuse a command that leads out of the project, or whose files are missing."""
        folders, refused = self._files.folders, False
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
        """Refuse a case that could pass without a check of the answer."""
        if self._partial:
            return
        config = self._config  # a file that is named and missing was told already
        if case.evaluator is Evaluator.GOLDEN and config.golden_path is None:
            self._say((_CONFIG, "evaluator"), "the evaluator golden needs a golden_path")
        if case.evaluator is Evaluator.PROCESS and not case.process:
            self._say((_CONFIG, "evaluator"), "the evaluator process needs a process_cmd")
        if not (case.output or case.tool_sequence or case.rubric or config.golden_path or case.process):
            self._say((), "nothing is expected of the answer: add a check, a rubric, a golden file or a command")

    def _agents(self) -> tuple[str, ...]:
        one, several = self._form.agent, self._form.agents
        if one is not None and several:
            self._say(("agents",), "write agent or agents, not both")
        return (one,) if one is not None else tuple(dict.fromkeys(several)) if several else ()

    def _threshold(self) -> float | None:
        own, effective = self._form.threshold, self._config.effectiveness_threshold
        if own is not None and effective is not None:
            self._say(("threshold",), "write threshold or effectiveness_threshold, not both")
        return effective if own is None else own

    def _output(self) -> tuple[OutputCheck, ...]:
        checks = self._form.expected.output
        return tuple([self._check(check, ("expected", "output", index)) for index, check in enumerate(checks)])

    def _check(self, form: CheckForm, place: Place) -> OutputCheck:
        if form.turn is not None and form.turn > (turns := 1 + len(self._form.input.follow_ups)) and not self._partial:
            answers = f"{turns} answers" if turns > 1 else "one answer"
            self._say((*place, "turn"), f"the case has only {answers}")
        return OutputCheck(
            kind=form.kind,
            value=form.value or "",
            field=form.field,
            schema=self._schema(form, place) if form.kind in OF_JSON else None,
            golden=self._checked_golden(form, place) if form.kind is CheckKind.GOLDEN_DIFF else None,
            turn=form.turn,
        )

    def _schema(self, form: CheckForm, place: Place) -> JsonObject | None:
        if form.schema_file is None:
            return form.inline_schema
        try:
            found = json.loads(self._files.text(form.schema_file))
            if not isinstance(found, dict):
                raise Unreadable(f"{form.schema_file}: a JSON Schema must be an object")
            if wrong := flaw_of(found) or schema_flaw(found):
                raise Unreadable(f"{form.schema_file}: not a valid JSON Schema: {wrong}")
        except Unreadable as error:
            self._say((*place, "schema_file"), error.message)
        except (ValueError, RecursionError) as error:
            self._say((*place, "schema_file"), f"{form.schema_file}: not valid JSON: {json_fault(error)}")
        else:
            return found
        return None

    def _checked_golden(self, form: CheckForm, place: Place) -> Golden | None:
        key = "golden_path" if form.golden_path else "value"
        name = form.golden_path or form.value or self._config.golden_path
        if name is None:
            self._say(place, "a check of the kind golden_diff needs a file, as its value or golden_path")
            return None
        return self._golden(name, (*place, key), form)

    def _own_golden(self) -> Golden | None:
        name = self._config.golden_path
        return None if name is None else self._golden(name, (_CONFIG, "golden_path"), self._config)

    def _golden(self, name: str, place: Place, form: CheckForm | EvaluatorForm) -> Golden | None:
        # Golden files may stand in a folder with the name of the suite, or of its file.
        folders = tuple(dict.fromkeys((self._head.skill_or_agent, Path(self._file).stem)))
        try:
            text = self._files.text(name, folders)
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
            [
                ToolExpectation(tool=form.tool, args_match=form.args_match, order=form.order)
                for form in self._form.expected.tool_sequence
            ]
        )

    def _rubric(self) -> tuple[RubricItem, ...]:
        forms = self._form.expected.rubric
        if not forms:
            return ()
        names = [form.id for form in forms]
        for index, name in enumerate(names):
            if name in names[:index] and not (self._partial and name == STAND_IN):
                self._say(("expected", "rubric", index, "id"), f"duplicate item {name!r}")
        if not sum(form.weight for form in forms) > 0:
            self._say(("expected", "rubric"), "the weights must add up to more than 0")
        return tuple(self._item(form, ("expected", "rubric", index)) for index, form in enumerate(forms))

    def _item(self, form: RubricForm, place: Place) -> RubricItem:
        if not form.description.strip() and form.auto_check is None:
            self._say(place, "an item needs a description or an auto_check")
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
                self._say((*place, "anchors", score), "the score of an anchor must be from 0 to 1")
        return tuple(sorted(found, key=lambda anchor: anchor.score))

    def _tools(self) -> tuple[ScriptedTool, ...]:
        forms = self._form.input.tools
        if not forms:
            return ()
        names = [form.name for form in forms]
        for index, form in enumerate(forms):
            if form.name in names[:index] and not (self._partial and form.name == STAND_IN):
                self._say(("input", "tools", index, "name"), f"duplicate tool {form.name!r}")
            if form.parameters is not None and (wrong := schema_flaw(form.parameters)):
                self._say(("input", "tools", index, "parameters"), f"not a valid JSON Schema: {wrong}")
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
    return not _id_flaws(name, suite)


def require_id(name: str, suite: str, say: Any) -> None:
    """Complain about an id that cannot stand in keys and tables."""
    for message in _id_flaws(name, suite):
        say(("id",), message)


def _id_flaws(name: str, suite: str) -> list[str]:
    found = []
    if not name.startswith(f"{suite}/") or len(name) == len(suite) + 1:
        found.append(f"must be {suite}/NAME, the name of the suite and of the case, not {name!r}")
    if len(name) > MAX_ID:
        found.append(f"an id has {MAX_ID} characters at most")
    if not name.isprintable() or name != name.strip():
        found.append("an id must have printable characters only, and no spaces at its ends")
    return found


BadWord = tuple[int, str]  # the number of the word, and what is wrong with it

_UPWARDS = re.compile(r"(?:^|[\s/=:'\"])\.\.(?:[\s/:'\"]|$)")
_INSIDE = re.compile(r"(?<=[\s=:'\"();|&<>])(/[^\s'\"();|&<>]+)")
_INTERPRETER = re.compile(r"(?:python|pypy|bash|dash|sh|zsh|node|deno|bun|ruby|perl|php|lua|java|Rscript)[\d.]*")
_PROGRAM_IN_OPTION = ("-c", "-m", "-e", "-r", "-s", "-", "-cp", "-classpath", "--eval", "--print", "run")
_DEVICES = ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr")
_SCRIPTS = (".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".r")


def leaving(command: Sequence[str], folders: Sequence[Path]) -> Iterator[BadWord]:
    """Return the words that lead out of the project, whose folders are those of the suite and above it."""
    for index, word in enumerate(command):
        path = _path_in(word)
        if _UPWARDS.search(word):
            yield index, f"{word!r} is not allowed: use a file below the project's folder, without .."
        elif path.startswith("/") and path not in _DEVICES and not _is_below(path, folders[-1]):
            hint = f"; use the program without its folder: {Path(path).name}" if index == 0 else ""
            yield index, f"{word!r} is not allowed: it is outside of the project, {folders[-1]}{hint}"
        elif (named := _outside_in(word, folders[-1])) is not None:
            yield index, f"{named!r} is not allowed: it is outside of the project, {folders[-1]}"
        elif any(_leads_out(folder / path, folders[-1]) for folder in folders):
            yield index, f"{word!r} is not allowed: it is a link that leads out of {folders[-1]}"


def missing(command: Sequence[str], folders: Sequence[Path]) -> Iterator[BadWord]:
    """Return the words that name a file which is in none of the folders: the program's, and that of its script."""
    script = _script_of(command) or next((word for word in command[1:] if _is_script(word)), None)
    for index, word in enumerate(command):
        named = (index == 0 and "/" in word) or word is script or word.startswith("./")
        if named and not any(_exists(folder, word) for folder in folders):
            yield index, f"there is no file {word} beside the suite, in {folders[0]}, or above it"


def not_installed(command: Sequence[str], folders: Sequence[Path]) -> str:
    """Return what is to be said of a program that is neither on PATH nor a file here; empty when it is."""
    program = command[0]
    if "/" in program or shutil.which(program) or any(_exists(folder, program) for folder in folders):
        return ""
    return f"the program {program} was not found on PATH"


def _path_in(word: str) -> str:
    """Return the path in a word: an option may have one after its sign."""
    return word.partition("=")[2] if word.startswith("-") and "=" in word else word


def _outside_in(word: str, root: Path) -> str | None:
    """Return a file outside of the project that is named inside of a word, as in a script for a shell."""
    for found in _INSIDE.finditer(word):
        if found[1] not in _DEVICES and Path(found[1]).exists() and not _is_below(found[1], root):
            return found[1]
    return None


def _leads_out(path: Path, root: Path) -> bool:
    try:
        return path.exists() and not path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError):  # a name that is too long for a file
        return False


def _script_of(command: Sequence[str]) -> str | None:
    """Return the file that an interpreter is given: its first argument, unless the program is in an option."""
    if not _INTERPRETER.fullmatch(Path(command[0]).name):
        return None
    for word in command[1:]:
        if word in _PROGRAM_IN_OPTION:
            return None
        if not word.startswith("-"):
            return word
    return None


def _is_below(path: str, root: Path) -> bool:
    return Path(os.path.normpath(path)).is_relative_to(root) or Path(path).resolve().is_relative_to(root)


def _is_script(word: str) -> bool:
    return word.lower().endswith(_SCRIPTS) and not word.startswith("-") and not re.search(r"\s", word)


def _exists(folder: Path, word: str) -> bool:
    try:
        return (folder / word).is_file()
    except (OSError, ValueError):  # a name that is too long for a file
        return False

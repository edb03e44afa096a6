"""Makes the cases of one written case: itself, itself with variables, or one for each row of its dataset."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from muster.domain.errors import MusterError
from muster.domain.media import Media
from muster.suites.format.forms import DatasetForm
from muster.suites.format.reading import SuiteFiles
from muster.suites.format.resolve import require_id
from muster.suites.format.variables import CaseTemplate, MediaName, Row, Unfilled, rows
from muster.suites.values.case import Case, CheckKind, OutputCheck
from muster.text.diagnostics import Diagnostics
from muster.text.document_tree import Flaw, Place, Unreadable
from muster.text.json_paths import compile_path
from muster.text.limited.patterns import pattern_flaw
from muster.text.schemas.json_schema import schema_flaw, unknown_word


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledCase:
    """One case as it came out of its file; with flaws it is only a draft, and cannot be asked."""

    case: Case
    flaws: tuple[Flaw, ...] = ()
    doubts: tuple[Flaw, ...] = ()

    @staticmethod
    def of(case: Case, diagnostics: Diagnostics, doubts: tuple[Flaw, ...] = ()) -> "FilledCase":
        """Return a case with what was said about it."""
        return FilledCase(case=case, flaws=tuple(diagnostics.flaws), doubts=(*doubts, *diagnostics.doubts))


def filled(
    case: Case, diagnostics: Diagnostics, variables: Mapping[str, str], dataset: DatasetForm | None, files: SuiteFiles
) -> Iterator[FilledCase]:
    """Return what comes of a resolved case, verified; rows are read only for a case that is good so far."""
    if dataset is not None and not diagnostics.flaws:
        yield from _from_rows(case, diagnostics, variables, dataset, files)
        return
    try:
        case = CaseTemplate(case).fill(variables) if variables and dataset is None else case
        case = with_named_media(case, files, diagnostics) if dataset is None else case
    except Unfilled as error:
        diagnostics.say_of_mark(error.mark, error.message)
    else:
        if dataset is None:
            verify(case, diagnostics)
            if not variables and diagnostics.has_mark("{{"):
                _doubt_undefined(case, diagnostics)
    yield FilledCase.of(case, diagnostics)


def _doubt_undefined(case: Case, diagnostics: Diagnostics) -> None:
    """Note the variables that texts of a case name although nothing defines any; the texts stay as they are."""
    try:
        names = CaseTemplate(case).names
    except Unfilled:  # braces without a name, which mean themselves in a suite without variables
        return
    for name in names:
        if name.isidentifier():  # anything else is a text about templates
            words = f"undefined variable {name!r}, sent as it stands; define it in variables"
            diagnostics.doubt_of_variable(name, words, "undefined-variable")


def _from_rows(
    case: Case, diagnostics: Diagnostics, variables: Mapping[str, str], dataset: DatasetForm, files: SuiteFiles
) -> Iterator[FilledCase]:
    try:
        filling = _Filling(case, diagnostics, variables, dataset, files)
        empty = True
        for row in rows(files.find(dataset.file)):
            empty = False
            yield filling.case(row)
        if empty:
            raise Unreadable("has no rows")
    except Unfilled as error:
        diagnostics.say_of_mark(error.mark, error.message)
    except Unreadable as error:
        place = dataset.file if error.line is None else f"{dataset.file}:{error.line}"
        diagnostics.say(("dataset",), error.message if dataset.file in error.message else f"{place}: {error.message}")
    if diagnostics.flaws:
        yield FilledCase(case=case, flaws=tuple(diagnostics.flaws))


class _Filling:
    """Makes cases of rows. What is the same in all of them is verified until one is good."""

    def __init__(
        self,
        case: Case,
        diagnostics: Diagnostics,
        variables: Mapping[str, str],
        dataset: DatasetForm,
        files: SuiteFiles,
    ) -> None:
        self._case, self._diagnostics, self._dataset, self._files = case, diagnostics, dataset, files
        self._template = CaseTemplate(case)
        self._variables = dict(variables)
        self._known: frozenset[int] = frozenset()
        self._doubts = tuple(diagnostics.doubts)

    def case(self, row: Row) -> FilledCase:
        """Return the case of a row, with what is wrong with it; the first brings what was said about all of them."""
        name = str(row.number) if self._dataset.id is None else row.text(self._dataset.id)
        diagnostics = self._diagnostics.of(f"{self._case.id}/{name or row.number}", f"{self._dataset.file}:{row.line}")
        if not name:
            diagnostics.say(("dataset", "id"), f"the row has no value in {self._dataset.id!r}, the column of its id")
        whole = f"{self._case.id}/{name or row.number}"
        case = self._filled(whole, row, diagnostics)
        if case is not None and not diagnostics.flaws and not diagnostics.doubts:
            self._known = self._known or checks_of(self._case)
        doubts, self._doubts = self._doubts, ()
        return FilledCase.of(case or replace(self._case, id=whole), diagnostics, doubts)

    def _filled(self, name: str, row: Row, diagnostics: Diagnostics) -> Case | None:
        require_id(name, self._case.suite, diagnostics.say)
        try:
            case = self._template.fill(self._values(row), id=name)
        except Unfilled as error:
            diagnostics.say_of_mark(error.mark, error.message)
            return None
        verify(case, diagnostics, self._known)
        return with_named_media(case, self._files, diagnostics)

    def _values(self, row: Row) -> Mapping[str, str]:
        values = dict(self._variables)
        for name in self._template.names:
            if (text := row.text(name)) is not None:
                values[name] = text
        return values


def with_named_media(case: Case, files: SuiteFiles, diagnostics: Diagnostics) -> Case:
    """Return a case with the images and documents whose names had variables in them."""
    if not any(isinstance(part, MediaName) for message in case.messages for part in message.parts):
        return case

    def found(part: str | Media, place: Place) -> str | Media:
        if not isinstance(part, MediaName):
            return part
        try:
            return files.shown(part, part.kind)
        except Unreadable as error:
            diagnostics.say((*place, "file"), error.message)
            return ""

    messages = tuple(
        replace(
            message,
            content=tuple(
                found(part, ("input", "messages", index, "content", number))
                for number, part in enumerate(message.parts)
            )
            or None,
        )
        for index, message in enumerate(case.messages)
    )
    return replace(case, messages=messages)


_EMPTY_MEANS_NOTHING = (CheckKind.CONTAINS, CheckKind.NOT_CONTAINS, CheckKind.REGEX)


def verify(case: Case, diagnostics: Diagnostics, known: frozenset[int] = frozenset()) -> None:
    """Return what of a case cannot be checked; checks that were seen already are not looked at again."""
    for place, check in _checks(case):
        if id(check) not in known:
            _verify_check(check, place, diagnostics)
    for index, expectation in enumerate(case.tool_sequence):
        if not expectation.tool:
            diagnostics.say(("expected", "tool_sequence", index, "tool"), "is empty")
    if not all(case.tags):
        diagnostics.say(("tags",), "there is an empty one")


def checks_of(case: Case) -> frozenset[int]:
    """Name the very objects that are a case's checks: a case that is made from it may share them."""
    return frozenset(id(check) for _, check in _checks(case))


def _checks(case: Case) -> Iterator[tuple[Place, OutputCheck]]:
    for index, check in enumerate(case.output):
        yield ("expected", "output", index), check
    for index, item in enumerate(case.rubric):
        if item.auto_check is not None:
            yield ("expected", "rubric", index, "auto_check"), item.auto_check


def _verify_check(check: OutputCheck, place: Place, diagnostics: Diagnostics) -> None:
    if check.kind in _EMPTY_MEANS_NOTHING and not check.value:
        diagnostics.doubt((*place, "value"), f"an empty {check.kind} checks nothing", "empty-check")
    if check.kind is CheckKind.REGEX and (wrong := pattern_flaw(check.value)):
        diagnostics.say((*place, "value"), wrong)
    if check.kind is CheckKind.JSON_PATH and check.field is None:
        _verify_path(check.value, (*place, "value"), diagnostics)
    if check.field is not None:
        _verify_path(check.field, (*place, "field"), diagnostics)
    if check.schema is not None:
        if wrong := schema_flaw(check.schema):
            diagnostics.say((*place, "schema"), f"not a valid JSON Schema: {wrong}")
        elif word := unknown_word(check.schema):
            diagnostics.say((*place, "schema"), word)


def _verify_path(text: str, place: Place, diagnostics: Diagnostics) -> None:
    if not text:
        diagnostics.say(place, "is empty")
    elif text.startswith("$") and (wrong := _path_flaw(text)):  # else it is a JSON pointer, or the name of a key
        diagnostics.say(place, wrong)


@lru_cache(maxsize=1024)
def _path_flaw(text: str) -> str | None:
    try:
        compile_path(text, "")
    except MusterError as error:
        return error.message.removeprefix(": ")
    return None

"""Whether the checks of a case can be done at all: patterns, paths and schemas, with all variables filled in.

A pattern or path that cannot be compiled, and a check that looks for nothing, is a doubt and not a flaw: suites in use
have some, and must stay valid. The case is an error when it is run, and nobody is asked.
"""

from collections.abc import Iterator
from functools import lru_cache

from muster.domain.case import Case, CheckKind, OutputCheck
from muster.domain.errors import MusterError
from muster.formats.complaints import Complaints
from muster.formats.tree import Place
from muster.shapes.paths import compile_path
from muster.shapes.patterns import compile_pattern
from muster.shapes.schema import schema_flaw

_EMPTY_MEANS_NOTHING = (CheckKind.CONTAINS, CheckKind.NOT_CONTAINS, CheckKind.REGEX)


def verify(case: Case, complaints: Complaints, known: frozenset[int] = frozenset()) -> None:
    """Say what of a case cannot be checked; checks that are known already are not looked at again."""
    for place, check in _checks(case):
        if id(check) not in known:
            _verify_check(check, place, complaints)
    for index, expectation in enumerate(case.tool_sequence):
        if not expectation.tool:
            complaints.say(("expected", "tool_sequence", index, "tool"), "it is empty")
    if not all(case.tags):
        complaints.say(("tags",), "there is an empty one")


def checks_of(case: Case) -> frozenset[int]:
    """Name the very objects that are a case's checks: a case that is made from it may share them."""
    return frozenset(id(check) for _, check in _checks(case))


def _checks(case: Case) -> Iterator[tuple[Place, OutputCheck]]:
    for index, check in enumerate(case.output):
        yield ("expected", "output", index), check
    for index, item in enumerate(case.rubric):
        if item.auto_check is not None:
            yield ("expected", "rubric", index, "auto_check"), item.auto_check


def _verify_check(check: OutputCheck, place: Place, complaints: Complaints) -> None:
    if check.kind in _EMPTY_MEANS_NOTHING and not check.value:
        complaints.doubt((*place, "value"), f"an empty {check.kind} says nothing", "empty-check")
    if check.kind is CheckKind.REGEX and (wrong := _pattern_flaw(check.value)):
        complaints.doubt((*place, "value"), wrong, "broken-check")
    if check.kind is CheckKind.JSON_PATH and check.field is None:
        _verify_path(check.value, (*place, "value"), complaints)
    if check.field is not None:
        _verify_path(check.field, (*place, "field"), complaints)
    if check.schema is not None and (wrong := schema_flaw(check.schema)):
        complaints.say((*place, "schema"), f"this is no JSON Schema: {wrong}")


def _verify_path(text: str, place: Place, complaints: Complaints) -> None:
    if not text:
        complaints.say(place, "it is empty")
    elif text.startswith("$") and (wrong := _path_flaw(text)):  # else it is a JSON pointer, or the name of a key
        complaints.doubt(place, wrong, "broken-check")


@lru_cache(maxsize=1024)
def _path_flaw(text: str) -> str | None:
    try:
        compile_path(text, "")
    except MusterError as error:
        return error.message.removeprefix(": ")
    return None


@lru_cache(maxsize=1024)
def _pattern_flaw(pattern: str) -> str | None:
    try:
        compile_pattern(pattern)
    except MusterError as error:
        return error.message
    return None

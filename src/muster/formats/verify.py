"""Whether the checks of a case can be done at all: patterns, paths and schemas, with all variables filled in.

A pattern or path that cannot be read is a doubt and no flaw: suites in use have some, and must run unchanged. Such a
check never passes.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from muster.domain.case import Case, CheckKind, OutputCheck
from muster.domain.errors import MusterError
from muster.formats.complaints import Complaints
from muster.formats.tree import Place
from muster.shapes.paths import compile_path

LONGEST_PATTERN = 10_000
_ESCAPE = re.compile(r"\\(?:[xu]\{([0-9A-Fa-f]{1,8})\}|.)", re.DOTALL)
_SHOWN = 300


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


def schema_flaw(schema: Mapping[str, Any]) -> str | None:
    """Say why a mapping is no JSON Schema; None when it is one."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    try:
        validator_for(dict(schema), default=Draft202012Validator).check_schema(dict(schema))
    except (SchemaError, RecursionError) as error:
        return str(getattr(error, "message", error))[:_SHOWN]
    return None


def _checks(case: Case) -> Iterator[tuple[Place, OutputCheck]]:
    for index, check in enumerate(case.output):
        yield ("expected", "output", index), check
    for index, item in enumerate(case.rubric):
        if item.auto_check is not None:
            yield ("expected", "rubric", index, "auto_check"), item.auto_check


def _verify_check(check: OutputCheck, place: Place, complaints: Complaints) -> None:
    if check.kind is CheckKind.REGEX and (wrong := _pattern_flaw(check.value)):
        complaints.doubt((*place, "value"), wrong)
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
        complaints.doubt(place, wrong)


@lru_cache(maxsize=1024)
def _path_flaw(text: str) -> str | None:
    try:
        compile_path(text, "")
    except MusterError as error:
        return error.message.removeprefix(": ")
    return None


@lru_cache(maxsize=1024)
def _pattern_flaw(pattern: str) -> str | None:
    import regex  # type: ignore[import-untyped]

    if len(pattern) > LONGEST_PATTERN:
        return f"a pattern may have {LONGEST_PATTERN:,} characters at most"
    wrong = ""
    for version in (regex.VERSION0, regex.VERSION1):  # a bracket inside of brackets: as in Python, or as in Rust
        try:
            regex.compile(_ESCAPE.sub(_spelled, pattern), version)
        except (regex.error, OverflowError, RecursionError, ValueError) as error:
            wrong = wrong or f"this is no regular expression: {error}"
        else:
            return None
    return wrong


def _spelled(escape: re.Match[str]) -> str:
    """Write the code of a character as Python knows it, where it is in braces."""
    return escape[0] if escape[1] is None else rf"\U{int(escape[1], 16):08x}"

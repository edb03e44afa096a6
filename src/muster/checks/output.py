"""Checks of what an agent said.

`field` narrows a check to places in an answer that is JSON, maybe in a fence or in prose. When a JSONPath finds
several, one of them must do; `not_contains` and `json_schema` must hold of all. An answer or field that is not there
passes nothing, not even `not_contains`. A check that looks for nothing at all is broken, not passed.
"""

import json
from collections.abc import Callable
from functools import lru_cache

from muster.checks.golden import similarity
from muster.checks.matching import same
from muster.checks.places import path, places, text_of
from muster.checks.quoting import quote, quote_around
from muster.checks.thresholds import reaches
from muster.domain.call import Request
from muster.domain.canonical import Json, canonical
from muster.domain.case import CheckKind, OutputCheck
from muster.domain.errors import BadArgument, BadOutput, FixSpec, InvalidRequest
from muster.domain.verdict import CheckResult, Observation
from muster.shapes.json_limits import flaw_of
from muster.shapes.json_search import find_value
from muster.shapes.patterns import SECONDS, search
from muster.shapes.schema import flaw, require_schema

_EXPECTED = 80  # characters of what was expected


def check_output(check: OutputCheck, observation: Observation) -> CheckResult:
    """Say whether an answer is what a check asks for."""
    answer = _answer(check, observation)
    if answer is None:
        return _failed(check, _no_answer(check, observation))
    try:
        why = _KINDS[check.kind](check, answer)
    except BadOutput as error:
        return _failed(check, error.message)
    except FixSpec as error:
        return CheckResult(
            name=str(check.kind), passed=False, expected=_expected(check), why=error.message, broken=True
        )
    except RecursionError:
        return _failed(check, "the JSON of the answer is nested too deeply to look into")
    return _failed(check, why) if why else CheckResult(name=str(check.kind), passed=True, expected=_expected(check))


def _answer(check: OutputCheck, observation: Observation) -> str | None:
    answers = observation.answers
    if check.turn is None:
        return answers[-1] if answers else None
    return answers[check.turn - 1] if 1 <= check.turn <= len(answers) else None


def _no_answer(check: OutputCheck, observation: Observation) -> str:
    if check.turn is None:
        return "there is no answer"
    return f"there is no answer in turn {check.turn}: there were {len(observation.answers)}"


def _failed(check: OutputCheck, why: str, *, broken: bool = False) -> CheckResult:
    return CheckResult(name=str(check.kind), passed=False, expected=_expected(check), why=why, broken=broken)


def _expected(check: OutputCheck) -> str:
    if check.kind is CheckKind.JSON_SCHEMA:
        wanted = "JSON that fits the schema"
    elif check.golden is not None:
        wanted = f"like {check.golden.path}, at least {check.golden.threshold:g}"
    else:
        wanted = check.value if len(check.value) <= _EXPECTED else check.value[:_EXPECTED] + "…"
    return wanted if check.field is None else f"{wanted} at {check.field}"


# Each of these says why a check does not hold, or nothing when it does.


def _contains(check: OutputCheck, answer: str) -> str:
    value = _wanted(check)
    if check.field is None:
        return "" if value in answer else f"it is not in the answer {quote(answer)}"
    found = places(answer, check.field)
    return "" if any(value in text_of(place) for place in found) else _found_instead(check, found)


def _not_contains(check: OutputCheck, answer: str) -> str:
    value = _wanted(check)
    for place in places(answer, check.field):
        text = text_of(place)
        if (start := text.find(value)) >= 0:
            return f"it is there: {quote_around(text, start)}"
    return ""


def _equals(check: OutputCheck, answer: str) -> str:
    """Compare with the exact text but for newlines at the end, which editors and YAML add; JSON by its value."""
    found = places(answer, check.field)
    return "" if any(_stands(place, check.value) for place in found) else _found_instead(check, found)


def _regex(check: OutputCheck, answer: str) -> str:
    pattern = _wanted(check)
    found = places(answer, check.field)
    seconds = SECONDS / len(found)  # for all together
    if any(search(pattern, text_of(place), seconds) is not None for place in found):
        return ""
    return _found_instead(check, found)


def _json_path(check: OutputCheck, answer: str) -> str:
    if check.field is not None:
        return _equals(check, answer)
    wanted = path(_wanted(check))
    return "" if wanted.all(find_value(answer, {})) else f"{check.value} finds nothing in {quote(answer)}"


def _json_schema(check: OutputCheck, answer: str) -> str:
    if check.schema is None:
        raise BadArgument("the check has no schema")
    if damage := _damage(canonical(check.schema)):
        raise BadArgument(damage)
    found = [find_value(answer, check.schema)] if check.field is None else places(answer, check.field)
    return next((wrong for place in found if (wrong := flaw_of(place) or flaw(place, check.schema))), "")


def _golden_diff(check: OutputCheck, answer: str) -> str:
    if check.golden is None:
        raise BadArgument("the check has no golden text")
    found = places(answer, check.field)
    if len(found) > 1:
        return f"{check.field} finds {len(found)} places, and a golden text is compared with one"
    likeness = similarity(text_of(found[0]), check.golden)
    if reaches(likeness, check.golden.threshold):
        return ""
    return f"its likeness is {likeness:.3f}: {quote(text_of(found[0]))}"


_KINDS: dict[CheckKind, Callable[[OutputCheck, str], str]] = {
    CheckKind.CONTAINS: _contains,
    CheckKind.NOT_CONTAINS: _not_contains,
    CheckKind.EQUALS: _equals,
    CheckKind.REGEX: _regex,
    CheckKind.JSON_PATH: _json_path,
    CheckKind.JSON_SCHEMA: _json_schema,
    CheckKind.GOLDEN_DIFF: _golden_diff,
}


def _wanted(check: OutputCheck) -> str:
    if not check.value:
        raise BadArgument("the check has no value to look for, so it would say nothing about the answer")
    return check.value


def _stands(place: Json, value: str) -> bool:
    if text_of(place).rstrip("\r\n") == value.rstrip("\r\n"):
        return True
    if isinstance(place, str):
        return False
    try:
        return same(place, json.loads(value))
    except ValueError:
        return False


def _found_instead(check: OutputCheck, found: list[Json]) -> str:
    where = "the answer" if check.field is None else check.field
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{where} is {quote(text_of(found[0]))}{more}"


@lru_cache(maxsize=256)
def _damage(schema: bytes) -> str:
    """Say what is wrong with a schema itself."""
    try:
        require_schema(Request(messages=(), schema=json.loads(schema)))
    except InvalidRequest as error:
        return error.message
    return ""

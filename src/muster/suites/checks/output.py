"""Checks of what an agent said.

`field` narrows a check to places in an answer that is JSON, maybe in a fence or in prose. When a JSONPath finds
several, one of them must do; `not_contains` and schemas must hold of all. An answer or field that is not there
passes nothing, not even `not_contains`. A check that looks for nothing at all is broken, not passed.
"""

import json
from collections.abc import Callable
from functools import lru_cache

from muster.domain.call import Request
from muster.domain.canonical import Json, canonical
from muster.domain.errors import BadArgument, BadOutput, FixSpec, InvalidRequest
from muster.suites.checks.places import document, kind_at, path, places
from muster.suites.checks.tool_calls import same
from muster.suites.values.case import OF_JSON, CheckKind, Golden, OutputCheck
from muster.suites.values.rules import CURRENT_RULES, ScoringRules
from muster.suites.values.verdict import CheckResult, Observation
from muster.text.json_documents import decode, finite, flaw_of
from muster.text.limited import patterns
from muster.text.schemas import json_schema
from muster.text.schemas.json_schema import flaw, require_schema
from muster.text.scores import reaches

MAX_INLINE_LENGTH = 50_000  # characters of an answer that any check goes through in some hundredths of a second


def text_of(value: Json) -> str:
    """Return what stands at a place as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


MAX_QUOTE = 200
_BEFORE = 60  # characters that are shown before a place


def quote(text: str, longest: int = MAX_QUOTE) -> str:
    """Return the beginning of a text in quotes."""
    shown = repr(text[:longest])
    if len(text) <= longest and len(shown) <= longest:
        return shown
    return f"{shown[: longest - 2]}…{shown[0]}"


def quote_around(text: str, start: int, longest: int = MAX_QUOTE) -> str:
    """Return a place in a text in quotes, with a little of what stands before it."""
    begin = max(0, start - _BEFORE)
    shown = quote(text[begin : begin + longest + 1], longest)
    return f"{shown[0]}…{shown[1:]}" if begin else shown


_MAX_COMPARED_PAIRS = 400_000_000  # pairs of lines that are compared: at most half a second, and 30 MB


def similarity(text: str, golden: Golden) -> float:
    """Return the likeness of a text to a golden one, from 0 to 1."""
    if text == golden.text:
        return 1.0
    return line_ratio(_lines(text, golden.normalize_whitespace), _lines(golden.text, golden.normalize_whitespace))


def line_ratio(left: list[str], right: list[str]) -> float:
    """Return twice the common lines over all lines; two texts without a line are the same."""
    if not left and not right:
        return 1.0
    return 2 * _common(left, right) / (len(left) + len(right))


def _lines(text: str, normalize: bool) -> list[str]:
    """Split a text; normalised, runs of spaces are one, and blank lines and spaces at the ends are none."""
    lines = text.splitlines()
    return [shown for line in lines if (shown := " ".join(line.split()))] if normalize else lines


def _common(left: list[str], right: list[str]) -> int:
    begin = _equal_beginning(left, right)
    left, right = left[begin:], right[begin:]
    end = _equal_beginning(left[::-1], right[::-1])
    left, right = left[: len(left) - end], right[: len(right) - end]
    shared = set(left) & set(right)
    shorter, longer = sorted(([line for line in lines if line in shared] for lines in (left, right)), key=len)
    middle = 0 if len(shorter) * len(longer) > _MAX_COMPARED_PAIRS else _longest_common_subsequence(shorter, longer)
    return begin + middle + end


def _equal_beginning(left: list[str], right: list[str]) -> int:
    for place, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return place
    return min(len(left), len(right))


def _longest_common_subsequence(left: list[str], right: list[str]) -> int:
    """Count the lines of the longest common subsequence: one bit for each line of `left`, cleared as it grows."""
    where: dict[str, int] = {}
    for place, line in enumerate(left):
        where[line] = where.get(line, 0) | 1 << place
    every = (1 << len(left)) - 1
    row = every
    for line in right:
        if matches := where.get(line):
            hit = row & matches
            row = ((row + hit) | (row - hit)) & every
    return len(left) - row.bit_count()


_EXPECTED = 80  # characters of what was expected


def check_output(check: OutputCheck, observation: Observation, rules: ScoringRules = CURRENT_RULES) -> CheckResult:
    """Return whether an answer is what a check asks for."""
    answer = _answer(check, observation)
    if answer is None:
        return _failed(check, _no_answer(check, observation))
    try:
        why = _KINDS[check.kind](check, answer, rules)
    except BadOutput as error:
        return _failed(check, error.message)
    except FixSpec as error:
        return CheckResult(
            name=str(check.kind), passed=False, expected=_expected(check), why=error.message, broken=True
        )
    except RecursionError:
        return _failed(check, "the JSON of the answer is nested too deeply to look into")
    return _failed(check, why) if why else CheckResult(name=str(check.kind), passed=True, expected=_expected(check))


def is_quick(check: OutputCheck, observation: Observation) -> bool:
    """Return whether a check of an answer takes so little that nobody has to wait for it."""
    answer = _answer(check, observation) or ""
    if check.kind is CheckKind.REGEX:
        return patterns.is_quick(check.value, len(answer))
    if check.schema is not None:
        return json_schema.is_quick(answer, check.schema)
    return len(answer) <= MAX_INLINE_LENGTH


def _answer(check: OutputCheck, observation: Observation) -> str | None:
    answers = observation.answers
    if check.turn is None:
        return answers[-1] if answers else None
    return answers[check.turn - 1] if 1 <= check.turn <= len(answers) else None


def _no_answer(check: OutputCheck, observation: Observation) -> str:
    if check.turn is None:
        return "there is no answer"
    return f"there is no answer in turn {check.turn}: the agent gave {len(observation.answers)}"


def _failed(check: OutputCheck, why: str, *, broken: bool = False) -> CheckResult:
    return CheckResult(name=str(check.kind), passed=False, expected=_expected(check), why=why, broken=broken)


def _expected(check: OutputCheck) -> str:
    if check.kind in OF_JSON:
        wanted = "JSON that fits the schema" if check.schema is not None else "JSON"
    elif check.golden is not None:
        wanted = f"similar to {check.golden.path}, at least {check.golden.threshold:g}"
    else:
        wanted = check.value if len(check.value) <= _EXPECTED else check.value[:_EXPECTED] + "…"
    return wanted if check.field is None else f"{wanted} at {check.field}"


# Each of these says why a check does not hold, or nothing when it does.


def _contains(check: OutputCheck, answer: str, rules: ScoringRules) -> str:
    value = _wanted(check)
    if check.field is None:
        return "" if value in answer else f"it is not in the answer {quote(answer)}"
    found = places(answer, check.field, rules, check.kind)
    return "" if any(value in text_of(place) for place in found) else _found_instead(check, found)


def _not_contains(check: OutputCheck, answer: str, rules: ScoringRules) -> str:
    value = _wanted(check)
    for place in places(answer, check.field, rules, check.kind):
        text = text_of(place)
        if (start := text.find(value)) >= 0:
            return f"it is there: {quote_around(text, start)}"
    return ""


def _equals(check: OutputCheck, answer: str, rules: ScoringRules) -> str:
    """Compare with the exact text but for newlines at the end, which editors and YAML add; JSON by its value."""
    found = places(answer, check.field, rules, check.kind)
    if rules.strict_json and check.field is None and _is_same_json(answer, check.value, rules):
        return ""
    return "" if any(_stands(place, check.value) for place in found) else _found_instead(check, found)


def _regex(check: OutputCheck, answer: str, rules: ScoringRules) -> str:
    pattern = _wanted(check)
    found = places(answer, check.field, rules, check.kind)
    return "" if patterns.found_in(pattern, [text_of(place) for place in found]) else _found_instead(check, found)


def _json_path(check: OutputCheck, answer: str, rules: ScoringRules) -> str:
    if check.field is not None:
        return _equals(check, answer, rules)
    wanted = path(_wanted(check))
    found = document(answer, kind_at(check.value, rules), rules, check.kind)
    return "" if wanted.all(found) else f"{check.value} matches nothing in {quote(answer)}"


def _json_schema(check: OutputCheck, answer: str, rules: ScoringRules) -> str:
    if check.schema is None:
        raise BadArgument("the check has no schema")
    return _json(check, answer, rules)


def _json(check: OutputCheck, answer: str, rules: ScoringRules) -> str:
    """Look for JSON, and for JSON that fits a schema where there is one."""
    schema = dict(check.schema or {})
    if damage := _damage(canonical(schema)):
        raise BadArgument(damage)
    if check.field is None:
        found = [document(answer, schema, rules, check.kind)]
    else:
        found = places(answer, check.field, rules, check.kind)
    wrong = (flaw_of(place) or flaw(place, schema, formats=rules.strict_json) for place in found)
    return next((one for one in wrong if one), "")


def _golden_diff(check: OutputCheck, answer: str, rules: ScoringRules) -> str:
    if check.golden is None:
        raise BadArgument("the check has no golden text")
    found = places(answer, check.field, rules, check.kind)
    if len(found) > 1:
        return f"{check.field} matches {len(found)} values, and a golden text is compared with one"
    likeness = similarity(text_of(found[0]), check.golden)
    if reaches(likeness, check.golden.threshold):
        return ""
    return f"the similarity is {likeness:.3f}: {quote(text_of(found[0]))}"


_KINDS: dict[CheckKind, Callable[[OutputCheck, str, ScoringRules], str]] = {
    CheckKind.CONTAINS: _contains,
    CheckKind.NOT_CONTAINS: _not_contains,
    CheckKind.EQUALS: _equals,
    CheckKind.REGEX: _regex,
    CheckKind.JSON_PATH: _json_path,
    CheckKind.JSON_SCHEMA: _json_schema,
    CheckKind.IS_JSON: _json,
    CheckKind.CONTAINS_JSON: _json,
    CheckKind.GOLDEN_DIFF: _golden_diff,
}


def _wanted(check: OutputCheck) -> str:
    if not check.value:
        raise BadArgument("the check has no value to look for")
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


def _is_same_json(answer: str, value: str, rules: ScoringRules) -> bool:
    """Return whether two texts are the same object or list; a number, or a word in quotes, is compared as text."""
    try:
        wanted, found = decode(value.strip()), decode(answer.strip())
        if rules.finite_equals:  # all numbers beyond the bounds of a float are read as one
            finite(wanted)
        return isinstance(wanted, dict | list) and same(found, wanted)
    except ValueError:
        return False


def _found_instead(check: OutputCheck, found: list[Json]) -> str:
    where = "the answer" if check.field is None else check.field
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{where} is {quote(text_of(found[0]))}{more}"


@lru_cache(maxsize=256)
def _damage(schema: bytes) -> str:
    """Return what is wrong with a schema itself."""
    try:
        require_schema(Request(messages=(), schema=json.loads(schema)))
    except InvalidRequest as error:
        return error.message
    return ""

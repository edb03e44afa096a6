"""Checks of what an agent said.

`field` narrows a check to places in an answer that is JSON, maybe in a fence or in prose. When a JSONPath finds
several, one of them must do; `not_contains` and `json_schema` must hold of all. An answer or field that is not there
passes nothing, not even `not_contains`. A check that looks for nothing at all is broken, not passed.
"""

import json
from collections.abc import Callable
from functools import lru_cache

from muster.domain.call import Request
from muster.domain.canonical import Json, canonical
from muster.domain.errors import BadArgument, BadOutput, FixSpec, InvalidRequest
from muster.suites.case import CheckKind, Golden, OutputCheck
from muster.suites.checks.tool_calls import same
from muster.suites.verdict import CheckResult, Observation
from muster.text.json_documents import find_value, flaw_of
from muster.text.json_paths import JsonPath, compile_path
from muster.text.limited import patterns
from muster.text.schemas import json_schema
from muster.text.schemas.json_schema import flaw, require_schema
from muster.text.thresholds import reaches

MOST_PLACES = 1_000
LONGEST_QUICK = 50_000  # characters of an answer that any check goes through in some hundredths of a second


def places(answer: str, field: str | None) -> list[Json]:
    """Return what stands at a field of an answer; without a field the answer itself.

    Raises BadOutput when the answer is no JSON or has no such field, and BadArgument for too wide a path.
    """
    if field is None:
        return [answer]
    found = at(find_value(answer, _kind(field)), field)
    if not found:
        raise BadOutput(f"{field} was not found in the answer")
    if len(found) > MOST_PLACES:
        raise BadArgument(f"{field} matches {len(found)} values; the maximum is {MOST_PLACES}")
    return found


def at(value: Json, field: str) -> list[Json]:
    """Return what stands at a field of a JSON value: a JSONPath, a JSON pointer or a top-level key."""
    if _is_path(field):
        return path(field).all(value)
    if field == "" or field.startswith("/"):
        return _point(value, field)
    return [value[field]] if isinstance(value, dict) and field in value else []


@lru_cache(maxsize=1024)
def path(text: str) -> JsonPath:
    """Read a JSONPath once."""
    return compile_path(text, "json_path")


def text_of(value: Json) -> str:
    """Return what stands at a place as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_path(field: str) -> bool:
    return field == "$" or field.startswith(("$.", "$["))


def _point(value: Json, pointer: str) -> list[Json]:
    """Follow a JSON pointer (RFC 6901)."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _is_index(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return []
    return [value]


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 10 and (name == "0" or name[0] != "0")


def _kind(field: str) -> dict[str, Json]:
    """Return "object" or "array" by the first step of the path: prose around an answer may contain both."""
    if not _is_path(field):
        step = field.split("/")[1] if field.startswith("/") else field
        return {} if _is_index(step) or not field else {"type": "object"}
    if field.startswith(("$['", '$["')) or (field.startswith("$.") and not field.startswith(("$..", "$.*"))):
        return {"type": "object"}
    return {"type": "array"} if field[2:3].isdigit() else {}


LONGEST = 200
_BEFORE = 60  # characters that are shown before a place


def quote(text: str, longest: int = LONGEST) -> str:
    """Return the beginning of a text in quotes."""
    shown = repr(text[:longest])
    if len(text) <= longest and len(shown) <= longest:
        return shown
    return f"{shown[: longest - 2]}…{shown[0]}"


def quote_around(text: str, start: int, longest: int = LONGEST) -> str:
    """Return a place in a text in quotes, with a little of what stands before it."""
    begin = max(0, start - _BEFORE)
    shown = quote(text[begin : begin + longest + 1], longest)
    return f"{shown[0]}…{shown[1:]}" if begin else shown


_MOST = 400_000_000  # pairs of lines that are compared: at most half a second, and 30 MB


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
    middle = 0 if len(shorter) * len(longer) > _MOST else _longest_common_subsequence(shorter, longer)
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


def check_output(check: OutputCheck, observation: Observation) -> CheckResult:
    """Return whether an answer is what a check asks for."""
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


def is_quick(check: OutputCheck, observation: Observation) -> bool:
    """Return whether a check of an answer takes so little that nobody has to wait for it."""
    answer = _answer(check, observation) or ""
    if check.kind is CheckKind.REGEX:
        return patterns.is_quick(check.value, len(answer))
    if check.schema is not None:
        return json_schema.is_quick(answer, check.schema)
    return len(answer) <= LONGEST_QUICK


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
    if check.kind is CheckKind.JSON_SCHEMA:
        wanted = "JSON that fits the schema"
    elif check.golden is not None:
        wanted = f"similar to {check.golden.path}, at least {check.golden.threshold:g}"
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
    return "" if patterns.found_in(pattern, [text_of(place) for place in found]) else _found_instead(check, found)


def _json_path(check: OutputCheck, answer: str) -> str:
    if check.field is not None:
        return _equals(check, answer)
    wanted = path(_wanted(check))
    return "" if wanted.all(find_value(answer, {})) else f"{check.value} matches nothing in {quote(answer)}"


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
        return f"{check.field} matches {len(found)} values, and a golden text is compared with one"
    likeness = similarity(text_of(found[0]), check.golden)
    if reaches(likeness, check.golden.threshold):
        return ""
    return f"the similarity is {likeness:.3f}: {quote(text_of(found[0]))}"


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

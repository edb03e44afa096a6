"""JSON in texts of strangers: one strict document, or the one that counts in noise, and whether it can be stored."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from json import JSONDecodeError, JSONDecoder
from math import isfinite
from typing import Any

from muster.domain.canonical import Json
from muster.domain.errors import BadOutput
from muster.domain.flaw import FieldFlaw, FlawCode

Fits = Callable[[Mapping[str, Json]], bool]

# Each ends with the bracket that opens a value.
_MARKED = r"\s*+(?:```\w*+\s*+)?\{"  # after a marker
_OBJECT = re.compile(r'\{(?=\s*+")')  # an empty object has no shape
_VALUES = {"object": re.compile(r"\{"), "array": re.compile(r"\[")}
_ANY_VALUE = re.compile(r"[\[{]")

_STRAY = re.compile("[\udc80-\udcff]")
_FENCE = "```"
_SHOWN = 200


class _Doubled(dict[str, Json]):
    """An object with a duplicate key: it is undefined which of the values counts."""


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Doubled(found)


_DECODER = JSONDecoder(object_pairs_hook=_object)
_WINDOW = 4096  # characters that are looked at first; an error counts the lines from the beginning of its text
_GROWTH = 8
_MAX_TOKEN = 16  # a number, a word or an escape that is cut goes wrong this near to the end; only a string does not

# Work is counted in characters that the decoder goes over.
_MIN_WORK = 8_000_000
_MULTIPLE = 3
_FAILURE = 130  # what it takes to fail at once
_SUCCESS = 40
_ENDS = (8_192, 65_536)  # characters at the end of an output


def readable(output: bytes) -> str:
    """Return an output as text; bytes that are none are shown as escapes."""
    return output.decode("utf-8", "backslashreplace")


def parseable(output: bytes) -> str:
    """Return an output as text in which JSON stays JSON: a byte that is no text becomes an escape in its string."""
    text = output.decode("utf-8", "surrogateescape")
    return text if text.isascii() else _STRAY.sub(lambda stray: rf"\\x{ord(stray[0]) - 0xDC00:02x}", text)


def find(text: str, fits: Fits, marker: str = "") -> Mapping[str, Any] | None:
    """Return the last object that fits: of those right after a marker, or else of all that are in no other object.

    In an output with too much broken JSON to look through, only its last lines are looked at. Raises BadOutput when the
    object holds a key twice.
    """
    found = _find_bounded(text, fits, marker)
    require_single(found)
    return found


def _find_bounded(text: str, fits: Fits, marker: str) -> dict[str, Json] | None:
    try:
        return _find(text, fits, marker)
    except BadOutput:
        for size in _ENDS:
            found = _find(text[text.rfind("\n", 0, max(0, len(text) - size)) + 1 :], fits, marker)
            if found is not None:
                return found
        raise


def _find(text: str, fits: Fits, marker: str) -> dict[str, Json] | None:
    search = JsonSearch(text, marker)
    marked = _last(search.values(re.compile(re.escape(marker) + _MARKED)), fits) if marker else None
    return marked or _last(search.values(_OBJECT), fits)


def find_value(text: str, schema: Mapping[str, Json]) -> Any:
    """Return the JSON that a text is, or else the last value in it of the kind that the schema asks for."""
    whole = _without_fence(text.strip())
    try:
        value, end = _DECODER.raw_decode(whole)
        if end == len(whole):
            require_single(value)
            return value
    except (ValueError, RecursionError):
        pass
    found = None
    for found in JsonSearch(text).values(_opening(schema)):  # noqa: B007 - only the last counts
        pass
    if found is None:
        begins = f": {text.strip()[:_SHOWN]!r}" if text.strip() else ""
        raise BadOutput(f"its answer holds no JSON, and a schema was asked for{begins}")
    require_single(found)
    return found


def whole_document(text: str, *, fenced: bool) -> Json:
    """Return the JSON that a whole text is, maybe in one fence; raises BadOutput for any other text."""
    try:
        return finite(decode(unfenced(text.strip()) if fenced else text.strip()))
    except (ValueError, RecursionError) as error:
        raise BadOutput(f"the answer is not one JSON document and nothing else: {json_fault(error)}") from None


def only_document(text: str, schema: Mapping[str, Json]) -> Json:
    """Return the one JSON document that a text is, or holds in a fence or in prose, of the kind that a schema asks for.

    Raises BadOutput when there is none, or more than one. Parts of broken JSON count, so only runs that have recorded
    this rule are read by it; others by `sole_document`.
    """
    try:
        return finite(decode(unfenced(text.strip())))
    except Ambiguous as error:
        raise BadOutput(str(error)) from None
    except (ValueError, RecursionError):
        found: list[Json] = [value for value in JsonSearch(text).values(_opening(schema)) if value]
    objects: list[Json] = [value for value in found if isinstance(value, dict)]
    found = objects or found  # what stands in brackets in prose is mostly a reference
    if len(found) > 1:
        raise BadOutput(f"the answer holds {len(found)} JSON documents, and one is expected")
    if not found:
        raise BadOutput(f"the answer holds no JSON: {text.strip()[:_SHOWN]!r}")
    require_single(found[0])
    try:
        return finite(found[0])
    except Ambiguous as error:
        raise BadOutput(str(error)) from None


def finite(value: Json) -> Json:
    """Return a value in which every number is one; raises Ambiguous for NaN and infinities."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, float) and not isfinite(item):
            raise Ambiguous(f"it holds {item}, which is no number of JSON")
        if isinstance(item, dict | list):
            left.extend(item.values() if isinstance(item, dict) else item)
    return value


def require_single(value: Json) -> None:
    """Raise BadOutput for a value in which an object holds a key twice."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, _Doubled):
            raise BadOutput("its answer holds a key twice in one object, so that nobody can say what it means")
        if isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)


class JsonSearch:
    """Goes through one text, and gives up when that takes too much work."""

    def __init__(self, text: str, marker: str = "") -> None:
        self._text, self._marker = text, marker
        self._work = _MIN_WORK + _MULTIPLE * len(text)

    def values(self, opening: re.Pattern[str]) -> Iterator[Json]:
        """Yield the values that begin where the pattern says; what is inside of one is not looked at again."""
        place = opening.search(self._text)
        while place is not None:
            decoded = self.decode_at(place.end() - 1)
            if decoded is not None:
                yield decoded[0]
            place = opening.search(self._text, place.end() if decoded is None else decoded[1])

    def decode_at(self, start: int) -> tuple[Json, int] | None:
        """Return the value that begins at a place, and where it ends; None when it is broken or cut off."""
        size = _WINDOW
        while True:
            window = self._text[start : start + size]
            try:
                value, end = _DECODER.raw_decode(window)
            except JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos >= len(window) - _MAX_TOKEN
                self._spend(_FAILURE + (len(window) if cut else error.pos))
            except (ValueError, RecursionError):  # digits without end, or too deep
                cut = False
                self._spend(_FAILURE + len(window))
            else:
                self._spend(_SUCCESS)
                return value, start + end
            if not cut or start + size >= len(self._text):
                return None
            size *= _GROWTH

    def _spend(self, characters: int) -> None:
        self._work -= characters
        if self._work < 0:
            raise BadOutput(
                "there is too much broken JSON in its output to look through",
                suggestions=(f"make the program write {self._marker} before its answer",) if self._marker else (),
            )


def _last(values: Iterator[Json], fits: Fits) -> dict[str, Json] | None:
    last = None
    for value in values:
        if isinstance(value, dict) and fits(value):
            last = value
    return last


def _opening(schema: Mapping[str, Json]) -> re.Pattern[str]:
    kind = schema.get("type")
    return _VALUES.get(kind, _ANY_VALUE) if isinstance(kind, str) else _ANY_VALUE


def _without_fence(text: str) -> str:
    if not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    return text.partition("\n")[2].removesuffix(_FENCE).strip()


MAX_TEXT = 4_000_000  # characters
_QUOTED = 60  # characters of a name that is there twice


class Ambiguous(ValueError):
    """JSON to a lenient reader, but it does not say one thing."""


_JSON_FAULTS = {  # as Python's reader calls them
    "Expecting value": "a value is expected",
    "Expecting property name enclosed in double quotes": "a key in double quotes is expected",
    "Illegal trailing comma before end of object": "a comma has nothing after it",
    "Illegal trailing comma before end of array": "a comma has nothing after it",
    "Expecting ',' delimiter": "a comma or the closing bracket is expected",
    "Expecting ':' delimiter": "a colon is expected after the key",
    "Extra data": "something follows the end of the value",
    "Unterminated string starting at": "a string has no closing quote",
    "Invalid control character at": "a string has a line break or another control character",
}


def json_fault(error: Exception) -> str:
    """Return why a text is not JSON, in plain words and with its place, from what a reader raised."""
    if isinstance(error, JSONDecodeError):
        return f"{json_words(error)} at line {error.lineno}, column {error.colno}"
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)


def json_words(error: JSONDecodeError) -> str:
    """Return why a text is not JSON, in plain words, for a message that has the place already."""
    return _JSON_FAULTS.get(error.msg, error.msg)


def decode(text: str) -> Any:
    """Return the value that a text is; raises ValueError, and for a key that is there twice Ambiguous."""
    return json.loads(text, object_pairs_hook=_pairs, parse_constant=_no)


def read_object(text: str, *, fenced: bool = True) -> Mapping[str, Any] | str:
    """Return the object that a text is, maybe in one fence around the whole; or why it is not one."""
    if len(text) > MAX_TEXT:
        return f"it is longer than {MAX_TEXT:,} characters"
    bare = text.strip().removeprefix("\ufeff")
    try:
        found = decode(unfenced(bare) if fenced else bare)
    except Ambiguous as error:
        return str(error)
    except RecursionError:
        return "it is nested too deep"
    except ValueError:
        return "it is not one JSON object and nothing else"
    if not isinstance(found, dict):
        return "it is JSON, but no object"
    return flaw_of(found) or found


def unfenced(text: str) -> str:
    """Return what is in a fence that stands around all of a text; looked for without a pattern, which could hang."""
    first, line_break, rest = text.partition("\n")
    language = first.removeprefix(_FENCE).strip()
    if not first.startswith(_FENCE) or not line_break or not (language.isalnum() or not language):
        return text
    body, last_break, last = rest.rpartition("\n")
    return body if last_break and last.strip() == _FENCE else text


def _pairs(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    """Refuse a name that is there twice: readers differ in which of the two they take."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Ambiguous(f"an object has the key {twice[:_QUOTED]!r} twice")
    return found


def _no(constant: str) -> Json:
    raise Ambiguous(f"it holds {constant}, which is no JSON")


_MAX_DEPTH = 100
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1


def flaw_of(value: Json) -> str | None:
    """Return why a decoded value cannot be stored; None when it can."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        below: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif flaw := _number_flaw(item):
                return flaw
        if not below:
            return None
        level = below
    return f"it is nested more than {_MAX_DEPTH} levels deep"


def number_flaw(value: Json, path: str = "") -> FieldFlaw | None:
    """Return what is wrong with the first number in a decoded value that cannot be stored, by its path."""
    if isinstance(value, dict):
        places = ((f"{path}.{name[:_QUOTED]}" if path else name[:_QUOTED], inner) for name, inner in value.items())
    elif isinstance(value, list):
        places = ((f"{path}[{number}]", inner) for number, inner in enumerate(value))
    elif _number_flaw(value) is None:
        return None
    else:
        kind = "a finite number" if isinstance(value, float) else "an integer of at most 64 bits"
        return FieldFlaw(path=path, message=f"must be {kind}", code=FlawCode.OUT_OF_BOUNDS)
    return next(filter(None, (number_flaw(inner, place) for place, inner in places)), None)


def _number_flaw(item: Json) -> str | None:
    if isinstance(item, float) and not isfinite(item):
        return "it holds NaN, Infinity or a number beyond all bounds"
    if isinstance(item, int) and not _MIN_INTEGER <= item <= _MAX_INTEGER:
        return "it holds an integer of more than 64 bits"
    return None

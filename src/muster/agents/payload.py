"""JSON and numbers as agents send and report them: written fast, read from strangers with care. Pure."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any, TypeVar

from muster.domain.call import Message, Request
from muster.domain.canonical import Json, JsonObject
from muster.domain.media import Media
from muster.domain.money import MAX_DOLLARS, Microdollars
from muster.text import typed

MALFORMED = "_malformed"  # holds the arguments of a tool call that are not a JSON object, as they came

# What msgspec refuses and the standard library reads. Half of a pair that stands for one character, escaped or raw: a
# model that is cut in the middle of an emoji leaves it. And numbers that are none, or are larger than any.
_LENIENT = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]|NaN|Infinity|[0-9]{300}|[eE]\+?[0-9]{3}")
_MAX_INTEGER = 300  # digits; floating-point numbers end at 309
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")

_encode = typed.encode

T = TypeVar("T")


def reader(kind: type[T], *raw: tuple[str, str]) -> Callable[[bytes], T]:
    """Return the function that reads one kind of JSON; it raises typed.DecodeError or UnicodeError.

    `raw` names the fields that the kind leaves to be read later, each with the field that it is in.
    """
    decode = typed.Decoder(kind).decode

    def read(body: bytes) -> T:
        try:
            return decode(body)
        except (typed.DecodeError, UnicodeError):
            if _LENIENT.search(body) is None:
                raise
        return typed.convert(_left_raw(_loaded(body), raw), kind)

    return read


def joined(pieces: Iterable[str]) -> str:
    """Join the pieces of a text; a pair whose halves came in two pieces is one character again."""
    text = "".join(pieces)
    return text if text.isascii() else _PAIR.sub(_paired, text)


def to_json(value: Any) -> bytes:
    """Write a body; a text that is not Unicode goes out escaped, for the provider to judge."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=_as_text).encode()


def _as_text(raw: Any) -> str:
    return bytes(raw).decode()


def marked(media: Media, before: str = "") -> typed.Raw:
    """Return the text of a body that holds the bytes of an image or a document, which are put in while it is sent."""
    return typed.Raw(f'"{before}{media.mark}"'.encode())


def arguments_of(text: Any) -> Mapping[str, Json]:
    """Read the arguments of a tool call, which a model wrote and may have got wrong."""
    if isinstance(text, dict):
        return text
    try:
        return _arguments((text or "{}").encode("utf-8", "surrogatepass"))
    except (typed.DecodeError, AttributeError, UnicodeError):
        return {MALFORMED: text}


def decoded(body: bytes) -> Any:
    """Read any JSON, also what msgspec refuses and other readers take; raises ValueError for what is none."""
    try:
        return typed.decode(body)
    except (typed.DecodeError, UnicodeError):
        return json.loads(body.decode("utf-8"), parse_int=_integer)


def _loaded(body: bytes) -> Any:
    """Read what msgspec refuses, so that a paid answer is kept."""
    try:
        return json.loads(body, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise typed.DecodeError(str(error)) from None


def _left_raw(value: Any, parts: Iterable[tuple[str, str]]) -> Any:
    for outer, inner in parts:
        holder = value.get(outer) if isinstance(value, dict) else None
        if isinstance(holder, dict) and inner in holder:
            holder[inner] = typed.Raw(json.dumps(holder[inner], separators=(",", ":")).encode())
    return value


def _integer(digits: str) -> int | float:
    """Read an integer of any length; a very long one is infinite, as the standard library refuses to read it."""
    return int(digits) if len(digits) <= _MAX_INTEGER else float(digits)


def _paired(halves: re.Match[str]) -> str:
    return halves[0].encode("utf-16", "surrogatepass").decode("utf-16")


_arguments = reader(JsonObject)


MAX_COUNT = 2**53  # beyond it, numbers in JSON are not exact

_NOISE = Decimal("1e-9")  # dollars; what is finer comes from sums of floating-point numbers


def microdollars_of(*values: Any) -> Microdollars | None:
    """Read dollars, as numbers or as texts, rounded up to a microdollar; None when they are not known."""
    dollars = _sum(values, MAX_DOLLARS)
    if dollars is None:
        return None
    return Microdollars(int((dollars.quantize(_NOISE) * 1_000_000).to_integral_value(ROUND_CEILING)))


def count_of(*values: Any) -> int | None:
    """Read a number of things, such as tokens; None when it is not known."""
    count = _sum(values, MAX_COUNT) if all(value is None or _is_whole(value) for value in values) else None
    return None if count is None else int(count)


def tokens_of(*values: Any) -> tuple[int, ...] | None:
    """Read counts of tokens, null as 0; None when one of them is not a count."""
    counts = [0 if value is None else value for value in values]
    return tuple(map(int, counts)) if all(map(_is_count, counts)) else None


def _is_count(value: Any) -> bool:
    return (type(value) is int or (type(value) is float and value.is_integer())) and 0 <= value <= MAX_COUNT


def _sum(values: tuple[Any, ...], most: int) -> Decimal | None:
    numbers = [_number(value) for value in values if value is not None]
    known = [number for number in numbers if number is not None and 0 <= number <= most]
    total = sum(known, Decimal())
    return total if known and len(known) == len(numbers) and total <= most else None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        number = Decimal(str(value) if isinstance(value, float) else value)
    except ArithmeticError:
        return None
    return number if number.is_finite() else None


_SAMPLING = ("max_tokens", "temperature", "top_p", "seed", "schema")


def spelled(request: Request) -> JsonObject:
    """Return all that is set in a request, besides its context and what is volatile."""
    found: JsonObject = {"messages": [spelled_message(message) for message in request.messages]}
    if request.system:
        found["system"] = request.system
    if request.tools:
        found["tools"] = [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
            for tool in request.tools
        ]
    if request.stop:
        found["stop"] = list(request.stop)
    sampling = {name: getattr(request, name) for name in _SAMPLING}
    return found | {name: value for name, value in sampling.items() if value is not None}


def spelled_message(message: Message) -> JsonObject:
    """Return one turn."""
    found: JsonObject = {"role": str(message.role), "content": message.text}
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        found["tool_call_id"] = message.tool_call_id
    return found

"""JSON as it goes over the wire: written fast, read from strangers with care."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from muster.domain.canonical import Json

MALFORMED = "_malformed"  # holds the arguments of a tool call that are not a JSON object, as they came

# What msgspec refuses and the standard library reads. Half of a pair that stands for one character, escaped or raw: a
# model that is cut in the middle of an emoji leaves it. And numbers that are none, or are larger than any.
_LENIENT = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]|NaN|Infinity|[0-9]{300}|[eE]\+?[0-9]{3}")
_LONGEST_INTEGER = 300  # digits; floating-point numbers end at 309
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")

_encode = msgspec.json.Encoder().encode

T = TypeVar("T")


def reader(kind: type[T], *raw: tuple[str, str]) -> Callable[[bytes], T]:
    """Give the function that reads one kind of JSON; it raises msgspec.DecodeError or UnicodeError.

    `raw` names the fields that the kind leaves to be read later, each with the field that it is in.
    """
    decode = msgspec.json.Decoder(kind).decode

    def read(body: bytes) -> T:
        try:
            return decode(body)
        except (msgspec.DecodeError, UnicodeError):
            if _LENIENT.search(body) is None:
                raise
        return msgspec.convert(_left_raw(_loaded(body), raw), kind)

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
        return json.dumps(value, separators=(",", ":")).encode()


def arguments_of(text: Any) -> Mapping[str, Json]:
    """Read the arguments of a tool call, which a model wrote and may have got wrong."""
    if isinstance(text, dict):
        return text
    try:
        return _arguments((text or "{}").encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, AttributeError, UnicodeError):
        return {MALFORMED: text}


def _loaded(body: bytes) -> Any:
    """Read what msgspec refuses, so that a paid answer is kept."""
    try:
        return json.loads(body, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from None


def _left_raw(value: Any, parts: Iterable[tuple[str, str]]) -> Any:
    for outer, inner in parts:
        holder = value.get(outer) if isinstance(value, dict) else None
        if isinstance(holder, dict) and inner in holder:
            holder[inner] = msgspec.Raw(json.dumps(holder[inner], separators=(",", ":")).encode())
    return value


def _integer(digits: str) -> int | float:
    """Read an integer of any length; a very long one is infinite, as the standard library refuses to read it."""
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


def _paired(halves: re.Match[str]) -> str:
    return halves[0].encode("utf-16", "surrogatepass").decode("utf-16")


_arguments = reader(dict[str, Any])

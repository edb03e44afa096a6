"""JSON as it goes over the wire: written fast, read from strangers with care."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from muster.domain.canonical import Json

MALFORMED = "_malformed"  # holds the arguments of a tool call that are not a JSON object, as they came

# Half of a pair that stands for one character, escaped or raw. A model that is cut in the middle of an emoji leaves it.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
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
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeError):
            if _HALF.search(body) is None:
                raise
        return msgspec.convert(_left_raw(_with_halves(body), raw), kind)

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


def _with_halves(body: bytes) -> Any:
    """Read what msgspec refuses for half a pair; the standard library keeps it, and a paid answer with it."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from None


def _left_raw(value: Any, parts: Iterable[tuple[str, str]]) -> Any:
    for outer, inner in parts:
        holder = value.get(outer) if isinstance(value, dict) else None
        if isinstance(holder, dict) and inner in holder:
            holder[inner] = msgspec.Raw(to_json(holder[inner]))
    return value


def _paired(halves: re.Match[str]) -> str:
    return halves[0].encode("utf-16", "surrogatepass").decode("utf-16")


_arguments = reader(dict[str, Any])

"""Values of declared types, read from and written as JSON or plain values. No other module uses msgspec.

msgspec builds what it knows of a type when the type is first read, and enters it into the type before it is complete.
Another thread that reads the type, or one that contains it, in the meantime ends the process with a segmentation fault.
So each type is prepared under one lock before its first use, with all types that it contains. Writing builds nothing.
"""

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import msgspec
from msgspec import UNSET, DecodeError, Meta, Raw, Struct, UnsetType, ValidationError, defstruct, field, to_builtins
from msgspec.json import format as format_json
from msgspec.json import schema_components
from msgspec.structs import asdict, replace
from msgspec.structs import fields as struct_fields

__all__ = [
    "UNSET",
    "DecodeError",
    "Decoder",
    "Meta",
    "Raw",
    "Struct",
    "UnsetType",
    "ValidationError",
    "asdict",
    "convert",
    "decode",
    "defstruct",
    "encode",
    "field",
    "format_json",
    "prepare",
    "replace",
    "schema_components",
    "struct_fields",
    "to_builtins",
]

T = TypeVar("T")

encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
decode: Callable[[bytes | str | Raw], Any] = msgspec.json.Decoder().decode

# Two types may contain the same third one, so there is one lock for all. Reentrant: a signal's handler may read too.
_preparing = threading.RLock()
_prepared: set[Any] = set()

# A process that is forked meanwhile would have types that nobody completes, and a lock that nobody releases.
os.register_at_fork(before=_preparing.acquire, after_in_parent=_preparing.release, after_in_child=_preparing.release)


class Decoder(Generic[T]):
    """Reads JSON as a value of one type, which is prepared when it is first used."""

    __slots__ = ("_decode", "_kind")

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._decode: Callable[[bytes | str | Raw], T] | None = None

    def decode(self, text: bytes | str | Raw) -> T:
        """Return the value that a JSON text holds; raises DecodeError, or ValidationError for one of another type."""
        if self._decode is None:
            with _preparing:
                self._decode = msgspec.json.Decoder(self._kind).decode
        return self._decode(text)


@overload
def convert(
    value: Any, kind: type[T], *, dec_hook: Callable[[type, Any], Any] | None = None, str_keys: bool = False
) -> T: ...


@overload
def convert(
    value: Any, kind: Any, *, dec_hook: Callable[[type, Any], Any] | None = None, str_keys: bool = False
) -> Any: ...


def convert(
    value: Any, kind: Any, *, dec_hook: Callable[[type, Any], Any] | None = None, str_keys: bool = False
) -> Any:
    """Return a value of a type from plain ones, such as JSON was read as; raises ValidationError.

    With `str_keys` the texts that are keys of JSON may stand for numbers.
    """
    prepare(kind)
    return msgspec.convert(value, kind, dec_hook=dec_hook, str_keys=str_keys)


def prepare(kind: Any) -> None:
    """Have everything about a type built; raises TypeError for one whose values cannot be read."""
    if kind not in _prepared:
        with _preparing:
            msgspec.json.Decoder(kind)
            _prepared.add(kind)

"""Cases and results as they stand in the journal: many of them as one text, which is quick to write and to read."""

import json
from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from muster.domain.canonical import Json
from muster.domain.case import Case
from muster.domain.verdict import CaseResult

T = TypeVar("T")

_PLACE = {"file", "line", "process_folder", "flaw"}  # and why it cannot be run, which follows from the rest
_CONTENT = attrgetter(*(field.name for field in fields(Case) if field.name not in _PLACE))

_ENCODER = msgspec.json.Encoder()
_CASES = msgspec.json.Decoder(tuple[Case, ...])
_RESULTS = msgspec.json.Decoder(tuple[CaseResult, ...])


def spell(case: Case) -> str:
    """Spell a case without where it lies: the same suite is spelled the same on every machine."""
    return pack(_CONTENT(case))


def pack(values: Sequence[Any]) -> str:
    """Spell cases or results as one text; equal values are spelled equally."""
    try:
        return _ENCODER.encode(values).decode("utf-8")
    except UnicodeEncodeError:  # half a character, as models write them now and then
        return json.dumps(msgspec.to_builtins(values))


def cases_of(packed: Json) -> tuple[Case, ...]:
    """Read cases; nothing holds none."""
    return _read(packed, _CASES, tuple[Case, ...]) if packed else ()


def results_of(packed: Json) -> tuple[CaseResult, ...]:
    """Read results; nothing holds none."""
    return _read(packed, _RESULTS, tuple[CaseResult, ...]) if packed else ()


def _read(packed: str, decoder: "msgspec.json.Decoder[T]", kind: type[T]) -> T:
    try:
        return decoder.decode(packed)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(packed), kind)

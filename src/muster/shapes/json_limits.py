"""Whether data can be kept: JSON that every store reads back as it was."""

from math import isfinite

from muster.domain.canonical import Json

_DEEPEST = 100
_LEAST, _MOST = -(2**63), 2**64 - 1


def flaw_of(value: Json) -> str | None:
    """Say what of a decoded value cannot be kept; None when all of it can."""
    level = [value]
    for _ in range(_DEEPEST):
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
    return f"it is nested more than {_DEEPEST} levels deep"


def _number_flaw(item: Json) -> str | None:
    if isinstance(item, float) and not isfinite(item):
        return "it holds NaN, Infinity or a number beyond all bounds"
    if isinstance(item, int) and not _LEAST <= item <= _MOST:
        return "it holds an integer of more than 64 bits"
    return None

"""The library of regular expressions, and how a pattern is read with it. Those of Rust's flavour are read too.

Flags may stand anywhere and hold from there on, `[[:alpha:]]` and `\\x{1F600}` are known; a pattern is searched for,
not matched from the beginning. What only Rust knows, such as `(?U)`, is refused.

Nothing here limits what a pattern takes: those of strangers are read and searched for through `patterns`.
"""

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from muster.domain.errors import BadArgument

if TYPE_CHECKING:
    import regex  # type: ignore[import-untyped]

MAX_PATTERN = 10_000  # characters of a pattern
_MAX_EXPANSION = 100_000  # characters times counts: the compiler writes some counts out

_ESCAPE = re.compile(r"\\(?:[xu]\{([0-9A-Fa-f]{1,8})\}|.)", re.DOTALL)
_RECURSION = re.compile(r"(?<!\\)(?:\\\\)*\(\?\s*(?:R|[-+]?[0-9]|&|P\s*>)")
_GROUP_COUNT = re.compile(r"\)\{(\d*),?(\d*)\}")
_COUNT = re.compile(r"(?<!\))\{(\d*),?(\d*)\}")


def is_found(pattern: str, texts: Sequence[str], seconds: float) -> bool:
    """Return whether a pattern is found in one of some texts; raises TimeoutError when that takes more CPU."""
    compiled = compile_pattern(pattern)
    until = time.process_time() + seconds
    return any(compiled.search(text, timeout=max(0.001, until - time.process_time())) for text in texts)


@lru_cache(maxsize=64)
def compile_pattern(pattern: str) -> "regex.Pattern[str]":
    """Read a pattern; raises BadArgument when it is none."""
    regex = load_patterns()
    require_size(pattern)
    if _RECURSION.search(pattern):  # no limit of time holds inside of one
        raise BadArgument(f"{pattern[:80]!r} refers to itself, which is not supported")
    spelled = _ESCAPE.sub(_spell, pattern)
    refused = (regex.error, RecursionError, OverflowError, ValueError)
    try:
        return regex.compile(spelled, regex.VERSION1, cache_pattern=False)
    except refused as error:
        # As Python's `re` reads it, to which a bracket inside of brackets is nothing special.
        with suppress(*refused):
            return regex.compile(spelled, regex.VERSION0, cache_pattern=False)
        raise BadArgument(f"{spelled[:80]!r} is not a regular expression: {error}") from error


def load_patterns() -> Any:
    """Return the library, which is loaded by the first that asks for it."""
    import regex

    return regex


def _spell(escape: re.Match[str]) -> str:
    """Write `\\x{41}` in the way that Python knows; leave every other escape alone."""
    digits = escape[1]
    return escape[0] if digits is None else rf"\U{int(digits, 16):08x}"


def require_size(pattern: str) -> None:
    """Raise BadArgument for a pattern that is evidently too large; not all that are too large are evidently so."""
    if len(pattern) > MAX_PATTERN:
        raise _too_large(pattern)
    groups = prod(_largest(count) for count in _GROUP_COUNT.findall(pattern))
    single = max((_largest(count) for count in _COUNT.findall(pattern)), default=1)
    if groups * single * 2 ** _repeats_nested(pattern) * len(pattern) > _MAX_EXPANSION:
        raise _too_large(pattern)


def _too_large(pattern: str) -> BadArgument:
    return BadArgument(
        f"the pattern {pattern[:80]!r} is too large", suggestions=("use smaller repeat counts, or split the pattern",)
    )


_NESTING = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\()|(\)(?:\+|\{\d*,\})?)", re.DOTALL)


def _repeats_nested(pattern: str) -> int:
    """Return how deep groups that repeat without end are nested: the compiler writes each of them out twice."""
    depths = [0]
    for found in _NESTING.finditer(pattern):
        if found[1]:
            depths.append(0)
        elif found[2] and len(depths) > 1:
            inner = depths.pop() + (len(found[2]) > 1)
            depths[-1] = max(depths[-1], inner)
    return max(depths)


def _largest(count: tuple[str, str]) -> int:
    return max(1, *(int(number[:9]) for number in count if number)) if any(count) else 1

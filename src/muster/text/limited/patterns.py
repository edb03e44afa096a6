"""Regular expressions of strangers: they are read and searched for in a process with limits of CPU and memory.

Quick ones, for which the work of a search is known to be bounded by their size and that of the text, are searched for
here: that is nearly every pattern of a suite, and asking another process would cost more than the search.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256

from muster.domain.canonical import JsonObject
from muster.domain.errors import BadArgument
from muster.text.limited.allowance import CpuAllowance
from muster.text.limited.pattern_library import compile_pattern, is_found, require_size
from muster.text.limited.process import TooSlow, evaluate_elsewhere

SECONDS = 1.0  # of CPU, that a search may take
CHECK_SECONDS = 2.0  # of CPU, for one pattern to be read
MAX_INLINE_LENGTH = 200  # characters of a pattern that is searched for here
MAX_STEPS = 5_000_000  # of a search here: some hundredths of a second
MAX_CACHED_RESULTS = 10_000  # patterns of which it is known what is wrong with them
_FLAWS: dict[bytes, str | None] = {}  # by the digest of a pattern: cases and battles ask for the same again and again


def pattern_flaw(pattern: str, allowance: CpuAllowance | None = None) -> str | None:
    """Return why a text is not a regular expression that can be used; None when it is one. It is remembered."""
    digest = sha256(pattern.encode("utf-8", "surrogatepass")).digest()
    if digest not in _FLAWS:
        try:
            wrong = _checked(pattern, allowance or CpuAllowance(CHECK_SECONDS))
        except TooSlow:
            return f"{_named(pattern)} takes too long to read; make it simpler"
        if len(_FLAWS) >= MAX_CACHED_RESULTS:
            _FLAWS.clear()
        _FLAWS[digest] = wrong
    return _FLAWS[digest]


def _checked(pattern: str, allowance: CpuAllowance) -> str | None:
    try:
        require_size(pattern)
        if _shape(pattern) is None:
            evaluate_elsewhere(_named(pattern), {"pattern": pattern}, allowance, min(allowance.left, CHECK_SECONDS))
        else:
            compile_pattern(pattern)
    except TooSlow:
        raise
    except BadArgument as error:
        return error.message
    return None


def found_in(pattern: str, texts: Sequence[str], allowance: CpuAllowance | None = None) -> bool:
    """Return whether a pattern is found in one of some texts.

    Raises BadArgument when it is not a regular expression, and TooSlow when the search takes too much CPU.
    """
    allowance = allowance or CpuAllowance(SECONDS)
    seconds = min(allowance.left, SECONDS)
    try:
        if is_quick(pattern, sum(map(len, texts))):
            with allowance.spending():
                return is_found(pattern, texts, seconds)
        require_size(pattern)
        request: JsonObject = {"pattern": pattern, "texts": list(texts), "search": seconds}
        answer = evaluate_elsewhere(_named(pattern), request, allowance, seconds + CHECK_SECONDS)
    except (TimeoutError, TooSlow):
        answer = {"slow": True}
    if answer.get("slow"):
        raise TooSlow(
            f"{_named(pattern)} takes too long on this answer", suggestions=("avoid nested repeats such as (a+)+",)
        )
    return bool(answer["found"])


def _named(pattern: str) -> str:
    return f"the pattern {pattern[:80]!r}"


# A group that is not repeated; a bar; an edge; a character or a class of them that may be repeated.
_PART = re.compile(
    r"(?P<open>\((?:\?:)?)|(?P<close>\)(?![*+?{]))|(?P<bar>\|)|[\^$]|\\[bB]"
    r"|(?:[^\\\[\](){}|*+?^$]|\\[dDsSwW]|\\[^\w\s]|\[\^?(?:[^\\\[\]&|~-]|\\[dDsSwW]|\\[^\w\s]|(?<=\w)-(?=\w))+\])"
    r"(?P<repeat>(?:[*+?]|\{(?P<least>[0-9]{1,2})(?P<most>,[0-9]{0,2})?\})[+?]?)?"
)
_FLAGS = re.compile(r"\(\?[ims]+\)")


def is_quick(pattern: str, size: int) -> bool:
    """Return whether a pattern is searched for here, and not in another process, in texts of so many characters."""
    shape = _shape(pattern)
    return shape is not None and (size + 1) ** max(1, 1 + shape[1]) * shape[0] <= MAX_STEPS


def _shape(pattern: str) -> tuple[int, int] | None:
    return _quick_shape(pattern) if len(pattern) <= MAX_INLINE_LENGTH else None


@lru_cache(maxsize=1024)
def _quick_shape(pattern: str) -> tuple[int, int] | None:
    """Return how many steps a search can take at one place, and how many repeats without end a pattern has.

    Each of these multiplies the steps by the size of a text. None when nothing is known: for repeated groups,
    references, lookaround, and whatever else is not plain.
    """
    # One that begins at the beginning is tried at one place instead of at all of them.
    ways, endless, size, bars = 1, -_is_anchored(pattern), 1, [1]
    place = flags.end() if (flags := _FLAGS.match(pattern)) else 0
    while place < len(pattern):
        part = _PART.match(pattern, place)
        if part is None:
            return None
        place = part.end()
        if part["open"]:
            bars.append(1)
        elif part["close"]:
            if len(bars) == 1:
                return None
            ways *= bars.pop()
        elif part["bar"]:
            bars[-1] += 1
        else:
            least, most = _counts(part)
            endless += most is None
            ways *= 1 if most is None else max(1, most - least + 1)
            size += max(least, most or 1)
    return (ways * bars[0] * size, endless) if len(bars) == 1 else None


def _is_anchored(pattern: str) -> bool:
    return pattern.startswith("^") and "|" not in pattern


def _counts(part: re.Match[str]) -> tuple[int, int | None]:
    """Return how often a part is repeated, at least and at most; None is without end."""
    if part["repeat"] is None:
        return 1, 1
    if part["least"] is None:
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[part["repeat"][0]]
    least, most = int(part["least"]), part["most"]
    return least, least if most is None else None if most == "," else int(most[1:])

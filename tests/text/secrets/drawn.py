"""Texts drawn from a pattern, of every alternative and every member of a small class: what a rule says it finds."""

from collections.abc import Sequence
from random import Random
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_SMALL = 9  # members of a class that are all tried; a digit or a letter is drawn
_MORE = 5  # repeats beyond the fewest


def texts(pattern: str, least: int, random: Random) -> list[str]:
    """Return so many texts or more that a pattern finds, with every alternative in some of them."""
    parsed, drawer = _parser.parse(pattern), _Drawer(random)
    drawn = [drawer.text(parsed)]
    while len(drawn) < max(least, 4 * drawer.widest):
        drawn.append(drawer.text(parsed))
    return drawn


class _Drawer:
    """Draws one text after another; every place in a pattern takes all its alternatives before one comes again."""

    def __init__(self, random: Random) -> None:
        self._random, self._left = random, dict[int, list[Any]]()
        self.widest = 1  # the most alternatives at one place

    def text(self, parsed: Any) -> str:
        """Return a text of a pattern."""
        drawn = ""
        for op, given in parsed:
            looks = op in (ops.ASSERT, ops.ASSERT_NOT)
            drawn = self._looked_at(op, given, drawn) if looks else drawn + self._one(op, given)
        return drawn

    def _looked_at(self, op: Any, given: Any, drawn: str) -> str:
        """What a pattern asks for behind it is drawn before it, or in the place of its last characters."""
        direction, inner = given
        if op is ops.ASSERT_NOT or direction > 0:
            return drawn
        before = self.text(inner)
        return drawn[: -len(before)] + before if drawn else before

    def _one(self, op: Any, given: Any) -> str:
        if op is ops.LITERAL:
            return chr(given)
        if op is ops.ANY:
            return "x"
        if op is ops.IN:
            members = _members(given)
            return self._next(given, members) if len(members) <= _SMALL else self._random.choice(members)
        if op is ops.BRANCH:
            return self.text(self._next(given, given[1]))
        if op in (ops.SUBPATTERN, ops.ATOMIC_GROUP):
            return self.text(given[-1] if op is ops.SUBPATTERN else given)
        least, most, inner = given  # of a repeat
        times = self._next(given, sorted({least, min(int(most), least + _MORE)}))
        return "".join(self.text(inner) for _ in range(times))

    def _next(self, place: Any, choices: Sequence[Any]) -> Any:
        self.widest = max(self.widest, len(choices))
        left = self._left.setdefault(id(place), [])
        if not left:
            left += self._random.sample(choices, len(choices))
        return left.pop()


def _members(given: Any) -> str:
    """Return the members of a class; some letters for one that says what is none of them."""
    if given[0][0] is ops.NEGATE:
        return "abcdef"
    return "".join(_spelled(kind, value) for kind, value in given)


def _spelled(kind: Any, value: Any) -> str:
    if kind is ops.LITERAL:
        return chr(value)
    if kind is ops.RANGE:
        return "".join(map(chr, range(value[0], value[1] + 1)))
    return " " if value is ops.CATEGORY_SPACE else "0123456789"

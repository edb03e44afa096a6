"""What must hold of some figures, as a frozen tree: `critical + high == 0`. Nothing is evaluated here."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NoReturn

from muster.domain.errors import BadArgument

COUNTS = ("total", "critical", "high", "medium", "low", "rejected", "files")
MEASURES = ("score", "coverage")
PART = "parts."  # before the name of a part of the score
NAMES = (*COUNTS, *MEASURES)


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written."""

    value: float


@dataclass(frozen=True, slots=True)
class Name:
    """A figure that is looked up."""

    name: str


@dataclass(frozen=True, slots=True)
class Sum:
    """Quantities with their signs."""

    terms: "tuple[tuple[str, Quantity], ...]"  # "+" or "-" before each; two or more, or one with "-"


@dataclass(frozen=True, slots=True)
class Relation:
    """Two quantities and how they must compare."""

    sign: str
    left: "Quantity"
    right: "Quantity"


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Everything must hold."""

    parts: "tuple[Truth, ...]"


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Something must hold."""

    parts: "tuple[Truth, ...]"


@dataclass(frozen=True, slots=True)
class Negation:
    """It must not hold."""

    part: "Truth"


Quantity = Number | Name | Sum
Truth = Relation | Conjunction | Disjunction | Negation


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """One expression: its text and what it says."""

    text: str
    tree: Truth

    @property
    def names(self) -> tuple[str, ...]:
        """The figures that it names, each once, in their order."""
        return tuple(dict.fromkeys(names_of(self.tree)))


def names_of(tree: Truth | Quantity) -> Iterator[str]:
    """Yield every name in a tree, as often as it stands there."""
    match tree:
        case Name(name):
            yield name
        case Sum(terms):
            for _, term in terms:
                yield from names_of(term)
        case Relation(_, left, right):
            yield from names_of(left)
            yield from names_of(right)
        case Conjunction(parts) | Disjunction(parts):
            for part in parts:
                yield from names_of(part)
        case Negation(part):
            yield from names_of(part)


def spell(tree: Truth | Quantity) -> str:
    """Write a tree so that it is read as the same tree again."""
    match tree:
        case Number(value):
            return spell_number(value)
        case Name(name):
            return name
        case Sum(terms):
            return _spell_sum(terms)
        case Relation(sign, left, right):
            return f"{spell(left)} {sign} {spell(right)}"
        case Conjunction(parts):
            return " and ".join(_bracketed(part, Conjunction, Disjunction) for part in parts)
        case Disjunction(parts):
            return " or ".join(_bracketed(part, Disjunction) for part in parts)
        case Negation(part):
            return "not " + _bracketed(part, Conjunction, Disjunction)


def spell_number(value: float) -> str:
    """Write a number without an exponent, and without a fraction that says nothing."""
    return str(int(value)) if value == int(value) else format(Decimal(repr(value)), "f")


def _spell_sum(terms: tuple[tuple[str, Quantity], ...]) -> str:
    spelled = " ".join(f"{sign} {_bracketed(term, Sum)}" for sign, term in terms)
    return spelled.removeprefix("+ ")


def _bracketed(tree: Truth | Quantity, *kinds: type) -> str:
    return f"({spell(tree)})" if isinstance(tree, kinds) else spell(tree)


LONGEST = 500  # characters of an expression
DEEPEST = 30  # brackets and negations inside of each other
_LONGEST_NUMBER = 15
_SHOWN = 80

_KNOWN = f"{', '.join(NAMES)} and {PART}NAME"
_PART_NAME = re.compile(r"\w+(?:-\w+)*")
_TOKEN = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    rf"|(?P<word>{re.escape(PART)}{_PART_NAME.pattern}|[^\W\d][\w.]*)"
    r"|(?P<sign>==|!=|<=|>=|<|>|\+|-|\(|\)|%)"
    r"|(?P<foreign>&&|\|\||=|!|≥|≤|≠)"
)
_BLANKS = re.compile(r"\s*")
_MEANT = {"&&": "and", "||": "or", "=": "==", "!": "not", "≥": ">=", "≤": "<=", "≠": "!="}
_COMPARING = ("==", "!=", "<", "<=", ">", ">=")
_KEYWORDS = ("and", "or", "not")
_END = "end"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    place: int  # counted from one


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """Read an expression; raises BadArgument with the place when it is invalid."""
    if len(text) > LONGEST:
        raise BadArgument(f"{text[:_SHOWN]!r}… is not a valid threshold: longer than {LONGEST} characters")
    return _ExpressionParser(text).expression()


def spell_mapping(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return limits as expressions: a count is an upper limit; score, coverage and parts are lower limits."""
    found: list[str] = []
    for name, bound in given.items():
        if name == PART.rstrip(".") and isinstance(bound, Mapping):
            found += (_bound(PART + str(part), least) for part, least in bound.items())
        else:
            found.append(_bound(str(name), bound))
    return tuple(found)


def _bound(name: str, bound: Any) -> str:
    if not _is_name(name):
        raise BadArgument(f"{name!r} is not a known metric{_nearest(name)}; the metrics are {_KNOWN}")
    number = bound.removesuffix("%").strip() if isinstance(bound, str) and name in MEASURES else bound
    if isinstance(number, str) and re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", number):
        number = float(number)
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < 10**9:
        raise BadArgument(f"the limit of {name} must be a number of at least 0, not {str(bound)[:_SHOWN]!r}")
    return parse(f"{name} {'<=' if name in COUNTS else '>='} {spell_number(round(number, 6))}").text


def _is_name(name: str) -> bool:
    return name in NAMES or (name.startswith(PART) and _PART_NAME.fullmatch(name, len(PART)) is not None)


def _nearest(name: str) -> str:
    near = get_close_matches(name, (*NAMES, *_KEYWORDS), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


class _ExpressionParser:
    """Goes through the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._cut()
        self._at = 0
        self._depth = 0

    def expression(self) -> Expression:
        tree = self._either()
        if self._next.kind != _END:
            self._refuse(self._next, f"unexpected {self._next.text!r}")
        found = Expression(text=self._text.strip(), tree=self._as_truth(tree, self._tokens[0]))
        if not found.names:
            self._refuse(self._tokens[0], f"an expression needs a metric; the metrics are {_KNOWN}")
        return found

    def _cut(self) -> list[_Token]:
        tokens: list[_Token] = []
        place = self._blanks(0)
        while place < len(self._text):
            found = _TOKEN.match(self._text, place)
            kind = (found and found.lastgroup) or ""
            token = _Token(kind, found[0] if found else self._text[place], place + 1)
            if found is None:
                self._refuse(token, f"unexpected character {token.text!r}")
            if kind == "foreign":
                self._refuse(token, f"write {_MEANT[token.text]} instead of {token.text}")
            tokens.append(token)
            place = self._blanks(found.end())
        return [*tokens, _Token(_END, "", len(self._text) + 1)]

    def _blanks(self, place: int) -> int:
        found = _BLANKS.match(self._text, place)
        return found.end() if found else place

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *texts: str) -> _Token | None:
        """Go on when the next token is one of these."""
        token = self._next
        if token.text not in texts:
            return None
        self._at += 1
        return token

    def _either(self) -> Truth | Quantity:
        return self._joined("or", self._both, Disjunction)

    def _both(self) -> Truth | Quantity:
        return self._joined("and", self._negated, Conjunction)

    def _joined(
        self, word: str, below: Callable[[], Truth | Quantity], kind: type[Conjunction] | type[Disjunction]
    ) -> Truth | Quantity:
        start = self._next
        first = below()
        if self._next.text != word:
            return first
        parts = [self._as_truth(first, start)]
        while self._take(word):
            parts.append(self._truth_of(below))
        return kind(tuple(parts))

    def _negated(self) -> Truth | Quantity:
        token = self._take("not")
        if token is None:
            return self._comparison()
        self._go_down(token)
        part = self._truth_of(self._negated)
        self._depth -= 1
        return Negation(part)

    def _comparison(self) -> Truth | Quantity:
        start = self._next
        left = self._sum()
        sign = self._take(*_COMPARING)
        if sign is None:
            return left
        right_start = self._next
        right = self._sum()
        if self._next.text in _COMPARING:
            self._refuse(self._next, "comparisons cannot be chained; join them with and")
        return Relation(sign.text, self._as_quantity(left, start), self._as_quantity(right, right_start))

    def _sum(self) -> Truth | Quantity:
        start = self._next
        negative = self._take("-") is not None
        first = self._term()
        if not negative and self._next.text not in ("+", "-"):
            return first
        terms = [("-" if negative else "+", self._as_quantity(first, start))]
        while sign := self._take("+", "-"):
            start = self._next
            terms.append((sign.text, self._as_quantity(self._term(), start)))
        return Sum(tuple(terms))

    def _term(self) -> Truth | Quantity:
        token = self._next
        self._at += token.kind != _END
        if token.kind == "number":
            return self._number(token)
        if token.kind == "word" and token.text not in _KEYWORDS:
            if not _is_name(token.text):
                self._refuse(token, f"unknown name {token.text!r}{_nearest(token.text)}; the metrics are {_KNOWN}")
            return Name(token.text)
        if token.text == "(":
            return self._bracket(token)
        found = f"found {token.text!r}" if token.text else "the expression ends"
        self._refuse(token, f"expected a number or a metric, but {found}")

    def _number(self, token: _Token) -> Number:
        if len(token.text) > _LONGEST_NUMBER:
            self._refuse(token, f"this number has more than {_LONGEST_NUMBER} digits")
        self._take("%")  # 80 % is 80
        return Number(float(token.text))

    def _bracket(self, opening: _Token) -> Truth | Quantity:
        self._go_down(opening)
        found = self._either()
        if self._take(")") is None:
            self._refuse(opening, "this parenthesis is not closed")
        self._depth -= 1
        return found

    def _go_down(self, token: _Token) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            self._refuse(token, f"nested more than {DEEPEST} levels deep")

    def _truth_of(self, read: Callable[[], Truth | Quantity]) -> Truth:
        start = self._next
        return self._as_truth(read(), start)

    def _as_truth(self, found: Truth | Quantity, start: _Token) -> Truth:
        if isinstance(found, Number | Name | Sum):
            self._refuse(start, "this is a number; compare it, for example critical == 0")
        return found

    def _as_quantity(self, found: Truth | Quantity, start: _Token) -> Quantity:
        if isinstance(found, Number | Name | Sum):
            return found
        self._refuse(start, "this is a condition, not a number")

    def _refuse(self, token: _Token, what: str) -> NoReturn:
        raise BadArgument(f"{self._text[:_SHOWN]!r} is not a valid threshold: at character {token.place}: {what}")

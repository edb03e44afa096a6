"""What must hold of some figures, as a frozen tree: `critical + high == 0`. Nothing is evaluated here."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from muster.domain.errors import BadArgument
from muster.domain.flaw import nearest
from muster.text.logic import MAX_CHARACTERS, SHOWN_CHARACTERS, LogicParser, Token

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


_MAX_DIGITS = 15

_KNOWN = f"{', '.join(NAMES)} and {PART}NAME"
_PART_NAME = re.compile(r"\w+(?:-\w+)*")
_TOKEN = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    rf"|(?P<word>{re.escape(PART)}{_PART_NAME.pattern}|[^\W\d][\w.]*)"
    r"|(?P<sign>==|!=|<=|>=|<|>|\+|-|\(|\)|%)"
    r"|(?P<foreign>&&|\|\||=|!|≥|≤|≠)"
)
_KEYWORDS = ("and", "or", "not")


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """Read an expression; raises BadArgument with the place when it is invalid."""
    if len(text) > MAX_CHARACTERS:
        raise BadArgument(
            f"{text[:SHOWN_CHARACTERS]!r}… is not a valid threshold: longer than {MAX_CHARACTERS} characters"
        )
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
        raise BadArgument(f"the limit of {name} must be a number of at least 0, not {str(bound)[:SHOWN_CHARACTERS]!r}")
    return parse(f"{name} {'<=' if name in COUNTS else '>='} {spell_number(round(number, 6))}").text


def _is_name(name: str) -> bool:
    return name in NAMES or (name.startswith(PART) and _PART_NAME.fullmatch(name, len(PART)) is not None)


def _nearest(name: str) -> str:
    near = nearest(name, (*NAMES, *_KEYWORDS))
    return f" (did you mean {near}?)" if near else ""


class _ExpressionParser(LogicParser[Truth | Quantity, Truth, Quantity]):
    """Reads one expression: quantities are compared, truths are joined and negated."""

    noun = "threshold"
    tokens = _TOKEN
    comparing = frozenset({"==", "!=", "<", "<=", ">", ">="})

    def expression(self) -> Expression:
        tree = self.as_truth(self.whole(), self.first)
        expression = Expression(text=self.text.strip(), tree=tree)
        if not expression.names:
            self.refuse(self.first, f"an expression needs a metric; the metrics are {_KNOWN}")
        return expression

    def operand(self) -> Truth | Quantity:
        start = self.next
        negative = self.take("-") is not None
        first = self._term()
        if not negative and self.next.text not in ("+", "-"):
            return first
        terms = [("-" if negative else "+", self.as_operand(first, start))]
        while sign := self.take("+", "-"):
            start = self.next
            terms.append((sign.text, self.as_operand(self._term(), start)))
        return Sum(tuple(terms))

    def as_truth(self, node: Truth | Quantity, start: Token) -> Truth:
        if isinstance(node, Number | Name | Sum):
            self.refuse(start, "this is a number; compare it, for example critical == 0")
        return node

    def as_operand(self, node: Truth | Quantity, start: Token) -> Quantity:
        if isinstance(node, Number | Name | Sum):
            return node
        self.refuse(start, "this is a condition, not a number")

    def junction(self, word: str, parts: tuple[Truth, ...]) -> Truth:
        return Conjunction(parts) if word == "and" else Disjunction(parts)

    def negation(self, part: Truth) -> Truth:
        return Negation(part)

    def comparison(self, sign: str, left: Quantity, right: Quantity) -> Truth:
        return Relation(sign, left, right)

    def _term(self) -> Truth | Quantity:
        token = self.advance()
        if token.kind == "number":
            return self._number(token)
        if token.kind == "word" and token.text not in _KEYWORDS:
            if not _is_name(token.text):
                self.refuse(token, f"unknown name {token.text!r}{_nearest(token.text)}; the metrics are {_KNOWN}")
            return Name(token.text)
        if token.text == "(":
            return self.bracket(token)
        what = f"found {token.text!r}" if token.text else "the expression ends"
        self.refuse(token, f"expected a number or a metric, but {what}")

    def _number(self, token: Token) -> Number:
        if len(token.text) > _MAX_DIGITS:
            self.refuse(token, f"this number has more than {_MAX_DIGITS} digits")
        self.take("%")  # 80 % is 80
        return Number(float(token.text))

"""What must hold of some figures, as a frozen tree: `critical + high == 0`. Nothing is evaluated here."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

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
class Comparison:
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
Truth = Comparison | Conjunction | Disjunction | Negation


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
    """Give every name in a tree, as often as it stands there."""
    match tree:
        case Name(name):
            yield name
        case Sum(terms):
            for _, term in terms:
                yield from names_of(term)
        case Comparison(_, left, right):
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
        case Comparison(sign, left, right):
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

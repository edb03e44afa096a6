"""Conditions of steps: `steps.plan.count > 3 and not input.draft`. Parsed once, evaluated purely."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput
from muster.text.logic import END, MAX_CHARACTERS, LogicParser, Token

_TOKEN = re.compile(
    r"(?P<text>'[^']*'|\"[^\"]*\")|(?P<number>-?[0-9]{1,15}(?:\.[0-9]{1,15})?)"
    r"|(?P<word>[A-Za-z_][\w-]*(?:\.[\w-]+|\[[0-9]+\])*)|(?P<sign>==|!=|<=|>=|<|>|\(|\))|(?P<foreign>&&|\|\||=|!)"
)
_CONSTANTS: dict[str, Json] = {"true": True, "false": False, "null": None}
_KEYWORDS = {"and", "or", "not", "contains"}


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is written in the condition."""

    value: Any


@dataclass(frozen=True, slots=True)
class Lookup:
    """A value that is looked up."""

    name: str


@dataclass(frozen=True, slots=True)
class ComparedValues:
    """Two values and how they must compare."""

    sign: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Junction:
    """All of its parts must hold, or one of them."""

    word: str  # and, or
    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Inversion:
    """It must not hold."""

    part: "Expression"


Expression = Constant | Lookup | ComparedValues | Junction | Inversion
ValueOf = Callable[[str], Any]


@lru_cache(maxsize=1024)
def parse_condition(text: str) -> Expression:
    """Read a condition; raises BadArgument with the place at which it is not one."""
    if len(text) > MAX_CHARACTERS:
        raise BadArgument(f"a condition has at most {MAX_CHARACTERS} characters")
    return _ConditionParser(text).whole()


def names_in(tree: Expression) -> Iterator[str]:
    """Yield the names that a condition looks up."""
    match tree:
        case Lookup(name):
            yield name
        case ComparedValues(_, left, right):
            yield from names_in(left)
            yield from names_in(right)
        case Junction(_, parts):
            for part in parts:
                yield from names_in(part)
        case Inversion(part):
            yield from names_in(part)


def holds(tree: Expression, value_of: ValueOf) -> bool:
    """Return whether a condition holds; raises BadOutput for values that cannot be compared in this way."""
    match tree:
        case Junction("and", parts):
            return all(holds(part, value_of) for part in parts)
        case Junction(_, parts):
            return any(holds(part, value_of) for part in parts)
        case Inversion(part):
            return not holds(part, value_of)
        case ComparedValues(sign, left, right):
            return _compare(sign, _value(left, value_of), _value(right, value_of))
    return bool(_value(tree, value_of))


def _value(tree: Expression, value_of: ValueOf) -> Any:
    match tree:
        case Constant(value):
            return value
        case Lookup(name):
            return value_of(name)
    return holds(tree, value_of)


def _compare(sign: str, left: Any, right: Json) -> bool:
    if sign == "contains":
        return _contains(left, right)
    left, right = _alike(left, right)
    if sign in ("==", "!="):
        equal = type(left) is type(right) and left == right
        return equal == (sign == "==")
    if left is None or right is None:  # of a step that was skipped
        return False
    is_ordered = (_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str))
    if not is_ordered:
        raise BadOutput(f"{_shown(left)} {sign} {_shown(right)} compares values of different kinds")
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[sign])


def _contains(left: Json, right: Json) -> bool:
    if isinstance(left, str):
        return isinstance(right, str) and right in left
    if isinstance(left, list):
        return any(_compare("==", item, right) for item in left)
    return isinstance(left, dict) and isinstance(right, str) and right in left


def _alike(left: Any, right: Any) -> tuple[Json, Json]:
    """Return both as numbers when one is a number and the other the text of one: inputs are texts."""
    if _is_number(left) and isinstance(right, str):
        right = _number(right)
    elif _is_number(right) and isinstance(left, str):
        left = _number(left)
    return (float(left), float(right)) if _is_number(left) and _is_number(right) else (left, right)


def _number(text: str) -> Json:
    return float(text) if re.fullmatch(r"\s*-?[0-9]{1,15}(?:\.[0-9]{1,15})?\s*", text) else text


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


class _ConditionParser(LogicParser[Expression, Expression, Expression]):
    """Reads one condition: every value may be compared, joined and negated."""

    noun = "condition"
    tokens = _TOKEN
    comparing = frozenset({"==", "!=", "<", "<=", ">", ">=", "contains"})

    def operand(self) -> Expression:
        token = self.advance()
        if token.kind == "text":
            return Constant(token.text[1:-1])
        if token.kind == "number":
            return Constant(float(token.text) if "." in token.text else int(token.text))
        if token.text == "(":
            return self.bracket(token)
        if token.kind != "word" or token.text in _KEYWORDS:
            what = "the condition ends" if token.kind == END else f"expected a value, but found {token.text!r}"
            self.refuse(token, what)
        return Constant(_CONSTANTS[token.text]) if token.text in _CONSTANTS else Lookup(token.text)

    def as_truth(self, node: Expression, start: Token) -> Expression:
        return node

    def as_operand(self, node: Expression, start: Token) -> Expression:
        return node

    def junction(self, word: str, parts: tuple[Expression, ...]) -> Expression:
        return Junction(word, parts)

    def negation(self, part: Expression) -> Expression:
        return Inversion(part)

    def comparison(self, sign: str, left: Expression, right: Expression) -> Expression:
        return ComparedValues(sign, left, right)

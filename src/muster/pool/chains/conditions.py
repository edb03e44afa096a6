"""Conditions of steps: `steps.plan.count > 3 and not input.draft`. Parsed once, evaluated purely."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput

LONGEST = 500  # characters
DEEPEST = 30

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'[^']*'|\"[^\"]*\")|(?P<number>-?[0-9]{1,15}(?:\.[0-9]{1,15})?)"
    r"|(?P<word>[A-Za-z_][\w-]*(?:\.[\w-]+|\[[0-9]+\])*)|(?P<sign>==|!=|<=|>=|<|>|\(|\))|(?P<foreign>&&|\|\||=|!))"
)
_MEANT = {"&&": "and", "||": "or", "=": "==", "!": "not"}
_ORDERING = {"<", "<=", ">", ">="}
_COMPARING = {"==", "!=", "contains", *_ORDERING}
_CONSTANTS: dict[str, Json] = {"true": True, "false": False, "null": None}
_KEYWORDS = {"and", "or", "not", "contains"}


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is written in the condition."""

    value: Json


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
ValueOf = Callable[[str], Json]


@lru_cache(maxsize=1024)
def parse_condition(text: str) -> Expression:
    """Read a condition; raises BadArgument with the place at which it is not one."""
    if len(text) > LONGEST:
        raise BadArgument(f"a condition has at most {LONGEST} characters")
    return _ConditionParser(text).condition()


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


def _value(tree: Expression, value_of: ValueOf) -> Json:
    match tree:
        case Constant(value):
            return value
        case Lookup(name):
            return value_of(name)
    return holds(tree, value_of)


def _compare(sign: str, left: Json, right: Json) -> bool:
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


def _alike(left: Json, right: Json) -> tuple[Json, Json]:
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


@dataclass(frozen=True, slots=True)
class _ConditionToken:
    kind: str
    text: str
    place: int  # counted from one


class _ConditionParser:
    """Goes through the tokens of one condition."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self._tokens = self._cut()

    def condition(self) -> Expression:
        """Return all of it."""
        found = self._joined("or")
        if self._next.kind:
            self._refuse(self._next, f"unexpected {self._next.text!r}")
        return found

    def _cut(self) -> list[_ConditionToken]:
        tokens, place, text = [], 0, self._text.rstrip()
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                self._refuse(_ConditionToken("", "", place + 1), f"unexpected character {text[place]!r}")
            kind = str(found.lastgroup)
            token = _ConditionToken(kind, found[kind], found.start(kind) + 1)
            if kind == "foreign":
                self._refuse(token, f"write {_MEANT[token.text]} instead of {token.text}")
            tokens.append(token)
            place = found.end()
        return [*tokens, _ConditionToken("", "", len(text) + 1)]

    @property
    def _next(self) -> _ConditionToken:
        return self._tokens[self._at]

    def _take(self, *texts: str) -> _ConditionToken | None:
        token = self._next
        if token.kind not in ("word", "sign") or token.text not in texts:
            return None
        self._at += 1
        return token

    def _joined(self, word: str) -> Expression:
        parts = [self._joined("and") if word == "or" else self._negated()]
        while self._take(word):
            parts.append(self._joined("and") if word == "or" else self._negated())
        return parts[0] if len(parts) == 1 else Junction(word, tuple(parts))

    def _negated(self) -> Expression:
        token = self._take("not")
        if token is None:
            return self._comparison()
        return self._deeper(token, lambda: Inversion(self._negated()))

    def _comparison(self) -> Expression:
        left = self._operand()
        sign = self._take(*_COMPARING)
        if sign is None:
            return left
        right = self._operand()
        if self._next.text in _COMPARING and self._next.kind != "text":
            self._refuse(self._next, "comparisons cannot be chained; join them with and")
        return ComparedValues(sign.text, left, right)

    def _operand(self) -> Expression:
        token = self._next
        self._at += bool(token.kind)
        if token.kind == "text":
            return Constant(token.text[1:-1])
        if token.kind == "number":
            return Constant(float(token.text) if "." in token.text else int(token.text))
        if token.text == "(":
            found = self._deeper(token, lambda: self._joined("or"))
            if self._take(")") is None:
                self._refuse(token, "this parenthesis is not closed")
            return found
        if token.kind != "word" or token.text in _KEYWORDS:
            self._refuse(token, f"expected a value, but found {token.text!r}" if token.kind else "the condition ends")
        return Constant(_CONSTANTS[token.text]) if token.text in _CONSTANTS else Lookup(token.text)

    def _deeper(self, token: _ConditionToken, read: Callable[[], Expression]) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            self._refuse(token, f"nested more than {DEEPEST} levels deep")
        found = read()
        self._depth -= 1
        return found

    def _refuse(self, token: _ConditionToken, what: str) -> NoReturn:
        raise BadArgument(f"{self._text[:80]!r} is not a valid condition: at character {token.place}: {what}")

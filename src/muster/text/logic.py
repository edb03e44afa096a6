"""The grammar that small languages of conditions share: or, and, not, comparisons, brackets. Nothing is evaluated here.

A language brings its tokens, its operands and its nodes. What is read is bounded in length and depth.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Generic, NoReturn, TypeVar

from muster.domain.errors import BadArgument

MAX_CHARACTERS = 500
MAX_DEPTH = 30  # brackets and negations inside of each other
SHOWN_CHARACTERS = 80  # of a text that is refused
END = "end"  # the kind of the last token
FOREIGN = "foreign"  # the kind of a token that other languages have

_BLANKS = re.compile(r"\s*")
_MEANT = {"&&": "and", "||": "or", "=": "==", "!": "not", "≥": ">=", "≤": "<=", "≠": "!="}

Node = TypeVar("Node")  # what the language makes of a text
Truth = TypeVar("Truth")  # of these, what may be joined and negated
Operand = TypeVar("Operand")  # of these, what may be compared
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a text, and the character at which it begins, counted from one."""

    kind: str  # the group of the pattern that it matched, or END
    text: str
    place: int


class LogicParser(Generic[Node, Truth, Operand]):
    """Goes through the tokens of one text; `not` binds closest, then `and`, then `or`."""

    noun: ClassVar[str]  # what a text is called when it is refused
    tokens: ClassVar[re.Pattern[str]]  # each kind of token is a named group
    comparing: ClassVar[frozenset[str]]  # the tokens that compare

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tuple(self._cut())
        self._at = self._depth = 0

    @abstractmethod
    def operand(self) -> Node:
        """Read what stands on one side of a comparison."""

    @abstractmethod
    def as_truth(self, node: Node, start: Token) -> Truth:
        """Return what may be joined and negated; refuses any other."""

    @abstractmethod
    def as_operand(self, node: Node, start: Token) -> Operand:
        """Return what may be compared; refuses any other."""

    @abstractmethod
    def junction(self, word: str, parts: tuple[Truth, ...]) -> Node:
        """Return the node of parts that are joined by "and" or "or"."""

    @abstractmethod
    def negation(self, part: Truth) -> Node:
        """Return the node of what must not hold."""

    @abstractmethod
    def comparison(self, sign: str, left: Operand, right: Operand) -> Node:
        """Return the node of a comparison."""

    def whole(self) -> Node:
        """Read all of the text."""
        node = self._either()
        if self.next.kind != END:
            self.refuse(self.next, f"unexpected {self.next.text!r}")
        return node

    @property
    def first(self) -> Token:
        """The token with which the text begins."""
        return self._tokens[0]

    @property
    def next(self) -> Token:
        """The token that is read next."""
        return self._tokens[self._at]

    def advance(self) -> Token:
        """Return the next token and go on, but never past the end."""
        token = self.next
        self._at += token.kind != END
        return token

    def take(self, *texts: str) -> Token | None:
        """Return the next token and go on when it is one of these."""
        return self.advance() if self.next.text in texts else None

    def bracket(self, opening: Token) -> Node:
        """Read what follows an opening parenthesis, up to the closing one."""
        node = self._deeper(opening, self._either)
        if self.take(")") is None:
            self.refuse(opening, "this parenthesis is not closed")
        return node

    def refuse(self, token: Token, what: str) -> NoReturn:
        """Raise BadArgument with the place of a token."""
        shown = self.text[:SHOWN_CHARACTERS]
        raise BadArgument(f"{shown!r} is not a valid {self.noun}: at character {token.place}: {what}")

    def _cut(self) -> Iterator[Token]:
        place = self._after_blanks(0)
        while place < len(self.text):
            token = self._token_at(place)
            yield token
            place = self._after_blanks(place + len(token.text))
        yield Token(END, "", place + 1)

    def _token_at(self, place: int) -> Token:
        match = self.tokens.match(self.text, place)
        if match is None:
            self.refuse(Token("", "", place + 1), f"unexpected character {self.text[place]!r}")
        token = Token(str(match.lastgroup), match[0], place + 1)
        if token.kind == FOREIGN:
            self.refuse(token, f"write {_MEANT[token.text]} instead of {token.text}")
        return token

    def _after_blanks(self, place: int) -> int:
        blanks = _BLANKS.match(self.text, place)
        return blanks.end() if blanks else place

    def _either(self) -> Node:
        return self._joined("or", self._both)

    def _both(self) -> Node:
        return self._joined("and", self._negated)

    def _joined(self, word: str, below: Callable[[], Node]) -> Node:
        start = self.next
        first = below()
        if self.next.text != word:
            return first
        parts = [self.as_truth(first, start)]
        while self.take(word):
            parts.append(self._truth(below))
        return self.junction(word, tuple(parts))

    def _negated(self) -> Node:
        token = self.take("not")
        if token is None:
            return self._compared()
        return self.negation(self._deeper(token, lambda: self._truth(self._negated)))

    def _compared(self) -> Node:
        left_start = self.next
        left = self.operand()
        sign = self.take(*self.comparing)
        if sign is None:
            return left
        right_start = self.next
        right = self.operand()
        if self.next.text in self.comparing:
            self.refuse(self.next, "comparisons cannot be chained; join them with and")
        return self.comparison(sign.text, self.as_operand(left, left_start), self.as_operand(right, right_start))

    def _truth(self, read: Callable[[], Node]) -> Truth:
        start = self.next
        return self.as_truth(read(), start)

    def _deeper(self, token: Token, read: Callable[[], Part]) -> Part:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.refuse(token, f"nested more than {MAX_DEPTH} levels deep")
        part = read()
        self._depth -= 1
        return part

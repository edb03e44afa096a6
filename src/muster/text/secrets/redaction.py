"""Secrets found in texts by their pattern, and taken out.

A marker holds the kind of a secret and its number in order of appearance, and nothing that was made from the secret: a
digest would let anybody find a short password by trying. Equal secrets get equal numbers, so that a text that holds one
twice still does.

Every pattern reads each character of a text a bounded number of times, whatever the text is: runs of characters are
possessive, and begin only where the character before does not belong to them.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from json import dumps
from typing import Any

from muster.text.secrets.rules import GUESSED, KEY_BEGIN, RULES, SecretRule, rules_of_file

__all__ = ["GUESSED", "MARK", "Redacted", "Redactor", "Secret", "redact"]

MARK = "[redacted:"  # with which everything begins that stands in the place of a secret

_MAX_DEPTH = 200
_MIN_SECRET = 12  # characters of any secret with what shows that it is one, but for passwords in addresses
_SHORT = 150  # most texts are; to look for all hints at once is quicker then
_AROUND = r"[\s\"'#*/+\\,;.&-]*+"  # a line of a key in code


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A text without its secrets, and how many of each kind there were."""

    text: str
    found: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret that was taken out of code: where it stood and what it is, and nothing that was made from it."""

    line: int  # of its first character
    kind: str


def redact(text: str) -> Redacted:
    """Take the secrets out of one text."""
    redactor = Redactor()
    return Redacted(text=redactor.text(text), found=redactor.found())


class Redactor:
    """Takes secrets out of many texts, with one numbering for all of them."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._found: Counter[str] = Counter()

    def text(self, text: str) -> str:
        """Return a text without its secrets."""
        return self._clean(text, _nothing, [])

    def code(self, text: str) -> str:
        """Return code without its secrets: it keeps its lines, and what is no key is shown even inside of one."""
        return self._clean(text, _between_marks, [])

    def code_and_secrets(self, text: str, name: str = "") -> tuple[str, tuple[Secret, ...]]:
        """Return code without its secrets, and where they stood; by the name of its file more of it is understood."""
        found: list[Secret] = []
        for rule in rules_of_file(name):
            text = re.sub(rule.pattern, partial(self._replace, rule, _between_marks, _Places(rule.kind, found)), text)
        clean = self._clean(text, _between_marks, found)
        return clean, tuple(sorted(found, key=lambda one: (one.line, one.kind)))

    def _clean(self, text: str, rest: Callable[[str], str], found: list[Secret]) -> str:
        if len(text) < _MIN_SECRET and "://" not in text:
            return text
        lower = text.lower()
        if len(text) < _SHORT and not _any_hint().search(lower):
            return text
        met = {hint for hint in _hints() if hint in lower}
        for rule in RULES:
            if not met.isdisjoint(rule.hints):
                text = re.sub(rule.pattern, partial(self._replace, rule, rest, _Places(rule.kind, found)), text)
        return text

    def json(self, value: Any, depth: int = 0) -> Any:
        """Return a JSON value whose texts, names included, are without secrets; what is very deep becomes a text."""
        if isinstance(value, str):
            return self.text(value)
        if not isinstance(value, (Mapping, list, tuple)):
            return value
        if depth >= _MAX_DEPTH:
            return self.text(dumps(value))
        if isinstance(value, Mapping):
            return {self.text(name): self.json(inner, depth + 1) for name, inner in value.items()}
        return [self.json(inner, depth + 1) for inner in value]

    def found(self) -> dict[str, int]:
        """Return how many secrets of each kind were taken out since this was last asked."""
        found, self._found = dict(sorted(self._found.items())), Counter()
        return found

    def _replace(self, rule: SecretRule, rest: Callable[[str], str], places: "_Places", match: re.Match[str]) -> str:
        secret = match["secret"]
        if not rule.holds(secret):
            return match[0]
        places.add(match)
        # By digest: whoever looks at this process finds no secret in here.
        number = self._numbers.setdefault(
            sha256(secret.encode("utf-8", "surrogatepass")).digest(), len(self._numbers) + 1
        )
        self._found[rule.kind] += 1
        start, end = match.span("secret")
        before, after = match[0][: start - match.start()], match[0][end - match.start() :]
        return f"{before}{MARK}{rule.kind}:{number}]{rest(secret)}{after}"


class _Places:
    """Notes the lines of one rule's matches, which come in order: every character is counted once."""

    def __init__(self, kind: str, found: list[Secret]) -> None:
        self._kind, self._found = kind, found
        self._line, self._at = 1, 0

    def add(self, match: re.Match[str]) -> None:
        """Note where a secret stands."""
        start = match.start("secret")
        self._line += match.string.count("\n", self._at, start)
        self._at = start
        self._found.append(Secret(line=self._line, kind=self._kind))


def _nothing(secret: str) -> str:
    return ""


def _between_marks(secret: str) -> str:
    """Return what follows the first mark of a private key, without the key: readers of the code must see the rest.

    Two marks hide whatever stands between them: without this anybody could keep lines of code from being read.
    """
    begin = re.match(KEY_BEGIN, secret)
    if begin is None:  # every other secret is a single word
        return ""
    parts = re.split(r"(\n|\\[nr])", secret[begin.end() :])
    return "".join(part if number % 2 else _without_key(part) for number, part in enumerate(parts))


def _without_key(line: str) -> str:
    """Take out a word that is alone in its line, quoted or commented out, and any word as long as only keys have."""
    alone = re.fullmatch(rf"{_AROUND}[A-Za-z0-9+/=]++{_AROUND}", line)
    return "[redacted]" if alone else re.sub(r"[A-Za-z0-9+/=]{16,}+", "[redacted]", line)


@cache
def _hints() -> tuple[str, ...]:
    return tuple(sorted({hint for rule in RULES for hint in rule.hints}))


@cache
def _any_hint() -> re.Pattern[str]:
    """Return what finds a hint: by its first character, so that few of them are tried at each place."""
    rests = defaultdict(list)
    for hint in _hints():
        rests[hint[0]].append(re.escape(hint[1:]))
    return re.compile("|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in rests.items()))

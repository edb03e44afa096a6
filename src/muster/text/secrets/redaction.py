"""Secrets found in texts by their pattern, and taken out.

A marker holds the kind of a secret and its number in order of appearance, and nothing that was made from the secret: a
digest would let anybody find a short password by trying. Equal secrets get equal numbers, so that a text that holds one
twice still does.

Every pattern reads each character of a text a bounded number of times, whatever the text is: runs of characters are
possessive, and begin only where the character before does not belong to them.
"""

import re
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from json import dumps

from muster.domain.canonical import Json
from muster.text.secrets.forms import ADDRESSES, FORMS, SERVICES, WEAK, expand
from muster.text.secrets.named import (
    BARE_PASSWORD,
    BARE_TOKEN,
    BECOMES,
    QUOTED_KEY,
    QUOTED_PASSWORD,
    UPPERCASE_KEY,
    UPPERCASE_PASSWORD,
    is_bare_key,
    is_bare_password,
    is_key,
    is_password,
    is_setting,
    is_shouted_key,
    random_looking,
)

MARK = "[redacted:"  # with which everything begins that stands in the place of a secret
# Told by the name or the place beside them; every other kind is told by the form that its issuer gave it.
GUESSED = frozenset({"authorization", "bearer_token", "api_key_header", "url_password", "assigned_secret"})

_CHARACTER = r"[A-Za-z0-9_-]"
_END = r"(?![A-Za-z0-9_-])"
_FEWEST_DIGITS = 3
_MOST_DEPTH = 200
_SHORTEST = 14  # characters of any secret with what shows that it is one, but for passwords in addresses
_SHORT = 150  # most texts are; to look for all hints at once is quicker then
_FEWEST_CHARACTERS = 8
_PLACEHOLDERS = frozenset({"password", "passwd", "pass", "pwd", "pw", "secret", "token", "user", "xxx", "changeme"})


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
        for rule in _RULES_OF_FILES.get(name, ()):
            text = re.sub(rule.pattern, partial(self._replace, rule, _between_marks, _Places(rule.kind, found)), text)
        clean = self._clean(text, _between_marks, found)
        return clean, tuple(sorted(found, key=lambda one: (one.line, one.kind)))

    def _clean(self, text: str, rest: Callable[[str], str], found: list[Secret]) -> str:
        if len(text) < _SHORTEST and "://" not in text:
            return text
        lower = text.lower()
        if len(text) < _SHORT and not _any_hint().search(lower):
            return text
        met = {hint for hint in _hints() if hint in lower}
        for rule in _RULES:
            if not met.isdisjoint(rule.hints):
                text = re.sub(rule.pattern, partial(self._replace, rule, rest, _Places(rule.kind, found)), text)
        return text

    def json(self, value: Json, depth: int = 0) -> Json:
        """Return a JSON value whose texts, names included, are without secrets; what is very deep becomes a text."""
        if isinstance(value, str):
            return self.text(value)
        if not isinstance(value, (Mapping, list, tuple)):
            return value
        if depth >= _MOST_DEPTH:
            return self.text(dumps(value))
        if isinstance(value, Mapping):
            return {self.text(name): self.json(inner, depth + 1) for name, inner in value.items()}
        return [self.json(inner, depth + 1) for inner in value]

    def found(self) -> dict[str, int]:
        """Return how many secrets of each kind were taken out since this was last asked."""
        found, self._found = dict(sorted(self._found.items())), Counter()
        return found

    def _replace(self, rule: "_SecretRule", rest: Callable[[str], str], places: "_Places", match: re.Match[str]) -> str:
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
    begin = re.match(_KEY_BEGIN, secret)
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
    return tuple(sorted({hint for rule in _RULES for hint in rule.hints}))


@cache
def _any_hint() -> re.Pattern[str]:
    """Return what finds a hint: by its first character, so that few of them are tried at each place."""
    rests = defaultdict(list)
    for hint in _hints():
        rests[hint[0]].append(re.escape(hint[1:]))
    return re.compile("|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in rests.items()))


def _any(secret: str) -> bool:
    return True


def _has_digits(secret: str) -> bool:
    """Return whether a text is a key, and not a name with hyphens in it."""
    return sum(character.isdigit() for character in secret) >= _FEWEST_DIGITS


def _no_placeholder(secret: str) -> bool:
    """Return whether a text is a credential, and not a placeholder or a variable."""
    plain = secret.strip("*.xX")
    uppercase = plain.replace("_", "").replace("-", "").isalpha() and plain.isupper()
    return bool(plain) and plain.lower() not in _PLACEHOLDERS and not uppercase and secret[0] not in "$<{%["


def _is_pair(secret: str) -> bool:
    """Return whether a text is a name and a password in base64, as in Docker's configuration."""
    return re.fullmatch(r"[^:\s]{1,200}+:\S{3,}+", _decoded(secret)) is not None


def _is_private(secret: str) -> bool:
    """Return whether a text is the beginning of a private key in base64."""
    return "PRIVATE KEY" in _decoded(secret[:80])


def _decoded(secret: str) -> str:
    try:
        return b64decode(secret[: len(secret) // 4 * 4]).decode("latin-1")
    except ValueError:
        return ""


def _credential(secret: str) -> bool:
    return len(secret) >= _FEWEST_CHARACTERS and _no_placeholder(secret)


@dataclass(frozen=True, slots=True)
class _SecretRule:
    kind: str
    hints: tuple[str, ...]  # in lower case; a text without any of them is not searched
    pattern: str  # the group `secret` is taken out; compiled when a hint is met, so that nobody pays for it before
    holds: Callable[[str], bool] = _any


def _token(kind: str, hints: str, pattern: str, holds: Callable[[str], bool] = _any) -> _SecretRule:
    """Make the rule for a token that is known by its first characters."""
    return _SecretRule(kind, tuple(hints.split()), f"(?P<secret>{_at_start(pattern)}){_END}", holds)


def _at_start(pattern: str) -> str:
    """Return a pattern that begins after something else than a token, or after an escape in a text that is JSON itself.

    That is asked after the letters it begins with, if any: the library jumps from one place with these to the next.
    """
    rest = re.sub(r"^(?:[A-Za-z0-9_/-](?![*+?{]))*+", "", pattern)
    first = pattern.removesuffix(rest)
    return rf"{first}(?:(?<![A-Za-z0-9_-]{first})|(?<=\\[nrtbf]{first})){rest}"


def _assigned(pattern: str, holds: Callable[[str], bool]) -> _SecretRule:
    """Make a rule for what is told by the name before it."""
    return _SecretRule("assigned_secret", ("key", "secret", "passw", "passp", "pwd", "token"), pattern, holds)


_KEY_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BODY = r"(?:[^-]++|-(?!----))*+"
_CUT_BODY = r"(?:\s|\\[nr])*+(?:[A-Za-z0-9+/=]{40,}+(?:\s|\\[nr])*+)++[A-Za-z0-9+/=]*+"  # of a key without its end
_AROUND = r"[\s\"'#*/+\\,;.&-]*+"  # a line of a key in code
_IS = r"\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?"  # between a name and its value, in code, JSON, headers, settings
_NO_CALL = r"(?!(?:\.[a-z_]{1,40}+)?+\()"  # what is called is a name in code
_NAMES = r"(?:api|access|secret|private|account)[_-]?key|secret|password|passwd|(?:access|auth|api|refresh)[_-]?token"

_GAP = r"\s{1,20}+"
_FIELD = r"\S{1,200}+"
_CALLED_KEY = r"(?=[A-Za-z0-9_. -]{0,40}?(?i:key|token|secret|auth|pass|pat\b))"


def _of_service(names: str, form: str) -> _SecretRule:
    """Make the rule for a secret that is told by the name of who issued it."""
    name = rf"(?i:(?<![A-Za-z])(?:{names})){_CALLED_KEY}[A-Za-z0-9_.-]{{0,40}}+"
    value = rf"(?:[bBrRuU@]{{0,2}}+\\?[\"'`])?+(?P<secret>{form}){_END}"
    return _SecretRule("service_key", _plain_names(names), name + BECOMES + value, is_key)


def _plain_names(names: str) -> tuple[str, ...]:
    """Return the letters that each of some names begins with."""
    return tuple(found[0] for name in names.split("|") if (found := re.match("[a-z0-9_]{3,}", name)))


_RULES = (
    _SecretRule("private_key", ("-----begin ",), f"(?P<secret>{_KEY_BEGIN}(?:{_KEY_BODY}{_KEY_END}|{_CUT_BODY}))"),
    *(_token(kind, hints, expand(form), random_looking if kind in WEAK else _any) for kind, hints, form in FORMS),
    _token("openai_key", "sk-", rf"sk-{_CHARACTER}{{20,}}+", _has_digits),
    *(_SecretRule(kind, tuple(hints.split()), expand(form)) for kind, hints, form in ADDRESSES),
    *(_of_service(names, expand(form)) for names, form in SERVICES),
    _SecretRule(
        "netrc_password", ("login",), rf"\blogin{_GAP}{_FIELD}{_GAP}password{_GAP}(?P<secret>\S{{4,200}}+)", _credential
    ),
    _SecretRule(
        "docker_auth", ('"auth"',), r"\"auth\"\s{0,4}:\s{0,4}\"(?P<secret>[A-Za-z0-9+/]{8,4000}+={0,2}+)\"", _is_pair
    ),
    _SecretRule(
        "private_key", ("ls0tls1crudjti",), r"(?P<secret>LS0tLS1CRUdJTi[A-Za-z0-9+/]{60,}+={0,2}+)", _is_private
    ),
    _SecretRule(
        "authorization",
        ("authorization",),
        rf"(?i:authorization){_IS}(?i:bearer|basic|token|digest)\s{{1,4}}(?P<secret>[A-Za-z0-9._~+/=:-]{{8,}}+)",
        _credential,
    ),
    _SecretRule(
        "bearer_token",
        ("bearer ",),
        r"(?i:\bbearer) {1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,}+)",
        _has_digits,
    ),
    _SecretRule(
        "api_key_header",
        ("x-api-key", "x-goog-api-key"),
        rf"(?i:x-api-key|x-goog-api-key){_IS}(?P<secret>[A-Za-z0-9._~+/=-]{{8,}}+)",
        _credential,
    ),
    _SecretRule(
        "url_password",
        ("://",),
        r"://[^\s/:@?#\"'<>\\]{0,256}+:(?P<secret>[^\s/@\"'<>\\]{1,256}+)@",
        _no_placeholder,
    ),
    _assigned(QUOTED_PASSWORD, is_password),
    _assigned(QUOTED_KEY, is_key),
    _assigned(UPPERCASE_PASSWORD, is_bare_password),
    _assigned(UPPERCASE_KEY, is_shouted_key),
    _assigned(BARE_TOKEN, is_bare_key),
    _assigned(BARE_PASSWORD, is_setting),
    _assigned(rf"(?i:{_NAMES}){_IS}(?P<secret>[A-Za-z0-9+/_=-]{{16,}}+){_NO_CALL}", random_looking),
)

_COLUMN = r"(?:[^:\n\\]|\\.){0,256}+"
_PGPASS = rf"(?m)^(?!#){_COLUMN}:(?:[0-9]{{1,5}}+|\*):{_COLUMN}:{_COLUMN}:(?P<secret>\S{{1,512}}+)"
_RULES_OF_FILES = {
    name: (_SecretRule("pgpass_password", (), _PGPASS, _no_placeholder),) for name in (".pgpass", "pgpass.conf")
}

"""Secrets found in texts by their pattern, and taken out.

A marker holds the kind of a secret and its number in order of appearance, and nothing that was made from the secret: a
digest would let anybody find a short password by trying. Equal secrets get equal numbers, so that a text that holds one
twice still does.

Every pattern reads each character of a text a bounded number of times, whatever the text is: runs of characters are
possessive, and begin only where the character before does not belong to them.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from json import dumps

from muster.domain.canonical import Json

_AFTER_NAME = r"(?i:[_-]?(?:base|value|production|prod|live|staging|[0-9]{1,2}))?+"
_PASSWORD = rf"(?i:password|passwd|passphrase|pwd){_AFTER_NAME}"
_KINDS = "api|access|secret|private|account|signing|encryption|master|client|storage|service"
_KEY = rf"(?i:(?:{_KINDS})[_-]?key|secret|token){_AFTER_NAME}"
_UPPERCASE = rf"(?:(?:{_KINDS.upper()})_?KEY|SECRET|TOKEN){_AFTER_NAME}"
_BLANKS = r"[ \t]{0,20}+"
_TYPE = r"(?::[ \t]{0,4}+[A-Za-z_&][\w.&'\[\]<>|?,: ]{0,60}+(?==))?+"  # let token: String = …
_BECOMES = rf"\\?[\"'`]?+\]?+{_BLANKS}{_TYPE}(?:\|\|=|\?\?=|:=|=>|!=|={{1,3}}+|:){_BLANKS}"
_LITERAL = r"[bBrRuU@]{{0,2}}+\\?(?P<quote>[\"'`])(?P<secret>[^\"'`\s\\]{{{least},4000}}+)\\?(?P=quote)"
_BARE = r"(?P<secret>(?:[A-Za-z0-9+/_=~-]|\.(?=[A-Za-z0-9])){12,}+)(?![(\[])"
_WORD = r"[^\s\"'`\\;,(){}\[\]<>$]"

QUOTED_PASSWORD = _PASSWORD + _BECOMES + _LITERAL.format(least=8)
QUOTED_KEY = _KEY + _BECOMES + _LITERAL.format(least=12)
UPPERCASE_KEY = rf"{_UPPERCASE}(?:[ \t]?[:=][ \t]?){_BARE}"
UPPERCASE_PASSWORD = rf"(?:PASSWORD|PASSWD|PASSPHRASE){_AFTER_NAME}=(?P<secret>{_WORD}{{8,4000}}+)(?![(\[])"
BARE_TOKEN = rf"(?i:token)(?:[ \t]{{0,4}}+[:=][ \t]{{0,4}}+){_BARE}"

_FEWEST_DIGITS = 3
_FEWEST_IN_NAME = 4  # digits in what could be a name in code; sha256OfUser is one
_FEWEST_DISTINCT = 10
_LONG_WORD = 12  # letters; "required" and "disabled" are no passwords
_SIGNS = frozenset("!@$%^&*~+=?")
_CODE = frozenset("+,);:=.&|?]/#")  # begins what stands between two quoted texts, or a path; no value
_STANDS_FOR = re.compile(
    r"your|change[-_]?me|change[-_]?this|replace|example|placeholder|dummy|redacted|insert|x{4}|\*{3}|\.{3}|://|\{|\$\("
    r"|^(?:my|new|old|test|fake|mock|some|user|reset|forgot|confirm|current|enter|invalid|wrong|the)?[-_]?"
    r"(?:password|passwd|pass|secret|token|key|api[-_]?key)[-_]?\d{0,4}$",
    re.IGNORECASE,
)
_NAME_IN_CODE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+")


def random_looking(secret: str) -> bool:
    """Return whether a text looks random, unlike a name or a number."""
    mixed = secret != secret.lower() and secret != secret.upper()
    letters = any(character.isalpha() for character in secret)
    enough = _digits(secret) >= (1 if mixed else _FEWEST_DIGITS)
    return letters and enough and len(set(secret)) >= _FEWEST_DISTINCT


def is_key(secret: str) -> bool:
    """Return whether a quoted text is a key, and not a word, a path or a placeholder."""
    return random_looking(secret) and not _stands_for_one(secret)


def is_bare_key(secret: str) -> bool:
    """Return whether a text without quotes is a key, and not a name in code."""
    if _NAME_IN_CODE.fullmatch(secret) and ("." in secret or secret != secret.upper()):
        return _digits(secret) >= _FEWEST_IN_NAME and is_key(secret)
    return is_key(secret)


def is_shouted_key(secret: str) -> bool:
    """Return whether a text is the value of an environment variable, and not a chain of names in code."""
    return is_bare_key(secret) if "." in secret else is_key(secret)


def is_password(secret: str) -> bool:
    """Return whether a text is a password, and not a label, an identifier or a placeholder."""
    if _stands_for_one(secret):
        return False
    if _digits(secret) or _SIGNS & set(secret):
        return True
    return secret.isascii() and secret.isalpha() and secret.islower() and len(secret) >= _LONG_WORD


def is_bare_password(secret: str) -> bool:
    """Return whether a text without quotes is a password, and not a chain of names in code."""
    chain = "." in secret and _NAME_IN_CODE.fullmatch(secret)
    return not chain and any(character.isalpha() for character in secret) and is_password(secret)


def _stands_for_one(secret: str) -> bool:
    """Return whether this begins like no value, or is a word that people write where a secret will be."""
    return secret[0] in _CODE or secret[0] in "$<{%[" or _STANDS_FOR.search(secret) is not None


def _digits(secret: str) -> int:
    return sum(character.isdigit() for character in secret)


MARK = "[redacted:"  # with which everything begins that stands in the place of a secret
# Told by the name or the place beside them; every other kind is told by the form that its issuer gave it.
GUESSED = frozenset({"authorization", "bearer_token", "api_key_header", "url_password", "assigned_secret"})

# A token begins after something else than a token, or after an escape in a text that is JSON itself.
_START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf]))"
_CHARACTER = r"[A-Za-z0-9_-]"
_END = r"(?![A-Za-z0-9_-])"
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

    def code_and_secrets(self, text: str) -> tuple[str, tuple[Secret, ...]]:
        """Return code without its secrets, and where they stood."""
        found: list[Secret] = []
        clean = self._clean(text, _between_marks, found)
        return clean, tuple(sorted(found, key=lambda one: (one.line, one.kind)))

    def _clean(self, text: str, rest: Callable[[str], str], found: list[Secret]) -> str:
        if len(text) < _SHORTEST and "://" not in text:
            return text
        lower = text.lower()
        if len(text) < _SHORT and not _hints().search(lower):
            return text
        for rule in _RULES:
            if any(hint in lower for hint in rule.hints):
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
def _hints() -> re.Pattern[str]:
    return re.compile("|".join(sorted({re.escape(hint) for rule in _RULES for hint in rule.hints})))


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
    return _SecretRule(kind, tuple(hints.split()), f"{_START}(?P<secret>{pattern}){_END}", holds)


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

_RULES = (
    _SecretRule("private_key", ("-----begin ",), f"(?P<secret>{_KEY_BEGIN}(?:{_KEY_BODY}{_KEY_END}|{_CUT_BODY}))"),
    _token("anthropic_key", "sk-ant-", rf"sk-ant-{_CHARACTER}{{12,}}+"),
    _token("openrouter_key", "sk-or-", rf"sk-or-{_CHARACTER}{{16,}}+"),
    _token("openai_key", "sk-", rf"sk-{_CHARACTER}{{20,}}+", _has_digits),
    _token("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}+"),
    _token("github_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}+"),
    _token("gitlab_token", "glpat-", rf"glpat-{_CHARACTER}{{20,}}+"),
    _token("aws_key", "akia asia", r"(?:AKIA|ASIA)[A-Z0-9]{16}+"),
    _token("google_key", "aiza", rf"AIza{_CHARACTER}{{35}}+"),
    _token("google_secret", "gocspx-", rf"GOCSPX-{_CHARACTER}{{20,}}+"),
    _token("google_token", "ya29.", rf"ya29\.{_CHARACTER}{{20,}}+"),
    _token("slack_token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}+", _has_digits),
    _token("slack_token", "xapp-", r"xapp-[A-Za-z0-9-]{10,}+", _has_digits),
    _token("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+"),
    _token("stripe_key", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}+"),
    _token("huggingface_token", "hf_", r"hf_[A-Za-z0-9]{30,}+"),
    _token("npm_token", "npm_", r"npm_[A-Za-z0-9]{36,}+"),
    _token("pypi_token", "pypi-", rf"pypi-AgE{_CHARACTER}{{40,}}+"),
    _token("sendgrid_key", "sg.", rf"SG\.{_CHARACTER}{{16,}}+\.{_CHARACTER}{{16,}}+"),
    _token("groq_key", "gsk_", r"gsk_[A-Za-z0-9]{32,}+"),
    _token("xai_key", "xai-", r"xai-[A-Za-z0-9]{32,}+"),
    _token("jwt", "eyj", rf"eyJ{_CHARACTER}{{8,}}+\.eyJ{_CHARACTER}{{8,}}+\.{_CHARACTER}{{8,}}+"),
    _SecretRule(
        "slack_webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9/_-]{20,}+)",
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
    _assigned(rf"(?i:{_NAMES}){_IS}(?P<secret>[A-Za-z0-9+/_=-]{{16,}}+){_NO_CALL}", random_looking),
)

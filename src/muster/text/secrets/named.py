"""Secrets that are told by the name beside them, such as `password = "…"`: patterns, and what is a value and not code.

It says what looks like a secret; `redaction` takes it out.
"""

import re

from muster.text.secrets.names_in_code import is_name

_AFTER_NAME = r"(?i:[_-]?(?:base|value|production|prod|live|staging|[0-9]{1,2}))?+"
_CALLED = "(?i:password|passwd|passphrase|pwd)"
_PASSWORD = rf"(?:{_CALLED}|(?i:[_-]pass)(?![A-Za-z])){_AFTER_NAME}"
_KINDS = "api|access|secret|private|account|signing|encryption|master|client|storage|service"
_KEY = rf"(?i:(?:{_KINDS})[_-]?key|secret|token){_AFTER_NAME}"
_UPPERCASE = rf"(?:(?:{_KINDS.upper()})_?KEY|SECRET|TOKEN){_AFTER_NAME}"
_BLANKS = r"[ \t]{0,20}+"
_TYPE = r"(?::[ \t]{0,4}+[A-Za-z_&][\w.&'\[\]<>|?,: ]{0,60}+(?==))?+"  # let token: String = …
BECOMES = rf"\\?[\"'`]?+\]?+{_BLANKS}{_TYPE}(?:\|\|=|\?\?=|:=|=>|!=|={{1,3}}+|:){_BLANKS}"
_LITERAL = r"[bBrRuU@]{{0,2}}+\\?(?P<quote>[\"'`])(?P<secret>[^\"'`\s\\]{{{least},4000}}+)\\?(?P=quote)"
_BARE = r"(?P<secret>(?:[A-Za-z0-9+/_=~-]|\.(?=[A-Za-z0-9])){12,}+)(?![(\[])"
_WORD = r"[^\s\"'`\\;,(){}\[\]<>$]"

QUOTED_PASSWORD = _PASSWORD + BECOMES + _LITERAL.format(least=8)
QUOTED_KEY = _KEY + BECOMES + _LITERAL.format(least=12)
UPPERCASE_KEY = rf"{_UPPERCASE}(?:[ \t]?[:=][ \t]?){_BARE}"
UPPERCASE_PASSWORD = rf"(?:PASSWORD|PASSWD|PASSPHRASE){_AFTER_NAME}=(?P<secret>{_WORD}{{8,4000}}+)(?![(\[])"
# At the end of a line of settings; in code what is assigned is quoted, or a name.
_COMMENT_OR_END = r"[ \t]{0,8}+(?:#[^\n]{0,200}+)?+$"
_SETS = rf"{_PASSWORD}[ \t]{{0,4}}+[:=][ \t]{{0,4}}+"
_BARE_WORD = rf"(?:(?!&[A-Za-z_]{{2,20}}=){_WORD})"  # without the next parameter of an address
BARE_PASSWORD = rf"(?m){_SETS}(?P<secret>{_BARE_WORD}{{8,200}}+){_COMMENT_OR_END}"
SETTING = rf"(?m){_SETS}(?P<secret>{_WORD}{{6,200}}+){_COMMENT_OR_END}"
# In an address, a connection string or a comment: whatever follows, but for what continues a name or an expression.
PASSWORD_ANYWHERE = rf"{_SETS}(?P<secret>[A-Za-z0-9!@#%^*~_]{{8,200}}+)(?![(\[{{<$/+?|=-]|[.:][A-Za-z0-9_(])"
ELEMENT = rf"{_CALLED}>(?P<secret>{_WORD}{{8,200}}+)</"
ATTRIBUTE = rf"{_CALLED}[\"']\s{{1,20}}+value=[\"'](?P<secret>[^\s\"'<>]{{8,200}}+)[\"']"
_ARGUMENT = r"[\"']?(?P<secret>[^\s\"'`\\$<>{}()\[\],;|&]{6,200}+)"
OPTION = rf"--(?:[a-z]{{2,20}}+-){{0,3}}+(?:password|passwd|passphrase|pass)(?:=|[ \t]{{1,4}}+){_ARGUMENT}"
OPTION_OF_MYSQL = rf"\b(?:mysql|mariadb|sshpass)[a-z-]{{0,10}}+[^\n]{{0,200}}?[ \t]-p{_ARGUMENT}"
OPTION_OF_CURL = rf"\bcurl[^\n]{{0,200}}?[ \t](?:-u|--user)[ =]?[\"']?[^\s:\"'$]{{1,100}}+:{_ARGUMENT}"
BARE_TOKEN = rf"(?i:token)(?:[ \t]{{0,4}}+[:=][ \t]{{0,4}}+){_BARE}"

_MIN_DIGITS = 3
_MIN_IN_NAME = 4  # digits in what could be a name in code; sha256OfUser is one
_MIN_DISTINCT = 10
_MIN_IN_PASSWORD = 5  # distinct characters
_LONG_WORD = 12  # letters; "required" and "disabled" are no passwords
_SIGNS = frozenset("!@$%^&*~+=?")
_REFERS = frozenset("!*&@|>-")  # begins what stands for a value elsewhere, in YAML and in shells
_CODE = frozenset("+,);:=.&|?]/#")  # begins what stands between two quoted texts, or a path; no value
_STANDS_FOR = re.compile(
    r"your|change[-_]?me|change[-_]?this|replace|example|placeholder|dummy|redacted|insert|x{4}|\*{3}|\.{3}|://|\{|\$\("
    r"|^(?:vault|ssm|arn|env|file|ref):"
    r"|^(?:my|new|old|test|fake|mock|some|user|reset|forgot|confirm|current|enter|invalid|wrong|the)?[-_]?"
    r"(?:password|passwd|pass|secret|token|key|api[-_]?key)[-_]?\d{0,4}$",
    re.IGNORECASE,
)
_NAME_IN_CODE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+")


def random_looking(secret: str) -> bool:
    """Return whether a text looks random, unlike a name or a number."""
    mixed = secret != secret.lower() and secret != secret.upper()
    letters = any(character.isalpha() for character in secret)
    enough = _digits(secret) >= (1 if mixed else _MIN_DIGITS)
    return letters and enough and len(set(secret)) >= _MIN_DISTINCT


def is_key(secret: str) -> bool:
    """Return whether a quoted text is a key, and not a word, a path or a placeholder."""
    return random_looking(secret) and not _stands_for_one(secret)


def is_service_key(secret: str) -> bool:
    """Return whether a text of the length of a service's keys is one: letters alone will do, if they are no name."""
    return is_key(secret) or (is_password(secret) and secret.isalpha() and not secret.islower())


def is_bare_key(secret: str) -> bool:
    """Return whether a text without quotes is a key, and not a name in code."""
    if _NAME_IN_CODE.fullmatch(secret) and ("." in secret or secret != secret.upper()):
        return _digits(secret) >= _MIN_IN_NAME and is_key(secret)
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
    if not (secret.isascii() and secret.isalpha() and len(set(secret)) >= _MIN_IN_PASSWORD):
        return False
    return len(secret) >= _LONG_WORD if secret.islower() else not is_name(secret)


def is_bare_password(secret: str) -> bool:
    """Return whether a text without quotes is a password, and not a chain of names in code."""
    chain = "." in secret and _NAME_IN_CODE.fullmatch(secret)
    return not chain and any(character.isalpha() for character in secret) and is_password(secret)


def is_setting(secret: str) -> bool:
    """Return whether a text without quotes is a password, and not a name in code or an expression."""
    if secret[0] in _REFERS or len(set(secret)) < _MIN_IN_PASSWORD or _stands_for_one(secret):
        return False
    if _NAME_IN_CODE.fullmatch(secret):
        return "." not in secret and not is_name(secret)
    return _digits(secret) > 0 and any(character.isalpha() for character in secret)


def is_argument(secret: str) -> bool:
    """Return whether a text is a password where names cannot stand: after an option, or in a file of settings."""
    has_both = _digits(secret) > 0 and any(character.isalpha() for character in secret)
    chain = "." in secret and _NAME_IN_CODE.fullmatch(secret)
    return is_setting(secret) or (has_both and not chain and secret[0] not in _REFERS and not _stands_for_one(secret))


def _stands_for_one(secret: str) -> bool:
    """Return whether this begins like no value, or is a word that people write where a secret will be."""
    return secret[0] in _CODE or secret[0] in "$<{%[" or _STANDS_FOR.search(secret) is not None


def _digits(secret: str) -> int:
    return sum(character.isdigit() for character in secret)

"""Secrets that are told by the name they are assigned to: how that is written in code and settings, and what is none.

A name may have anything before it. Every run of characters is possessive and bounded, as redaction promises.
"""

import re

_AFTER_NAME = r"(?i:[_-]?(?:base|value|production|prod|live|staging|[0-9]{1,2}))?+"
_PASSWORD = rf"(?i:password|passwd|passphrase|pwd){_AFTER_NAME}"
_KINDS = "api|access|secret|private|account|signing|encryption|master|client|storage|service"
_KEY = rf"(?i:(?:{_KINDS})[_-]?key|secret|token){_AFTER_NAME}"
_SHOUTED = rf"(?:(?:{_KINDS.upper()})_?KEY|SECRET|TOKEN){_AFTER_NAME}"
_BLANKS = r"[ \t]{0,20}+"
_TYPE = r"(?::[ \t]{0,4}+[A-Za-z_&][\w.&'\[\]<>|?,: ]{0,60}+(?==))?+"  # let token: String = …
_BECOMES = rf"\\?[\"'`]?+\]?+{_BLANKS}{_TYPE}(?:\|\|=|\?\?=|:=|=>|!=|={{1,3}}+|:){_BLANKS}"
_LITERAL = r"[bBrRuU@]{{0,2}}+\\?(?P<quote>[\"'`])(?P<secret>[^\"'`\s\\]{{{least},4000}}+)\\?(?P=quote)"
_BARE = r"(?P<secret>(?:[A-Za-z0-9+/_=~-]|\.(?=[A-Za-z0-9])){12,}+)(?![(\[])"
_WORD = r"[^\s\"'`\\;,(){}\[\]<>$]"

QUOTED_PASSWORD = _PASSWORD + _BECOMES + _LITERAL.format(least=8)
QUOTED_KEY = _KEY + _BECOMES + _LITERAL.format(least=12)
SHOUTED_KEY = rf"{_SHOUTED}(?:[ \t]?[:=][ \t]?){_BARE}"
SHOUTED_PASSWORD = rf"(?:PASSWORD|PASSWD|PASSPHRASE){_AFTER_NAME}=(?P<secret>{_WORD}{{8,4000}}+)(?![(\[])"
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
    """Tell a secret that was made by chance from a name or a number."""
    mixed = secret != secret.lower() and secret != secret.upper()
    letters = any(character.isalpha() for character in secret)
    enough = _digits(secret) >= (1 if mixed else _FEWEST_DIGITS)
    return letters and enough and len(set(secret)) >= _FEWEST_DISTINCT


def is_key(secret: str) -> bool:
    """Tell a quoted key from a word, a path and what stands for a key."""
    return random_looking(secret) and not _stands_for_one(secret)


def is_bare_key(secret: str) -> bool:
    """Tell a key without quotes from a name in code."""
    if _NAME_IN_CODE.fullmatch(secret) and ("." in secret or secret != secret.upper()):
        return _digits(secret) >= _FEWEST_IN_NAME and is_key(secret)
    return is_key(secret)


def is_shouted_key(secret: str) -> bool:
    """Tell the value of a variable of the environment from a chain of names in code."""
    return is_bare_key(secret) if "." in secret else is_key(secret)


def is_password(secret: str) -> bool:
    """Tell a password from a label, an identifier and what stands for a password."""
    if _stands_for_one(secret):
        return False
    if _digits(secret) or _SIGNS & set(secret):
        return True
    return secret.isascii() and secret.isalpha() and secret.islower() and len(secret) >= _LONG_WORD


def is_bare_password(secret: str) -> bool:
    """Tell a password without quotes from a chain of names in code."""
    chain = "." in secret and _NAME_IN_CODE.fullmatch(secret)
    return not chain and any(character.isalpha() for character in secret) and is_password(secret)


def _stands_for_one(secret: str) -> bool:
    """Whether this begins like no value, or is a word that people write where a secret will be."""
    return secret[0] in _CODE or secret[0] in "$<{%[" or _STANDS_FOR.search(secret) is not None


def _digits(secret: str) -> int:
    return sum(character.isdigit() for character in secret)

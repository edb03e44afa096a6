"""The rules by which secrets are found: a kind, hints, a pattern, and what must hold for what the pattern found."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from muster.text.secrets import named
from muster.text.secrets.forms import ADDRESSES, FORMS, SERVICES, WEAK, expand
from muster.text.secrets.values import (
    has_digits,
    is_any,
    is_aws_key,
    is_credential,
    is_drawn_password,
    is_no_placeholder,
    is_pair,
    is_private,
    is_real_pair,
    is_token,
)

# Told by the name or the place beside them; every other kind is told by the form that its issuer gave it.
GUESSED = frozenset({"authorization", "bearer_token", "api_key_header", "url_password", "assigned_secret"})

_CHARACTER = r"[A-Za-z0-9_-]"
_END = r"(?![A-Za-z0-9_-])"
_OF_KEYS = "key secret passw passp pwd token"
_OF_PASSWORDS = "passw passp pwd _pass -pass"


@dataclass(frozen=True, slots=True)
class SecretRule:
    """How a secret of some kind is found."""

    kind: str
    hints: tuple[str, ...]  # in lower case; a text without any of them is not searched
    pattern: str  # the group `secret` is taken out; compiled when a hint is met, so that nobody pays for it before
    holds: Callable[[str], bool] = is_any


def _token(kind: str, hints: str, pattern: str, holds: Callable[[str], bool] = is_any) -> SecretRule:
    """Make the rule for a token that is known by its first characters."""
    return SecretRule(kind, tuple(hints.split()), f"(?P<secret>{_at_start(pattern)}){_END}", holds)


def _at_start(pattern: str) -> str:
    """Return a pattern that begins after something else than a token, or after an escape in a text that is JSON itself.

    That is asked after the letters it begins with, if any: the library jumps from one place with these to the next.
    """
    rest = re.sub(r"^(?:[A-Za-z0-9_/-](?![*+?{]))*+", "", pattern)
    first = pattern.removesuffix(rest)
    return rf"{first}(?:(?<![A-Za-z0-9_-]{first})|(?<=\\[nrtbf]{first})){rest}"


def _assigned(pattern: str, holds: Callable[[str], bool], hints: str = _OF_KEYS) -> SecretRule:
    """Make a rule for what is told by the name before it."""
    return SecretRule("assigned_secret", tuple(hints.split()), pattern, holds)


def _of_service(names: str, form: str) -> SecretRule:
    """Make the rule for a secret that is told by the name of who issued it."""
    name = rf"(?i:(?<![A-Za-z])(?:{names})){_CALLED_KEY}[A-Za-z0-9_.-]{{0,40}}+"
    value = rf"{_QUOTE}(?P<secret>{form}){_END}"
    return SecretRule("service_key", _plain_names(names), name + named.BECOMES + value, named.is_service_key)


def _plain_names(names: str) -> tuple[str, ...]:
    """Return the letters that each of some names begins with."""
    return tuple(found[0] for name in names.split("|") if (found := re.match("[a-z0-9_]{3,}", name)))


_BREAK = r"(?:\s|\\[nr])"  # between lines of a key, in a file or in a text
_LINES = rf"{_BREAK}*+(?:[A-Za-z0-9+/=]{{40,}}+{_BREAK}*+)++"
_PEM_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_BODY = r"(?:[^-]++|-(?!----))*+"
_CUT_BODY = rf"{_LINES}[A-Za-z0-9+/=]*+"  # of a key without its end
_PUTTY_BEGIN = r"Private-Lines: [0-9]{1,4}+"
_PUTTY_BODY = rf"{_LINES}(?:[A-Za-z0-9+/=]++(?!-))?+"  # without the Private-MAC that follows
KEY_BEGIN = rf"(?:{_PEM_BEGIN}|{_PUTTY_BEGIN})"

_IS = r"\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?"  # between a name and its value, in code, JSON, headers, settings
_QUOTE = r"(?:[bBrRuU@]{0,2}+\\?[\"'`])?+"
_NO_CALL = r"(?!(?:\.[a-z_]{1,40}+)?+\()"  # what is called is a name in code
_NAMES = r"(?:api|access|secret|private|account)[_-]?key|secret|password|passwd|(?:access|auth|api|refresh)[_-]?token"
_AWS_KEY = r"(?i:secret_?access_?key|aws_?secret(?:_?key)?)"
_AWS_SESSION = r"(?i:aws_?session_?token|aws_?security_?token)"
_GAP = r"\s{1,20}+"
_FIELD = r"\S{1,200}+"
_CALLED_KEY = r"(?=[A-Za-z0-9_. -]{0,40}?(?i:key|token|secret|auth|pass|pat\b))"
_HEADER = rf"(?i:authorization){_IS}"
_BASE64 = r"[A-Za-z0-9+/]{8,4000}+={0,2}+"
_IN_ADDRESS = r"://[^\s/:@?#\"'<>\\]{0,256}+:(?P<secret>[^\s/@\"'<>\\]{1,256}+)@"
_LOCAL = r"(?!localhost|127\.|0\.0\.0\.0|\[?::1|[A-Za-z0-9.-]{0,200}?example)"

RULES = (
    SecretRule("private_key", ("-----begin ",), f"(?P<secret>{_PEM_BEGIN}(?:{_PEM_BODY}{_PEM_END}|{_CUT_BODY}))"),
    SecretRule("private_key", ("private-lines: ",), f"(?P<secret>{_PUTTY_BEGIN}{_PUTTY_BODY})"),
    *(
        _token(kind, hints, expand(form), named.random_looking if kind in WEAK else is_any)
        for kind, hints, form in FORMS
    ),
    _token("openai_key", "sk-", rf"sk-{_CHARACTER}{{20,}}+", has_digits),
    *(SecretRule(kind, tuple(hints.split()), expand(form)) for kind, hints, form in ADDRESSES),
    *(_of_service(names, expand(form)) for names, form in SERVICES),
    SecretRule(
        "aws_secret_key",
        ("secret",),
        rf"{_AWS_KEY}{named.BECOMES}{_QUOTE}(?P<secret>[A-Za-z0-9+/]{{40}}+)(?![A-Za-z0-9+/=_-])",
        is_aws_key,
    ),
    SecretRule(
        "aws_session_token",
        ("aws_se", "awsse"),
        rf"{_AWS_SESSION}{named.BECOMES}{_QUOTE}(?P<secret>[A-Za-z0-9+/]{{100,}}+={{0,2}}+)",
        is_aws_key,
    ),
    SecretRule(
        "netrc_password",
        ("login",),
        rf"\blogin{_GAP}{_FIELD}{_GAP}password{_GAP}(?P<secret>\S{{4,200}}+)",
        is_credential,
    ),
    SecretRule("docker_auth", ('"auth"',), rf"\"auth\"\s{{0,4}}:\s{{0,4}}\"(?P<secret>{_BASE64})\"", is_pair),
    SecretRule("npm_auth", ("_auth",), rf"(?<![A-Za-z0-9])_auth\s{{0,4}}=\s{{0,4}}\"?(?P<secret>{_BASE64})", is_pair),
    SecretRule("private_key", ("ls0tls1crudjti",), r"(?P<secret>LS0tLS1CRUdJTi[A-Za-z0-9+/]{60,}+={0,2}+)", is_private),
    SecretRule("basic_login", ("authorization",), rf"{_HEADER}(?i:basic)\s{{1,4}}(?P<secret>{_BASE64})", is_real_pair),
    SecretRule(
        "authorization_token",
        ("authorization",),
        rf"{_HEADER}(?i:bearer|token)\s{{1,4}}(?P<secret>[A-Za-z0-9._~+/=-]{{20,}}+){_NO_CALL}",
        is_token,
    ),
    SecretRule(
        "authorization",
        ("authorization",),
        rf"{_HEADER}(?i:bearer|basic|token|digest)\s{{1,4}}(?P<secret>[A-Za-z0-9._~+/=:-]{{8,}}+)",
        is_credential,
    ),
    SecretRule("bearer_token", ("bearer ",), r"(?i:\bbearer) {1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,}+)", has_digits),
    SecretRule(
        "api_key_header",
        ("x-api-key", "x-goog-api-key"),
        rf"(?i:x-api-key|x-goog-api-key){_IS}(?P<secret>[A-Za-z0-9._~+/=-]{{8,}}+)",
        is_credential,
    ),
    SecretRule("url_login", ("://",), _IN_ADDRESS + _LOCAL, is_drawn_password),
    SecretRule("url_password", ("://",), _IN_ADDRESS, is_no_placeholder),
    _assigned(named.QUOTED_PASSWORD, named.is_password, _OF_PASSWORDS),
    _assigned(named.QUOTED_KEY, named.is_key),
    _assigned(named.UPPERCASE_PASSWORD, named.is_bare_password, _OF_PASSWORDS),
    _assigned(named.UPPERCASE_KEY, named.is_shouted_key),
    _assigned(named.BARE_TOKEN, named.is_bare_key),
    _assigned(named.BARE_PASSWORD, named.is_setting, _OF_PASSWORDS),
    _assigned(named.PASSWORD_ANYWHERE, named.is_setting, _OF_PASSWORDS),
    _assigned(named.ELEMENT, named.is_password, "password> passwd> passphrase> pwd>"),
    _assigned(named.ATTRIBUTE, named.is_password, "value="),
    _assigned(named.OPTION, named.is_argument, "-pass"),
    _assigned(named.OPTION_OF_MYSQL, named.is_argument, "mysql mariadb sshpass"),
    _assigned(named.OPTION_OF_CURL, named.is_argument, "curl "),
    _assigned(rf"(?i:{_NAMES}){_IS}(?P<secret>[A-Za-z0-9+/_=-]{{16,}}+){_NO_CALL}", named.random_looking),
)

_COLUMN = r"(?:[^:\n\\]|\\.){0,256}+"
_PGPASS = rf"(?m)^(?!#){_COLUMN}:(?:[0-9]{{1,5}}+|\*):{_COLUMN}:{_COLUMN}:(?P<secret>\S{{1,512}}+)"
_RULES_OF_FILES = {
    name: (SecretRule("pgpass_password", (), _PGPASS, is_no_placeholder),) for name in (".pgpass", "pgpass.conf")
}
# What is written without quotes in these is a value; in code it may be a name.
_SETTINGS = frozenset({".yaml", ".yml", ".ini", ".cfg", ".conf", ".properties", ".env", ".cnf"})
_RULES_OF_SETTINGS = (_assigned(named.SETTING, named.is_argument, _OF_PASSWORDS),)


def rules_of_file(name: str) -> tuple[SecretRule, ...]:
    """Return what is known of files with this name besides the rules for every text."""
    path = PurePosixPath(name)
    is_settings = path.suffix.lower() in _SETTINGS or name == ".env" or name.startswith(".env.")
    return _RULES_OF_FILES.get(name, _RULES_OF_SETTINGS if is_settings else ())

"""What a text that stands where a secret would stand is: a credential, or a placeholder, a pair of names, a name."""

import re
from base64 import b64decode

from muster.text.secrets.named import is_key, is_password, random_looking

_MIN_DIGITS = 3
_MIN_CHARACTERS = 8
_MIN_IN_TOKEN = 20
_MIN_IN_ADDRESS = 12
_PLACEHOLDERS = frozenset({"password", "passwd", "pass", "pwd", "pw", "secret", "token", "user", "xxx", "changeme"})


def is_any(secret: str) -> bool:
    """Return True: the form of a secret says enough."""
    return True


def has_digits(secret: str) -> bool:
    """Return whether a text is a key, and not a name with hyphens in it."""
    return sum(character.isdigit() for character in secret) >= _MIN_DIGITS


def is_no_placeholder(secret: str) -> bool:
    """Return whether a text is a credential, and not a placeholder or a variable."""
    plain = secret.strip("*.xX")
    uppercase = plain.replace("_", "").replace("-", "").isalpha() and plain.isupper()
    return bool(plain) and plain.lower() not in _PLACEHOLDERS and not uppercase and secret[0] not in "$<{%["


def is_credential(secret: str) -> bool:
    """Return whether a text is long enough for a credential, and no placeholder or attribute such as self.api_key."""
    attribute = re.fullmatch(r"[a-z_]++(?:\.[a-z_]++)++", secret)
    return len(secret) >= _MIN_CHARACTERS and is_no_placeholder(secret) and not attribute


def is_token(secret: str) -> bool:
    """Return whether what a header holds is a token: long, and random."""
    return len(secret) >= _MIN_IN_TOKEN and is_key(secret)


def is_aws_key(secret: str) -> bool:
    """Return whether a text is a secret key of AWS, and not the one of its documentation."""
    return random_looking(secret) and "EXAMPLE" not in secret


def is_drawn_password(secret: str) -> bool:
    """Return whether the password in an address was drawn at random: nobody types such a one as an example."""
    return len(secret) >= _MIN_IN_ADDRESS and is_key(secret)


def is_pair(secret: str) -> bool:
    """Return whether a text is a name and a password in base64, as in Docker's configuration."""
    return re.fullmatch(r"[^:\s]{1,200}+:\S{3,}+", _decoded(secret)) is not None


def is_real_pair(secret: str) -> bool:
    """Return whether a text is a name and a password in base64, and the password no word."""
    return is_pair(secret) and is_password(_decoded(secret).partition(":")[2])


def is_private(secret: str) -> bool:
    """Return whether a text is the beginning of a private key in base64."""
    return "PRIVATE KEY" in _decoded(secret[:80])


def _decoded(secret: str) -> str:
    try:
        return b64decode(secret[: len(secret) // 4 * 4]).decode("latin-1")
    except ValueError:
        return ""

"""Text for XML: what the format forbids is shown as an escape that a person can read."""

import re

# Everything outside the characters of XML 1.0: most control characters, halves of surrogate pairs, U+FFFE and U+FFFF.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_TEXT = str.maketrans(_ENTITIES)
_ATTRIBUTE = str.maketrans(_ENTITIES | {'"': "&quot;", "\n": "&#10;", "\t": "&#9;"})


def text(value: str) -> str:
    """Spell a text between tags."""
    return _allowed(value).translate(_TEXT)


def attribute(value: object) -> str:
    """Spell the value of an attribute, with its quotes."""
    return f'"{_allowed(str(value)).translate(_ATTRIBUTE)}"'


def attributes(values: dict[str, object]) -> str:
    """Spell attributes; those without a value are left out."""
    return "".join(f" {name}={attribute(value)}" for name, value in values.items() if value is not None)


def _allowed(value: str) -> str:
    return _FORBIDDEN.sub(lambda found: ascii(found[0])[1:-1], value)

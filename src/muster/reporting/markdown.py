"""Text of strangers for Markdown: it cannot break a table, draw a link, run HTML or call a person by name."""

import re
from html import escape

from muster.text.secrets.redaction import redact
from muster.text.words import one_line, shorten

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_PUNCTUATION = re.compile(r"[!-+./:-@\[-`{-~]")
_TICKS = re.compile("`+")


def inline(text: str, most: int = 120) -> str:
    """Write a text as code inside a line, between backticks; in code nothing becomes a mention or a link."""
    flat = _flat(text, most)
    ticks = "`" * (_longest_ticks(flat) + 1)
    room = " " if not flat or flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{room}{flat}{room if flat else ''}{ticks}"


def in_cell(text: str, most: int = 120) -> str:
    """Write a text as code inside a cell of a table; one with `|`, which ends a cell even in code, in entities."""
    flat = _flat(text, most)
    if "|" not in flat:
        return inline(text, most)
    return f"<code>{_PUNCTUATION.sub(lambda found: f'&#{ord(found[0])};', flat)}</code>"


def in_html(text: str, most: int = 120) -> str:
    """Write a text as code inside a line of HTML, where Markdown is not read."""
    return f"<code>{escape(_flat(text, most), quote=False)}</code>"


def _flat(text: str, most: int) -> str:
    # A secret cannot be told by its look any more once its punctuation is spelled as entities, or its end is cut off.
    return one_line(_CONTROL.sub(" ", redact(text).text), most)


def block(text: str, most: int = 2000) -> str:
    """Write a text as a block of code, between fences that are longer than any in it."""
    plain = _CONTROL.sub("", shorten(redact(text).text, most).replace("\r\n", "\n"))
    fence = "`" * max(3, _longest_ticks(plain) + 1)
    return f"{fence}text\n{plain.rstrip()}\n{fence}"


def _longest_ticks(text: str) -> int:
    return max((len(ticks) for ticks in _TICKS.findall(text)), default=0)

"""Text of strangers made safe for a terminal: no escape sequences, no control characters but newline and tab."""

import re

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor, screen
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, clipboard
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"  # all the short ones
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LONGEST = 4096


def clean(text: str) -> str:
    """Take out everything that a terminal would obey."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


class Cleaner:
    """Cleans text that comes in pieces; a sequence may be cut anywhere."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Give what is safe by now; the beginning of a sequence is held back until its end comes."""
        text = _SEQUENCE.sub("", self._held + piece)
        start = text.find("\x1b")
        if start < 0 or len(text) - start > _LONGEST:
            self._held = ""
            return clean(text)
        self._held = text[start:]
        return clean(text[:start])

    def finish(self) -> str:
        """Give what is left."""
        held, self._held = self._held, ""
        return clean(held)

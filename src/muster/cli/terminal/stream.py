"""An answer written to the terminal while it comes."""

import sys
from collections.abc import Sequence

from muster.cli.terminal.output import TerminalCleaner, clean, warn


class AnswerWriter:
    """Writes an answer to the terminal while it comes, without anything that a terminal would obey."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._secrets = secrets
        self._redactor, self._cleaner = StreamRedactor(secrets), TerminalCleaner()
        self._parts: list[str] = []
        self._shown = ""  # the last piece that was written

    def __call__(self, key: str, delta: str) -> None:
        """Write some more."""
        self._show(self._redactor.feed(delta))

    def start_over(self) -> None:
        """Print that what was written so far does not count."""
        if any(self._parts):
            self.break_line()
            warn("(the answer was interrupted; sending the call again)")
        self._parts, self._redactor, self._cleaner = [], StreamRedactor(self._secrets), TerminalCleaner()

    def break_line(self) -> None:
        """End the line that is being written."""
        self._show(self._redactor.finish())
        self._write(self._cleaner.finish())
        if self._shown and not self._shown.endswith("\n"):
            self._write("\n")

    def finish(self, text: str) -> None:
        """Write the whole text if it is not what was written."""
        if "".join(self._parts) != text:
            self._write(clean(text))
            self.break_line()

    def _show(self, text: str) -> None:
        self._parts.append(text)
        self._write(self._cleaner.feed(text))

    def _write(self, text: str) -> None:
        if text:
            self._shown = text
            sys.stdout.write(text)
            sys.stdout.flush()


HIDDEN = "[redacted]"


class StreamRedactor:
    """Lets a text through piece by piece; what could be the beginning of a secret waits for the next piece."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._secrets = sorted((secret for secret in secrets if len(secret) >= 8), key=len, reverse=True)
        self._held = ""

    def feed(self, text: str) -> str:
        """Take some text, and give what can be shown."""
        text = self._held + text
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        held = max((_overlap(text, secret) for secret in self._secrets), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def finish(self) -> str:
        """Return what was held back; nothing comes after it."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, secret: str) -> int:
    """Return how much of the end of a text is the beginning of a secret."""
    longest = min(len(text), len(secret) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(secret[:size])), 0)

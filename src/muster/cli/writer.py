"""An answer written to the terminal while it comes."""

import sys
from collections.abc import Sequence

from muster.cli.clean import Cleaner, clean
from muster.cli.curtain import Curtain
from muster.cli.speech import warn


class Writer:
    """Writes an answer to the terminal while it comes, without anything that a terminal would obey."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        self._secrets = secrets
        self._curtain, self._cleaner = Curtain(secrets), Cleaner()
        self._parts: list[str] = []
        self._shown = ""  # the last piece that was written

    def __call__(self, key: str, delta: str) -> None:
        """Write some more."""
        self._show(self._curtain.feed(delta))

    def start_over(self) -> None:
        """Tell that what was written so far does not count."""
        if any(self._parts):
            self.break_line()
            warn("(the answer broke off; it is asked for again)")
        self._parts, self._curtain, self._cleaner = [], Curtain(self._secrets), Cleaner()

    def break_line(self) -> None:
        """End the line that is being written."""
        self._show(self._curtain.finish())
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

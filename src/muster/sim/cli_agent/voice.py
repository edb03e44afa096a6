"""What the scripted CLI agent writes: one JSON object a line, each handed over at once."""

import json
import os
import re
from typing import Any

_WORD = re.compile(r"\s*\S+\s*|\s+")
_PIECES = 500  # a long text is handed over in so many pieces at most


class Voice:
    """Writes to an output that may be closed early; what is written after that is lost."""

    def __init__(self, output: int = 1) -> None:
        self._output: int | None = output

    def line(self, event: dict[str, Any]) -> None:
        """Write an event."""
        self.write(json.dumps(event, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        while data and self._output is not None:
            try:
                data = data[os.write(self._output, data) :]
            except OSError:  # nobody listens any more
                self._output = None

    def close(self) -> None:
        """Close the output; whoever reads it sees its end."""
        if self._output is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._output)
            os.close(nowhere)
            self._output = None


def pieces(text: str) -> list[str]:
    """Cut a text into words, or into groups of words when there are very many; joined they are the text."""
    words = _WORD.findall(text)
    size = -(-len(words) // _PIECES) or 1
    return ["".join(words[at : at + size]) for at in range(0, len(words), size)]

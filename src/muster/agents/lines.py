"""Lines of JSON among others, put together from chunks."""

import json

from muster.domain.canonical import Json
from muster.shapes.json_search import parseable


class Lines:
    """Puts lines together from chunks that are cut anywhere, even inside a character."""

    def __init__(self) -> None:
        self._open: list[bytes] = []
        self.waiting = 0  # bytes of a line that has not ended

    def feed(self, data: bytes) -> list[bytes]:
        """Take a chunk and give the lines that it ends."""
        *ended, rest = data.split(b"\n")
        if ended:
            ended[0] = b"".join((*self._open, ended[0]))
            self._open, self.waiting = [], 0
        if rest:
            self._open.append(rest)
            self.waiting += len(rest)
        return ended

    def rest(self) -> bytes:
        """Give the line that was not ended."""
        return b"".join(self._open)


def object_of(line: bytes) -> dict[str, Json] | None:
    """Read a line as a JSON object; None for any other line."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(parseable(line))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None

"""What the scripted CLI agent writes, remembers between two calls, and tells the audit."""

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # an agent starts in a moment
    from muster.domain.canonical import Json

_WORD = re.compile(r"\s*\S+\s*|\s+")
_PIECES = 500  # a long text is handed over in so many pieces at most


class LineWriter:
    """Writes to an output that may be closed early; what is written after that is lost."""

    def __init__(self, output: int = 1) -> None:
        self._output: int | None = output

    def line(self, event: "Mapping[str, Json]") -> None:
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


class UnknownSession(Exception):
    """There is no session of this name."""


class SessionMemory:
    """A folder with one small file for each session; without a folder nothing is remembered."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder

    def turns(self, session: str) -> int:
        """Return how many turns a session had."""
        if self._folder is None:
            return 0
        try:
            with open(self._place(self._folder, session), encoding="utf-8") as file:  # noqa: PTH123
                return int(json.load(file)["turns"])
        except FileNotFoundError as error:
            raise UnknownSession(f"No conversation found with session ID: {session}") from error

    def keep(self, session: str, turns: int) -> None:
        """Remember how many turns a session has had."""
        if self._folder is None:
            return
        os.makedirs(self._folder, exist_ok=True)  # noqa: PTH103
        place = self._place(self._folder, session)
        with open(f"{place}.{os.getpid()}", "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump({"session": session, "turns": turns}, file)
        os.replace(file.name, place)  # noqa: PTH105

    @staticmethod
    def _place(folder: str, session: str) -> str:
        # The name of a session is a stranger's: it must not lead out of the folder.
        return f"{folder}/{hashlib.sha256(session.encode('utf-8', 'backslashreplace')).hexdigest()}.json"


_SHOWN = 80


class CallLog:
    """A file that many processes append to, each line in one write; without a file nothing is written."""

    def __init__(self, path: str | None, prompt: str, session: str) -> None:
        self._path = path
        self._call = {
            "pid": os.getpid(),
            "prompt_digest": hashlib.sha256(prompt.encode("utf-8", "backslashreplace")).hexdigest(),
            "prompt": prompt[:_SHOWN],
            "session": session,
        }

    def note(self, event: str) -> None:
        """Append a line."""
        if self._path is None:
            return
        line = json.dumps({"event": event, **self._call, "at": time.time()}) + "\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

"""The audit of the scripted CLI agent: one line when it starts, one when it has finished, of all calls in one file."""

import hashlib
import json
import os
import time

_SHOWN = 80


class Audit:
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

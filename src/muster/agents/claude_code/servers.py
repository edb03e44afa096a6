"""The MCP servers of an agent: what is declared, and the file that Claude Code reads it from.

A command line can be read by everybody on the machine, and servers are given tokens: so it holds the path of a file
that only its owner can read. Servers are neither started nor asked here.
"""

import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster.domain.canonical import Json

SHORTEST_SECRET = 8  # characters; shorter values are switches and numbers, which stand in every text

_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_SECRET = ("env", "headers")  # where a server is told what nobody else should know


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """MCP servers by name, and where they are written down, in a folder that holds nothing else."""

    file: Path
    declared: Mapping[str, Mapping[str, Json]] = field(repr=False)  # may hold secrets

    @property
    def content(self) -> bytes:
        """What the file says."""
        return json.dumps({"mcpServers": {name: dict(server) for name, server in self.declared.items()}}).encode()

    @property
    def secrets(self) -> frozenset[str]:
        """The values that must not show: of variables and headers, and of headers without the scheme before them."""
        values = (value for server in self.declared.values() for value in _values(server))
        return frozenset(value for value in values if len(value) >= SHORTEST_SECRET)

    def write_down(self) -> None:
        """Make the file say what is declared; without servers there is none. Raises OSError."""
        if not self.declared:
            self.file.unlink(missing_ok=True)
            return
        folder = self.file.parent
        folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        if stat.S_IMODE(folder.stat().st_mode) != _PRIVATE_FOLDER:
            folder.chmod(_PRIVATE_FOLDER)
        if not _says(self.file, self.content):
            _replace(self.file, self.content)


def _values(server: Mapping[str, Json]) -> Iterator[str]:
    for place in _SECRET:
        given = server.get(place)
        for value in given.values() if isinstance(given, dict) else ():
            if isinstance(value, str):
                yield value
                if place == "headers":
                    yield value.rpartition(" ")[2]


def _says(file: Path, content: bytes) -> bool:
    """Whether a file is private, no link, and says this already."""
    try:
        found = file.lstat()
        private = stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == _PRIVATE_FILE
        return private and found.st_size == len(content) and file.read_bytes() == content
    except OSError:
        return False


def _replace(file: Path, content: bytes) -> None:
    """Write a file anew, so that whoever reads it sees all of it or what was there before."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # only its owner can read it
    unfinished = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)

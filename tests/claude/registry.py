"""A registry of processes in a file, which outlives whoever wrote it."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from muster.domain.run import Driver, OwnedProcess


class FileRegistry:
    """Appends what it is told; reading gives what was noted and not forgotten."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def note(self, process: OwnedProcess) -> None:
        self._append({"note": asdict(process)})

    async def forget(self, token: str) -> None:
        self._append({"forget": token})

    async def all(self, host: str) -> Sequence[OwnedProcess]:
        found: dict[str, OwnedProcess] = {}
        for line in self._path.read_text().splitlines() if self._path.exists() else ():
            entry = json.loads(line)
            if "forget" in entry:
                found.pop(entry["forget"], None)
            else:
                noted = entry["note"] | {"driver": Driver(**entry["note"]["driver"])}
                found[noted["token"]] = OwnedProcess(**noted)
        return [process for process in found.values() if process.driver.host == host]

    def _append(self, entry: object) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

"""The scripted CLI agent as a process, for its tests."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

COMMAND = (sys.executable, "-m", "muster.sim.cli_agent")
BARE = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


class Ran(NamedTuple):
    """What it wrote, and how it ended."""

    lines: list[dict[str, Any]]
    log: str
    status: int
    output: bytes

    @property
    def result(self) -> dict[str, Any]:
        """Its last line."""
        assert self.lines[-1]["type"] == "result"
        return self.lines[-1]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Give its lines of a kind."""
        return [line for line in self.lines if line["type"] == kind]


def run(folder: Path, *arguments: str, prompt: str | None = None, **environment: str) -> Ran:
    """Run it to its end, with the prompt on standard input."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env={**BARE, **environment},
        input=None if prompt is None else prompt.encode(),
        stdin=subprocess.DEVNULL if prompt is None else None,
        capture_output=True,
        timeout=200,
    )
    lines = [
        json.loads(line) for line in done.stdout.splitlines() if line.startswith(b'{"type": "') and line[-1:] == b"}"
    ]
    return Ran(lines, done.stderr.decode(errors="replace"), done.returncode, done.stdout)


def play(folder: Path, *steps: dict[str, Any], prompt: str = "hello", arguments: tuple[str, ...] = ()) -> Ran:
    """Run it with steps of its own."""
    script = folder / "script.json"
    script.write_text(json.dumps([{"steps": list(steps)}]))
    return run(folder, "--script", str(script), *arguments, prompt=prompt)

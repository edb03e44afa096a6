"""The command in this process, in a real repository with agents of its own: a checker of words, and a script."""

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from muster.cli.main import run
from tests.git.repository import Repository

from .shell import Result

# A checker: every line with BAD in it is a finding, and one with INVENT is a finding at a line that does not exist.
CHECK = """
import json, pathlib, sys
findings = []
for name in sys.argv[1:]:
    for number, line in enumerate(pathlib.Path(name).read_text().splitlines(), 1):
        for word, at in (("BAD", number), ("INVENT", 999)):
            if word in line:
                findings.append({
                    "file": name, "line": at, "severity": "high", "finding": f"there is {word} here",
                    "fix": "take it out", "rule": word,
                })
print(json.dumps({"findings": findings}))
"""
GOOD = {"findings": [], "score": 9.5, "parts": {"design": 9}}
PRICED = '[agents.reader]\nkind = "scripted"\nscript = "agents/reader.json"\nprice = {input = 3, output = 15}\n'

Agents = Sequence[Mapping[str, Any]]


def checker(name: str = "checker", wave: int = 1, **more: Any) -> dict[str, Any]:
    """Declare the checker."""
    command = [sys.executable, "-I", "-S", "agents/check.py", "{files}"]
    return {"name": name, "wave": wave, "kind": "command", "command": command, "parser": "json", **more}


def reviewer(name: str = "reviewer", wave: int = 2, **more: Any) -> dict[str, Any]:
    """Declare a reviewer that is a script."""
    asked = {"model": "reader", "shape": "review", "prompt": "Review it."}
    return {"name": name, "wave": wave, **asked, "thresholds": ["score >= 9"], **more}


@dataclass
class VerifyHome:
    """A repository in the working folder, and the command."""

    repository: Repository
    _capsys: pytest.CaptureFixture[str]

    @property
    def folder(self) -> Path:
        return self.repository.folder

    def declare(self, *agents: Mapping[str, Any], **top: Any) -> None:
        """Write verify.yaml, which is JSON and so YAML too."""
        self.repository.write("verify.yaml", json.dumps({"agents": agents, **top}))

    def says(self, answer: Mapping[str, Any] | str) -> None:
        """Have the script answer so."""
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self.repository.write("agents/reader.json", json.dumps({"otherwise": text}))

    def muster(self, *arguments: str) -> Result:
        """Run a command and give what it said."""
        with _signals_left_alone():
            code = run(arguments)
        seen = self._capsys.readouterr()
        return Result(code=code, out=seen.out, err=seen.err)

    def verify(self, *arguments: str) -> Result:
        return self.muster("verify", *arguments)

    def runs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.muster("runs", "list", "--json").data()
        return found

    def staged_left(self) -> list[Path]:
        """Give the staged contents that are still there."""
        folder = self.folder / ".muster/verify/staged"
        return list(folder.iterdir()) if folder.exists() else []

    def wave_reports(self) -> list[Path]:
        return sorted((self.folder / ".muster/verify/reports").glob("*.md"))

    def log(self) -> list[dict[str, Any]]:
        files = sorted((self.folder / ".muster/verify/log").glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


@contextmanager
def _signals_left_alone() -> Iterator[None]:
    """A command takes over the signals of its process; here the process is the tests'."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> VerifyHome:
    """A repository with one commit, a checker in wave 1, and a reviewer in wave 2."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    repository = Repository(tmp_path / "shop")
    monkeypatch.chdir(repository.folder)
    made = VerifyHome(repository, capsys)
    repository.write(".gitignore", ".muster/\n")
    repository.write("agents/check.py", CHECK)
    repository.write("muster.toml", PRICED)
    made.declare(checker(), reviewer())
    made.says(GOOD)
    repository.write("src/fine.py", "x = 1\n")
    repository.commit()
    return made

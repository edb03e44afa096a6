"""The folder in which the witness is made and opened: commands as processes, and the rehearsal server beside them.

Nothing here imports the program; it is used by its command line only, so that the witness outlives its insides.
"""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import forkserver

WITNESS = Path(__file__).parent.parent / "data/witness"
KEY = "witness-test-key"
PATIENCE = 200.0
STATE = "sim.json"


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What it answered."""
        found = json.loads(self.out)
        assert found["ok"], self
        return found["data"]


@dataclass
class Rehearsal:
    """A rehearsal server that runs."""

    anthropic: str
    openai: str
    audit_url: str

    @property
    def origin(self) -> str:
        """Where it listens."""
        return self.anthropic.removesuffix("/anthropic")

    def audit(self) -> dict[str, Any]:
        """Read what was paid."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.audit_url, timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


@dataclass
class Home:
    """A project folder with its store, and what commands there are told about the world."""

    folder: Path
    rehearsal: Rehearsal | None = None

    @property
    def database(self) -> Path:
        """The store."""
        return self.folder / ".muster/muster.db"

    @property
    def environment(self) -> dict[str, str]:
        """What a command gets of the environment: nothing of this machine but PATH."""
        found = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(self.folder.parent), "TZ": "UTC"}
        found |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        found |= {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
        nobody = Rehearsal("http://127.0.0.1:9/anthropic", "http://127.0.0.1:9/openai/v1", "")
        there = self.rehearsal or nobody
        return found | {"ANTHROPIC_BASE_URL": there.anthropic, "OPENAI_BASE_URL": there.openai}

    def muster(self, *words: str, stdin: str = "", **variables: str) -> Done:
        """Run a command to its end."""
        environment = self.environment | variables
        done = forkserver.run(
            "muster", words, folder=self.folder, environment=environment, stdin=stdin.encode(), timeout=PATIENCE
        )
        found = Done(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())
        assert "Traceback" not in found.err, found
        return found

    @contextmanager
    def rehearse(self, **options: str) -> Iterator[Rehearsal]:
        """Run the rehearsal server on a free port, from the kept state on, while the block lasts."""
        given = {"state": str(self.folder.parent / STATE), "script": str(WITNESS / "sim-answers.yaml")}
        given |= {"faults": str(WITNESS / "sim-faults.yaml")} | options
        words = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]
        command = [sys.executable, "-m", "muster", "sim", *words]
        environment = self.environment | {"PYTHONPATH": str(forkserver.ROOT / "src")}  # the program of this tree
        with subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                found = json.loads(process.stdout.readline())
                self.rehearsal = Rehearsal(found["anthropic"], found["openai"], found["audit"])
                yield self.rehearsal
            finally:
                self.rehearsal = None
                process.send_signal(signal.SIGTERM)
                process.wait(PATIENCE)

    def git(self, *words: str) -> None:
        """Run git with a fixed author and a fixed time, so that commits have the same names everywhere."""
        when = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
        identity = ("-c", "user.name=Witness", "-c", "user.email=witness@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(
            ["git", *identity, *words], cwd=self.folder, env=self.environment | when, check=True, timeout=PATIENCE
        )

    def make_repository(self) -> None:
        """Make the project the git repository that it was: everything is committed, and one file is changed."""
        self.git("init", "--quiet", "--initial-branch=main")
        (self.folder / ".gitignore").write_text(".muster/\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "The shop")
        with (self.folder / "src/shop.py").open("a") as file:
            file.write("\n\ndef empty(orders):\n    return not orders  # BAD\n")

"""The real command as a subprocess, in a folder and an environment of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import forkserver

COMMAND = (sys.executable, "-m", "muster")
PATIENCE = 200.0

WORKLOADS = """
import muster

@muster.workload("triage")
async def triage(ctx, spec):
    async def label(i, ticket):
        request = muster.Request(messages=(muster.Message(role=muster.Role.USER, text=ticket),), max_tokens=2048)
        return (await ctx.call(spec["agent"], request, key=f"ticket/{i}")).text
    return {"labels": [x async for x in ctx.map(label, spec["tickets"])]}

@muster.workload("blocks")
async def blocks(ctx, spec):
    import time
    print("blocking", flush=True)
    time.sleep(600)

@muster.workload("breaks")
async def breaks(ctx, spec):
    await ctx.call("sim/echo", "before", key="before")
    raise ValueError("this workload breaks")
"""


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    def envelope(self) -> dict[str, Any]:
        """Read the one JSON envelope that stands on standard output."""
        lines = self.out.splitlines()
        assert len(lines) == 1, self
        found: dict[str, Any] = json.loads(lines[0])
        return found

    def data(self) -> Any:
        found = self.envelope()
        assert found["ok"] is True, self
        return found["data"]

    def error(self) -> dict[str, Any]:
        found = self.envelope()
        assert found["ok"] is False, self
        error: dict[str, Any] = found["error"]
        assert set(error) - {"fields"} == {"code", "message", "suggestions"}
        return error


@dataclass
class Shell:
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(self.folder), **self.variables}

    def use(self, rehearsal: Any, key: str = "rehearsal") -> None:
        """Ask the rehearsal server instead of the providers."""
        self.variables |= {"ANTHROPIC_BASE_URL": rehearsal.anthropic, "ANTHROPIC_API_KEY": key}
        self.variables |= {"OPENAI_BASE_URL": rehearsal.openai, "OPENAI_API_KEY": key}

    def muster(self, *arguments: str, stdin: str | bytes = b"") -> Result:
        """Run a command to its end."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = self._run("muster", *arguments, stdin=given)
        result = Result(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())
        assert "Traceback" not in result.err, result
        return result

    def _run(
        self, module: str, *arguments: str, stdin: bytes = b"", **variables: str
    ) -> "subprocess.CompletedProcess[bytes]":
        environment = {**self.environment, **variables}
        return forkserver.run(
            module, arguments, folder=self.folder, environment=environment, stdin=stdin, timeout=PATIENCE
        )

    def run_into(self, stdout: Any, *arguments: str) -> Result:
        """Run a command with its output somewhere of the test's own."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
        )
        return Result(code=done.returncode, out="", err=done.stderr.decode())

    @contextmanager
    def start(self, *arguments: str) -> "Iterator[forkserver.Forked]":
        """Start a command and leave it running; whatever happens, it ends with the block."""
        with forkserver.Forked("muster", arguments, folder=self.folder, environment=self.environment) as process:
            try:
                yield process
            finally:
                process.kill()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def declare_workloads(self) -> None:
        """Define the user's own workloads and name them in muster.toml."""
        self.write("my_workloads.py", WORKLOADS)
        self.write("muster.toml", '[workloads]\nimport = ["my_workloads"]\n')

    def submit(self, workload: str, spec: Mapping[str, Any] | None, **options: Any) -> str:
        """Store a run for the workers, as a Python program of the user would."""
        done = self._run("tests.cli.submit", json.dumps([workload, spec, options]))
        assert done.returncode == 0, done
        return done.stdout.decode().strip()

    def ask_in_batch(self, agent: str, *options: str, detach: bool = True) -> dict[str, Any]:
        """Ask one question in a batch, and leave it to the provider unless told otherwise."""
        given = ("--dispatch", "batch", "--poll-interval", "0.05", *(("--detach",) if detach else ()), *options)
        found: dict[str, Any] = self.muster("ask", agent, "hello", *given, "--json").data()
        return found

    def crash(self, point: str, *arguments: str, nth: int = 1) -> None:
        """Run a command that dies at a point when it comes there for the nth time, as by kill -9."""
        done = self._run("muster", *arguments, MUSTER_CRASH_AT=f"{point}:{nth}")
        assert done.returncode == -9, done

    def run(self, reference: str) -> dict[str, Any]:
        """Read a stored run."""
        found: dict[str, Any] = self.muster("runs", "show", reference, "--json").data()
        return found


def line_with(stream: Any, *words: str) -> str:
    """Read lines until one holds all the words."""
    seen = []
    for line in stream:
        seen.append(line)
        if all(one in line for one in words):
            return str(line)
    raise AssertionError(f"no line with {words!r} in {seen}")

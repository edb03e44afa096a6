"""`muster serve` as a process of its own, in a folder of its own; it can be killed and started again on its port."""

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import muster
from muster.settings import load_settings
from tests.forkserver import Forked

PATIENCE = 60.0

WORKLOADS = """
import asyncio

import muster


@muster.workload("ticks")
async def ticks(ctx, spec):
    for number in range(spec["count"]):
        await ctx.emit(f"tick/{number}", "tick", {"n": number})
        await asyncio.sleep(spec.get("pause", 0))
    return {"ticks": spec["count"]}


@muster.workload("flood")
async def flood(ctx, spec):
    await ctx.receive("begin", "begin")
    filling = "x" * spec["bytes"]
    for page in range(spec["pages"]):
        names = [f"page/{page}/{number}" for number in range(100)]
        await asyncio.gather(*(ctx.emit(name, "flood", {"filling": filling}) for name in names))
    return {}


@muster.workload("waits")
async def waits(ctx, spec):
    return await ctx.receive("go", "go")
"""


class ServedStore:
    """A store with a server; runs are submitted past the server, by a process that opens the same store."""

    def __init__(
        self, folder: Path, *, toml: str = "", variables: Mapping[str, str] | None = None, files: int | None = None
    ) -> None:
        self.folder, self.variables = folder, dict(variables or {})
        self._files = files  # that the server may open at first
        self.url, self.port = "", 0
        self._process: Forked | None = None
        (folder / "served_workloads.py").write_text(WORKLOADS, encoding="utf-8")
        (folder / "muster.toml").write_text(f'[workloads]\nimport = ["served_workloads"]\n{toml}', encoding="utf-8")

    def start(self) -> None:
        """Start the server, on the port that it had before."""
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(self.folder), **self.variables}
        words = ["serve", "--port", str(self.port), "--json"]
        self._process = Forked(
            "muster", words, folder=self.folder, environment=environment, files=self._files, shows_errors=True
        )
        line = self._process.stdout.readline()
        assert line, f"the server did not start: {self._process.wait(PATIENCE)}"
        self.url = json.loads(line)["url"]
        self.port = int(self.url.rpartition(":")[2])

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the server as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Stop the server as a person would; returns its exit code."""
        return self._end(signal.SIGINT)

    def _end(self, number: int) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        with process:
            process.send_signal(number)
            return process.wait(PATIENCE)

    async def submit(self, workload: str, spec: Any) -> str:
        """Store a run for the server."""
        async with self.opened() as m:
            return str((await m.runs.submit(workload, spec)).id)

    async def send(self, run: str, channel: str) -> None:
        """Send a signal to a run."""
        async with self.opened() as m:
            await m.runs.send(run, channel, {})

    def opened(self) -> Any:
        settings = load_settings(self.folder / ".muster", folder=self.folder, environment={})
        return muster.open(settings=settings)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.kill)

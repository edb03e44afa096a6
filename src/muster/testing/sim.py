"""A rehearsal server in a process of its own, which never outlives the test that started it."""

import asyncio
import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

from muster.sim.audit import Audit, read_audit

STOP_SECONDS = 10.0
AUDIT_SECONDS = 60.0  # the audit first does all the work of batches that is due


class ServerProcess(Protocol):
    """What is used of a process."""

    @property
    def pid(self) -> int:
        """The id of the process."""

    @property
    def stdout(self) -> IO[Any] | None:
        """What it writes."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it at once."""

    def communicate(self, *, timeout: float | None = None) -> tuple[Any, Any]:
        """Wait until it has ended."""


class RehearsalProcess:
    """Starts `python -m muster.sim`; use it with `with` or `async with`.

    The process ends with the block, and also when this process dies: it watches its standard input.
    """

    def __init__(
        self,
        *,
        latency_ms: float = 0.0,
        script: Mapping[str, Any] | None = None,
        faults: Mapping[str, Any] | None = None,
        capacity: int | None = None,
        require_key: str | None = None,
        port: int = 0,
        batch_ms: float = 0.0,
        batch_requests: int | None = None,
        batch_bytes: int | None = None,
        live_counts: bool | None = None,
        state: Path | None = None,
        thinking: bool | None = None,
        tier: str | None = None,
    ) -> None:
        self._settings = {
            "--latency-ms": latency_ms,
            "--port": port,
            "--capacity": capacity,
            "--require-key": require_key,
            "--batch-ms": batch_ms,
            "--batch-requests": batch_requests,
            "--batch-bytes": batch_bytes,
            "--state": state,
            "--thinking": {True: "on", False: "off", None: None}[thinking],
            "--tier": tier,
        }
        self._counts = {True: ["--live-counts"], False: ["--no-live-counts"], None: []}[live_counts]
        self._files = {"script": script, "faults": faults}
        self._process: ServerProcess | None = None
        self.anthropic = ""
        self.openai = ""
        self.audit_url = ""

    @property
    def pid(self) -> int:
        """The id of the running process."""
        if self._process is None:
            raise RuntimeError("the rehearsal server is not running")
        return self._process.pid

    def audit(self) -> Audit:
        """Read what was paid."""
        return read_audit(self._ask("GET", "audit"))

    def reset(self) -> None:
        """Start over: audit, cache, and how far the faults have got."""
        self._ask("POST", "reset")

    def faults(self, mapping: Mapping[str, Any]) -> None:
        """Play other faults from now on."""
        self._ask("PUT", "faults", json.dumps(mapping).encode())

    def start(self) -> None:
        """Start the process and wait until it listens."""
        with tempfile.TemporaryDirectory() as folder:
            self._process = self._begin(self._arguments(Path(folder)))
            line = self._process.stdout.readline() if self._process.stdout else b""
        if not line:
            self.stop()
            raise RuntimeError("the rehearsal server did not start; it says why on standard error")
        found = json.loads(line)
        self.anthropic, self.openai, self.audit_url = found["anthropic"], found["openai"], found["audit"]

    def stop(self) -> None:
        """End the process and wait for it; may be called twice."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _begin(self, arguments: Sequence[str]) -> "ServerProcess":
        """Start the program."""
        return subprocess.Popen(  # noqa: S603 - our own module, no shell
            [sys.executable, "-m", "muster.sim", "--until-eof", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def _arguments(self, folder: Path) -> list[str]:
        arguments = [f"{name}={value}" for name, value in self._settings.items() if value is not None]
        arguments += self._counts
        for name, mapping in self._files.items():
            if mapping is not None:
                (folder / f"{name}.json").write_text(json.dumps(mapping), encoding="utf-8")
                arguments.append(f"--{name}={folder / name}.json")
        return arguments

    def _ask(self, method: str, name: str, body: bytes | None = None) -> Any:
        # Only http to the loopback address, and no proxy from the environment.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        url = self.audit_url.removesuffix("audit") + name
        request = urllib.request.Request(url, data=body, method=method)  # noqa: S310 - the address is our own
        with opener.open(request, timeout=AUDIT_SECONDS) as answer:
            return json.loads(answer.read())

"""The environment of the demo: a temporary folder, the rehearsal server, the process to be killed; nothing stays."""

import asyncio
import json
import os
import sys
import tempfile
import urllib.request
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from muster.cli.demo.work import SCRIPT
from muster.domain.errors import MusterError
from muster.settings import Settings
from muster.sim.audit import Audit, read_audit

LATENCY_MS = 250
STOP_SECONDS = 5.0


class DemoFailed(MusterError):
    """A process of the demo did not do its part."""

    code = "demo"


class DemoEnvironment:
    """Where the demo happens."""

    def __init__(self, folder: Path, addresses: Mapping[str, str]) -> None:
        self._folder = folder
        self._audit_url = addresses["audit"]
        self._variables = {"ANTHROPIC_BASE_URL": addresses["anthropic"], "ANTHROPIC_API_KEY": "rehearsal"}

    @property
    def settings(self) -> Settings:
        """The settings of the demo: its own store, and the rehearsal server instead of the provider."""
        return Settings(home=self._folder / "home", folder=self._folder, variables=self._variables)

    async def audit(self) -> Audit:
        """Read what the server was paid for."""
        return await asyncio.to_thread(self._read_audit)

    @asynccontextmanager
    async def child(self) -> AsyncIterator[Process]:
        """Start the process that does the work until it is killed."""
        environment = {"PATH": os.defpath, "MUSTER_HOME": str(self.settings.home), **self._variables}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "muster.cli.demo.child",
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            cwd=self._folder,
            env=environment,
            start_new_session=True,
        )
        async with ended(process):
            yield process

    def _read_audit(self) -> Audit:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self._audit_url, timeout=STOP_SECONDS) as response:
            return read_audit(json.loads(response.read()))


@asynccontextmanager
async def set_up() -> AsyncIterator[DemoEnvironment]:
    """Set up the environment and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="muster-demo-") as name:
        folder = Path(name)
        script = folder / "script.json"
        script.write_text(json.dumps(SCRIPT), encoding="utf-8")
        options = ("--until-eof", "--latency-ms", str(LATENCY_MS), "--script", str(script))
        # A session of its own: Ctrl-C is for us, and we end the server when we are done with it.
        server = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "muster.sim", *options, stdin=PIPE, stdout=PIPE, start_new_session=True
        )
        async with ended(server):
            yield DemoEnvironment(folder, await _addresses(server))


async def _addresses(server: Process) -> Mapping[str, str]:
    line = await server.stdout.readline() if server.stdout else b""
    if not line:
        raise DemoFailed("the simulated server did not start", suggestions=("muster sim says why",))
    found: dict[str, str] = json.loads(line)
    return found


@asynccontextmanager
async def ended(process: Process) -> AsyncIterator[None]:
    """End a process with the block, however the block ends."""
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())

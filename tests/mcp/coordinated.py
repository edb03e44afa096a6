"""A coordinating agent: the official client, connected to the tools in this process or to `muster mcp`."""

import asyncio
import json
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mcp.server.stdio import stdio_server

from mcp import Client
from muster.app import Muster, open_muster
from muster.app.service import Service
from muster.mcp.server import Coordinator
from muster.settings import load_settings
from tests import forked
from tests.api.server import SETTINGS, Project

PATIENCE = 60.0
POOL = """
[pool]
agent = "sim/echo"
slots = 2
"""
AGENTS = """
[agents.paid]
kind = "python"
function = "tests.mcp.agents:paid"
budget_usd = 0.10
[agents.held]
kind = "python"
function = "tests.pool.held:held"
budget_usd = 0.10
"""


def project_in(folder: Path, more: str = "", settings: str = SETTINGS) -> Project:
    """Return a project with a library, a pool and some agents."""
    project = Project(folder)
    project.declare(more, settings + POOL)
    return project


@dataclass
class Desk:
    """The client of a coordinating agent."""

    client: Client

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that succeeds."""
        found = await self.client.call_tool(tool, arguments)
        assert not found.is_error, found.content
        answer = found.structured_content
        assert isinstance(answer, dict)
        assert json.loads(found.content[0].text) == answer  # type: ignore[union-attr]
        return answer

    async def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that does not."""
        found = await self.client.call_tool(tool, arguments)
        assert found.is_error, found.content
        return cast(dict[str, Any], found.structured_content)

    async def done(self, started: Mapping[str, Any]) -> dict[str, Any]:
        """Wait until what was started is at rest."""
        return (await self.all_done([str(started["id"])]))[0]

    async def all_done(self, ids: list[str]) -> list[dict[str, Any]]:
        async with asyncio.timeout(PATIENCE):
            while not (found := await self.call("wait", ids=ids, timeout_secs=20, full=True))["done"]:
                pass
        runs: list[dict[str, Any]] = found["runs"]
        return runs


@asynccontextmanager
async def coordinated(
    folder: Path,
    *,
    budget: float | None = None,
    more: str = AGENTS,
    drives: bool = True,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[tuple[Desk, Muster]]:
    """Open a project with a client in this process, driven as `muster mcp` drives it."""
    project_in(folder, more)
    settings = load_settings(folder / ".muster", folder=folder, environment=environment or {})
    async with open_muster(settings=settings) as muster:
        if budget is not None:
            await muster.server_budgets.set("mcp", budget)
        service = Service(muster)
        driving = asyncio.ensure_future(service.drive()) if drives else None
        try:
            async with Client(Coordinator(muster).server()) as client:
                yield Desk(client), muster
        finally:
            service.close()
            if driving is not None:
                driving.cancel()
                await asyncio.wait({driving})


class _Written:
    """What the client writes, as the SDK wants it."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport = transport

    async def write(self, text: str) -> None:
        self._transport.write(text.encode())

    async def flush(self) -> None:
        """Nothing is held back."""


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    while line := await stream.readline():
        yield line.decode()


@asynccontextmanager
async def stdio(project: Project, *options: str) -> AsyncIterator[tuple[Desk, forked.ForkedProcess]]:
    """Start `muster mcp` and speak to it over its standard streams."""
    process = await forked.start(
        "muster", "mcp", *options, folder=project.folder, environment=project.environment, stdin=PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None

    @asynccontextmanager
    async def transport() -> AsyncIterator[Any]:
        files: Any = {"stdin": _lines(process.stdout), "stdout": _Written(process.stdin)}  # type: ignore[arg-type]
        async with stdio_server(**files) as streams:
            yield streams
            process.stdin.close()  # type: ignore[union-attr]

    async with Client(transport()) as client:
        yield Desk(client), process

"""The MCP server of the slots that one driver of the pool serves, and what an agent is told to find it.

An agent has a token that is worth something until its task is let go of. Tokens and the address are in no store: a
run that goes on elsewhere gets new ones.
"""

import asyncio
import fcntl
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from muster.agents.tool_server.http import LoopbackServer
from muster.agents.tool_server.protocol import ToolServer
from muster.app.base.backend import Backend
from muster.app.pool.slot_tools import Messenger, SlotTools
from muster.app.pool.slots import SlotDirectory
from muster.app.pool.tasks import Tasks
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration
from muster.engine.context import Context
from muster.pool.tasks import SlotProfile

NAME = "muster"  # of the server, as agents know it
VERSION = "1"
FOLDER = Path("slots", "mcp")  # in the home of muster, with a file for each agent at work
ENDING = ".json"
INSTRUCTIONS = (
    "You are {name}, one of several agents that work side by side in slots. Send messages to other slots by their "
    "names, read those that were sent to you, and share short texts that every slot is told."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotConnection:
    """What the agent of a slot is given while its task is driven; empty for one that has no use for it."""

    attached: Mapping[str, Json] = field(default_factory=dict, repr=False)  # to its requests; holds its token
    tools: SlotTools | None = None

    def know(self, run: Context) -> None:
        """Let its tools know the task that they belong to."""
        if self.tools is not None:
            self.tools.run = run


class SlotServer:
    """Serves the agents of the slots of one driver; it listens from the first one on that can use it."""

    def __init__(self, backend: Backend, messenger: Messenger, tasks: Tasks) -> None:
        self._settings, self._store, self._directory = backend.settings, backend.store, backend.directory
        self._messenger, self._tasks = messenger, tasks
        self._folder = backend.settings.home.absolute() / FOLDER
        self._server: LoopbackServer | None = None
        self._starting = asyncio.Lock()

    def remove_leftovers(self) -> None:
        """Remove the files of drivers that died."""
        for path in self._folder.glob(f"*{ENDING}"):
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    continue  # its driver lives
                path.unlink(missing_ok=True)

    @asynccontextmanager
    async def connect(self, slot: SlotProfile | None, agent: str) -> AsyncIterator[SlotConnection]:
        """Give the agent of a slot its access, if it can use MCP servers, and take it back in the end."""
        if slot is None or not self._directory.takes_mcp_servers(agent):
            yield SlotConnection()
            return
        server = await self._listening()
        directory = SlotDirectory(self._settings)
        tools = SlotTools(slot, self._messenger, self._tasks, self._store.pool, directory)
        offered = tools.offered(recursion=self._settings.pool.recursion)
        token = server.admit(ToolServer(NAME, VERSION, offered, instructions=INSTRUCTIONS.format(name=slot.name)))
        try:
            with self._written(server.url, token) as path:
                variables = {"MUSTER_MCP_URL": server.url, "MUSTER_MCP_TOKEN": token, "MUSTER_MCP_CONFIG": str(path)}
                yield SlotConnection(attached={"environment": variables, "mcp_config": str(path)}, tools=tools)
        finally:
            server.revoke(token)

    async def close(self) -> None:
        """Stop listening."""
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    async def _listening(self) -> LoopbackServer:
        async with self._starting:  # several slots begin at once
            if self._server is None:
                self._server = await self._start()
            return self._server

    async def _start(self) -> LoopbackServer:
        server = LoopbackServer()
        try:
            await server.start()
        except OSError as error:
            raise BadConfiguration(f"the MCP server of the slots cannot listen on loopback: {error}") from error
        self._store.maintenance.hide(server.secret)  # whatever an agent tells of its token is not stored
        return server

    @contextmanager
    def _written(self, url: str, token: str) -> Iterator[Path]:
        """Write what a client needs to a file that only its owner can read, locked for as long as it counts."""
        try:
            file, path = self._write(url, token)
        except OSError as error:
            raise BadConfiguration(
                f"the MCP configuration of a slot cannot be written: {error}",
                suggestions=(f"make {self._folder} writable",),
            ) from error
        with file:
            try:
                yield path
            finally:
                path.unlink(missing_ok=True)

    def _write(self, url: str, token: str) -> tuple[TextIO, Path]:
        server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, unnamed = tempfile.mkstemp(dir=self._folder)
        file = os.fdopen(descriptor, "w")
        fcntl.flock(file, fcntl.LOCK_EX)  # before it has a name under which leftovers are looked for
        path = Path(unnamed).rename(f"{unnamed}{ENDING}")
        file.write(json.dumps({"mcpServers": {NAME: server}}))
        file.flush()
        return file, path

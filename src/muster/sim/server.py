"""The rehearsal server: one port on the loopback address, start and stop."""

import asyncio
import gc
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from muster.sim.audit import Audit
from muster.sim.faults import Faults
from muster.sim.http import SimConnection
from muster.sim.options import Options
from muster.sim.rehearsal import Rehearsal
from muster.sim.routing import AUDIT, Router
from muster.sim.state import load, save

HOST = "127.0.0.1"


class Server:
    """A rehearsal server in this event loop; `async with` starts and stops it."""

    def __init__(self, options: Options, clock: Callable[[], float] = time.time) -> None:
        self._options = options
        self._rehearsal = Rehearsal(options, clock)
        self._router = Router(self._rehearsal)
        self._connections: set[SimConnection] = set()
        self._server: asyncio.Server | None = None
        self.port = options.port

    @property
    def anthropic(self) -> str:
        """The base address for clients of Anthropic."""
        return f"http://{HOST}:{self.port}/anthropic"

    @property
    def openai(self) -> str:
        """The base address for clients of OpenAI."""
        return f"http://{HOST}:{self.port}/openai/v1"

    @property
    def audit_url(self) -> str:
        """Where the audit can be read over HTTP."""
        return f"http://{HOST}:{self.port}{AUDIT}"

    @property
    def audit(self) -> Audit:
        """The audit as it stands, batches whose time has come included."""
        return self._rehearsal.audit()

    def reset(self) -> None:
        """Start over: audit, cache, batches, and how far the faults have got."""
        self._rehearsal.reset()

    def play(self, faults: Faults) -> None:
        """Play other faults from now on."""
        self._rehearsal.plan(faults)

    async def start(self) -> None:
        """Listen, from the state that was kept on."""
        if self._options.state is not None:
            load(self._rehearsal, self._options.state)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connect, HOST, self._options.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening, drop every client, and keep the state; may be called twice."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for connection in tuple(self._connections):
            connection.abort()
        await asyncio.sleep(0)  # lets the dropped connections end
        await server.wait_closed()
        if self._options.state is not None:
            save(self._rehearsal, self._options.state)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _connect(self) -> SimConnection:
        return SimConnection(self._router, self._options.max_body_bytes, self._connections, self._router.roomy)


def serve(options: Options | None = None, clock: Callable[[], float] = time.time) -> Server:
    """Make a server; `async with serve(...) as server` runs it, and batches get on by the clock."""
    return Server(options or Options(), clock)


async def run(options: Options, *, until_eof: bool = False) -> None:
    """Serve until SIGTERM or SIGINT; with `until_eof`, also until standard input ends."""
    gc.set_threshold(50_000)  # requests leave no cycles behind; looking for them costs a sixth of the speed
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if until_eof:
        threading.Thread(target=_watch_input, args=(loop, stop), daemon=True).start()
    async with serve(options) as server:
        sys.stdout.write(json.dumps(addresses(server)) + "\n")
        sys.stdout.flush()
        await stop.wait()


def addresses(server: Server) -> dict[str, str]:
    """Return the addresses that a client needs."""
    return {"anthropic": server.anthropic, "openai": server.openai, "audit": server.audit_url}


def _watch_input(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    # Reads the descriptor itself: sys.stdin would hold a lock that the end of the process waits for.
    try:
        while os.read(0, 4096):
            pass
    except OSError:  # closed counts as ended
        pass
    if not loop.is_closed():
        loop.call_soon_threadsafe(stop.set)

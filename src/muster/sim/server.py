"""The rehearsal server: one port on the loopback address, a table of endpoints, start and stop."""

import asyncio
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Self

from muster.sim.anthropic import Anthropic
from muster.sim.ask import Dialect
from muster.sim.audit import Audit
from muster.sim.control import AUDIT, Control
from muster.sim.faults import Faults
from muster.sim.http import Connection, Handler, HttpRequest
from muster.sim.openai import OpenAI
from muster.sim.options import Options
from muster.sim.play import Play, at_once, say
from muster.sim.rehearsal import Rehearsal

HOST = "127.0.0.1"

ANTHROPIC: Dialect = Anthropic()
OPENAI: Dialect = OpenAI()


class Router:
    """Finds who answers a request; an unknown path is refused in the words of the provider it belongs to."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._routes: Mapping[tuple[bytes, bytes], Handler] = {
            (b"POST", b"/anthropic/v1/messages"): partial(rehearsal.perform, ANTHROPIC),
            (b"POST", b"/openai/v1/chat/completions"): partial(rehearsal.perform, OPENAI),
            **Control(rehearsal).routes(),
        }

    def __call__(self, request: HttpRequest) -> Play:
        """Give the play for a request."""
        handler = self._routes.get((request.method, request.path))
        if handler is not None:
            return handler(request)
        if request.method == b"HEAD":  # some clients knock first; such an answer has no body
            return at_once(say(200, b""))
        dialect = OPENAI if request.path.startswith(b"/openai") else ANTHROPIC
        return self._rehearsal.unknown(dialect, request)


class Server:
    """A rehearsal server in this event loop; `async with` starts and stops it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._rehearsal = Rehearsal(options)
        self._router = Router(self._rehearsal)
        self._connections: set[Connection] = set()
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
        """The audit as it stands."""
        return self._rehearsal.book.audit()

    def reset(self) -> None:
        """Start over: audit, cache, and how far the faults have got."""
        self._rehearsal.reset()

    def play(self, faults: Faults) -> None:
        """Play other faults from now on."""
        self._rehearsal.plan(faults)

    async def start(self) -> None:
        """Listen."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connect, HOST, self._options.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and drop every client; may be called twice."""
        if self._server is None:
            return
        self._server.close()
        for connection in tuple(self._connections):
            connection.abort()
        await asyncio.sleep(0)  # lets the dropped connections end
        await self._server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _connect(self) -> Connection:
        return Connection(self._router, self._options.max_body_bytes, self._connections)


def serve(options: Options | None = None) -> Server:
    """Make a server; `async with serve(...) as server` runs it."""
    return Server(options or Options())

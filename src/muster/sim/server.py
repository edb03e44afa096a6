"""The rehearsal server: one port on the loopback address, its table of endpoints, start and stop.

An unknown path is refused in the words of the provider it belongs to.
"""

import asyncio
import gc
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Self

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.sim.audit import Audit, audit_json
from muster.sim.batches import anthropic as anthropic_batches
from muster.sim.batches import openai_files
from muster.sim.batches.anthropic import AnthropicBatchEndpoints
from muster.sim.batches.openai import OpenAIBatchEndpoints
from muster.sim.batches.openai_files import OpenAIFiles
from muster.sim.batches.router import BatchRouter, Endpoint
from muster.sim.faults import Faults
from muster.sim.files import read_faults
from muster.sim.http import Handler, HttpRequest, SimConnection
from muster.sim.kin import VERTEX_PATH, address_of, kin_routes, predict
from muster.sim.options import Options
from muster.sim.playback import SOON, Part, Playback, at_once
from muster.sim.protocols.anthropic import Anthropic
from muster.sim.protocols.ask import WireProtocol
from muster.sim.protocols.model_list import anthropic_list, openai_list
from muster.sim.protocols.openai import OpenAI
from muster.sim.protocols.responses import Responses
from muster.sim.rehearsal import Rehearsal
from muster.sim.state import load, save
from muster.sim.stored_responses import PATH as RESPONSES_PATH
from muster.sim.stored_responses import ResponseEndpoints
from muster.text import typed
from muster.text.http_messages import whole_response

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

    def address(self, provider: str) -> str:
        """Return the base address for clients of a provider that speaks the protocol of one of these two."""
        return f"http://{HOST}:{self.port}{address_of(provider)}"

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
        return SimConnection(self._router, self._options.max_body_bytes, self._connections, self._router.large_bodies)


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


ANTHROPIC = Anthropic()
OPENAI: WireProtocol = OpenAI()

Named = Callable[[HttpRequest, str], Playback]


class Router:
    """A table of paths, and a few patterns for paths with an id."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        responses = ResponseEndpoints(Responses(), rehearsal)
        anthropic = AnthropicBatchEndpoints(rehearsal.registry, rehearsal.options)
        batches = OpenAIBatchEndpoints(rehearsal.registry, rehearsal.options)
        files = OpenAIFiles(rehearsal.registry, rehearsal.options)
        served = [
            *_served(BatchRouter(ANTHROPIC, rehearsal), anthropic.endpoints()),
            *_served(BatchRouter(OPENAI, rehearsal), batches.endpoints() + files.endpoints()),
        ]
        self._routes: Mapping[tuple[bytes, bytes], Handler] = {
            (b"POST", b"/anthropic/v1/messages"): partial(rehearsal.perform, ANTHROPIC),
            (b"POST", b"/openai/v1/chat/completions"): partial(rehearsal.perform, OPENAI),
            (b"POST", b"/anthropic/v1/messages/count_tokens"): partial(rehearsal.count_tokens, ANTHROPIC),
            (b"POST", b"/openai/v1/embeddings"): partial(rehearsal.embed, OPENAI),
            (b"POST", RESPONSES_PATH.encode()): responses.create,
            (b"POST", f"{RESPONSES_PATH}/input_tokens".encode()): responses.count,
            (b"GET", b"/anthropic/v1/models"): partial(rehearsal.list_models, ANTHROPIC, anthropic_list()),
            (b"GET", b"/openai/v1/models"): partial(rehearsal.list_models, OPENAI, openai_list()),
            **{(method, path): handler for method, path, handler in served if b"{id}" not in path},
            **kin_routes(rehearsal),
            **Control(rehearsal).routes(),
        }
        self._patterns: list[tuple[bytes, re.Pattern[bytes], Named]] = [
            *((method, _pattern(path), handler) for method, path, handler in served if b"{id}" in path),
            (b"GET", _pattern(f"{RESPONSES_PATH}/{{id}}".encode()), responses.retrieve),
            (b"POST", _pattern(f"{RESPONSES_PATH}/{{id}}/cancel".encode()), responses.cancel),
            (b"POST", _pattern(VERTEX_PATH.encode()), partial(predict, rehearsal)),
        ]
        self.large_bodies = {
            anthropic_batches.PATH.encode(): anthropic.most_bytes,
            openai_files.PATH.encode(): files.most_bytes,
        }

    def __call__(self, request: HttpRequest) -> Playback:
        """Return the playback for a request."""
        handler = self._routes.get((request.method, request.path))
        if handler is not None:
            return handler(request)
        if request.method == b"HEAD":  # some clients knock first; such an answer has no body
            return at_once(whole_response(200, b""))
        return self._named(request) or self._unknown(request)

    def _named(self, request: HttpRequest) -> Playback | None:
        for method, pattern, handler in self._patterns:
            found = pattern.fullmatch(request.path) if method == request.method else None
            if found is not None:
                return handler(request, found[1].decode("latin-1"))
        return None

    def _unknown(self, request: HttpRequest) -> Playback:
        dialect = OPENAI if request.path.startswith(b"/openai") else ANTHROPIC
        return self._rehearsal.unknown(dialect, request)


def _served(router: BatchRouter, endpoints: tuple[Endpoint, ...]) -> Iterator[tuple[bytes, bytes, "partial[Playback]"]]:
    for endpoint in endpoints:
        yield endpoint.method, endpoint.path.encode(), partial(router.serve, endpoint)


def _pattern(path: bytes) -> re.Pattern[bytes]:
    return re.compile(re.escape(path).replace(rb"\{id\}", b"([^/]+)"))


AUDIT = "/_sim/audit"
RESET = "/_sim/reset"
FAULTS = "/_sim/faults"


class Control:
    """Answers whoever runs the rehearsal."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal

    def routes(self) -> Mapping[tuple[bytes, bytes], Handler]:
        """Return the table of endpoints."""
        return {
            (b"GET", AUDIT.encode()): self._audit,
            (b"POST", RESET.encode()): self._reset,
            (b"PUT", FAULTS.encode()): self._faults,
        }

    def _audit(self, request: HttpRequest) -> Playback:
        return Playback(parts=self._audit_parts())

    def _audit_parts(self) -> Iterator[Part]:
        for _ in self._rehearsal.catch_up():
            yield SOON, b""
        yield from _json(200, audit_json(self._rehearsal.audit())).parts

    def _reset(self, request: HttpRequest) -> Playback:
        self._rehearsal.reset()
        return _json(200, {"ok": True})

    def _faults(self, request: HttpRequest) -> Playback:
        try:
            self._rehearsal.plan(read_faults(typed.decode(request.body)))
        except (typed.DecodeError, UnicodeDecodeError) as error:
            return _json(400, {"error": {"message": f"faults: not valid JSON: {error}"}})
        except BadArgument as error:
            return _json(400, {"error": {"message": error.message}})
        return _json(200, {"ok": True})


def _json(status: int, value: Json) -> Playback:
    return at_once(whole_response(status, typed.encode(value)))

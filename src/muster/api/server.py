"""uvicorn around the application: a socket of its own, bounded headers, and a stop that somebody else decides about."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from muster.api.errors import RequestRefused, refusal_response
from muster.api.guards import HEADER_BYTES
from muster.domain.errors import BadArgument

STALL_SECONDS = 60.0  # in which a client must take something of a response
HEADER_SECONDS = 15.0  # in which the headers of a request must be there
GRACE_SECONDS = 5  # for responses that are under way when the server stops
CONNECTIONS = 4_000


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with a limit on how large headers may grow, and how long they may take, before they are complete."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._header_bytes: int | None = None  # of headers that are not complete; None: none are awaited
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadlines."""
        self._stop_waiting()
        self._stop_stalling()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Give a client that does not read its response some time."""
        self._stop_stalling()
        self._stalled = self.loop.call_later(STALL_SECONDS, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on with a client that reads again."""
        self._stop_stalling()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse what came; headers that are too large end the connection."""
        before = self._header_bytes
        super().data_received(data)
        if before is None or self._header_bytes is None:
            return
        self._header_bytes = before + len(data)
        if self._header_bytes > HEADER_BYTES and not self.transport.is_closing():
            self._refuse(431, f"the headers of a request may have {HEADER_BYTES:,} bytes")

    def on_message_begin(self) -> None:
        """Begin to wait for the end of the headers."""
        super().on_message_begin()
        self._header_bytes = 0
        if self._deadline is None:
            self._await_headers()

    def on_headers_complete(self) -> None:
        """Take note that the headers are there."""
        self._header_bytes = None
        self._stop_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, in the form of all errors."""
        self._refuse(400, "this is not a valid HTTP request")

    def _refuse(self, status: int, message: str) -> None:
        request_id = uuid4().hex
        response = refusal_response(RequestRefused(status, message), request_id)
        head = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            "content-type: application/json",
            f"content-length: {len(response.body)}",
            f"x-request-id: {request_id}",
            "connection: close",
        ]
        self.transport.write("\r\n".join(head).encode("ascii") + b"\r\n\r\n" + bytes(response.body))
        self.transport.close()

    def _await_headers(self) -> None:
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _stop_stalling(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()


class ApiServer(uvicorn.Server):
    """A server whose signals somebody else handles."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections, and tell so."""
        await super().startup(sockets)
        self._on_start()

    def stop(self) -> None:
        """Accept no more connections; responses that are under way are completed."""
        self.should_exit = True


def allow_connections() -> None:
    """Raise the number of files that this process may open as far as its connections need it, and it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + 1_000
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound; raises BadArgument when the address cannot be used."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise BadArgument(f"host {host} cannot be used: {error.strerror}") from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise BadArgument(f"port {port} cannot be used: {error.strerror}", suggestions=("--port 0",)) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the address of a listener as a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(app: FastAPI, on_start: Callable[[], None]) -> ApiServer:
    """Return a server of an application that logs nothing by itself."""
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_SECONDS,
        limit_concurrency=CONNECTIONS,
        backlog=1024,
    )
    return ApiServer(config, on_start)

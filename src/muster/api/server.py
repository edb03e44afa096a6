"""uvicorn around the application: a socket of its own, bounded headers, and a stop that somebody else decides about."""

import asyncio
import contextlib
import logging
import resource
import socket
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from muster.api.callers import Networks, is_one_of, read_networks
from muster.api.errors import RequestRefused, refusal_response
from muster.api.guards import ANSWER_HEADERS, HEADER_BYTES, RequestLog
from muster.domain.errors import BadArgument
from muster.settings import Settings
from muster.text.http_messages import whole_response

GRACE_SECONDS = 5  # for responses that are under way when the server stops
MAX_REFUSED = 100  # connections that are open only to be told that there are too many
MAX_PIPELINED = 16  # requests of one connection that wait for the response to the one before
VERSIONS = frozenset({"1.0", "1.1"})
OTHER_FILES = 1_000  # that the process may need besides connections
RETRY_SECONDS = 5  # after which a refused client may try again


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How many connections there may be, and how long they may take for what they do."""

    connections: int = 4_000
    per_client: int = 2_000  # of one address
    proxies: Networks = ()  # behind which there are many clients
    header_secs: float = 15.0  # in which the headers of a request must be there
    idle_secs: float = 75.0  # between a response and the next request
    linger_secs: float = 2.0  # for which the rest of a request that was answered early is read and dropped
    stall_secs: float = 60.0  # in which a client must take something of a response


class OpenConnections:
    """Counts connections: all of them, and those of each address."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._of: dict[str, int] = {}
        self._all = self._refused = 0

    @property
    def has_room_to_refuse(self) -> bool:
        """Return whether one more client can be told that there are too many connections, or is just cut off."""
        return self._refused <= MAX_REFUSED

    def open(self, address: str) -> RequestRefused | None:
        """Count a connection; returns why its requests are refused when there are too many."""
        refused = self._refusal(address)
        if refused is not None:
            self._refused += 1
            return refused
        self._all += 1
        self._of[address] = self._of.get(address, 0) + 1
        return None

    def close(self, address: str, refused: RequestRefused | None) -> None:
        """Count a connection no longer."""
        if refused is not None:
            self._refused -= 1
            return
        self._all -= 1
        self._of[address] -= 1
        if not self._of[address]:
            del self._of[address]

    def _refusal(self, address: str) -> RequestRefused | None:
        wait = {"retry-after": str(RETRY_SECONDS)}
        if self._all >= self.limits.connections:
            message = f"{self.limits.connections:,} connections are open (serve.connections)"
            return RequestRefused(503, message, code="limit", headers=wait)
        most = self.limits.per_client
        if self._of.get(address, 0) >= most and not is_one_of(address, self.limits.proxies):
            message = f"{most:,} connections from {address} are open (serve.connections_per_client)"
            return RequestRefused(429, message, headers=wait)
        return None


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with limits: how large headers may grow, what may be pipelined, and how long a client may take."""

    def __init__(self, *arguments: Any, opened: OpenConnections, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._opened, self._limits = opened, opened.limits
        self._refusal: RequestRefused | None = None  # of a connection too many
        self._ignores = False  # the last response is out, and what still comes is dropped
        self._body_open = False  # the body of the newest request is not complete
        self._taken = self._beside = 0  # bytes of a body in what came last; others since there were any
        self._header_bytes: int | None = None  # of headers that are not complete; None: none are awaited
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._refusal = self._opened.open(self._address)
        self._wait(self._limits.header_secs if self._refusal is None else self._limits.linger_secs)
        if self._refusal is not None and not self._opened.has_room_to_refuse:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadlines."""
        self._opened.close(self._address, self._refusal)
        self._stop_waiting()
        self._stop_stalling()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Give a client that does not read its response some time."""
        self._stop_stalling()
        self._stalled = self.loop.call_later(self._limits.stall_secs, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on with a client that reads again."""
        self._stop_stalling()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse what came; headers that are too large end the connection."""
        if self._ignores or self.transport.is_closing():
            return
        if self._refusal is not None:
            self._refuse(self._refusal)
            return
        before, self._taken = self._header_bytes, 0
        super().data_received(data)
        if self._body_open:
            self._count_beside_body(len(data))
        if before is None or self._header_bytes is None:
            return
        self._header_bytes = before + len(data)
        if self._header_bytes > HEADER_BYTES:
            self._refuse(RequestRefused(431, f"the headers of a request may have {HEADER_BYTES:,} bytes"))

    def _count_beside_body(self, size: int) -> None:
        """Refuse a body that comes with too much else: trailers are kept until they end, and they may not end."""
        self._beside = size - self._taken if self._taken else self._beside + size
        if self._beside > HEADER_BYTES:
            self._refuse(RequestRefused(431, f"trailers may have {HEADER_BYTES:,} bytes"))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer is dropped, since nothing has checked it and a proxy may have let it pass."""
        if not self._body_open:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._taken += len(body)
        super().on_body(body)

    def on_message_begin(self) -> None:
        """Begin to wait for the end of the headers."""
        super().on_message_begin()
        self._header_bytes = 0
        self._wait(self._limits.header_secs)

    def on_headers_complete(self) -> None:
        """Take note that the headers are there; raises ValueError for a request that is not even looked at."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError("too many requests wait on one connection")
        if not self.url.startswith(b"/"):
            raise ValueError("the request target must be a path")
        if self.parser.get_http_version() not in VERSIONS:
            raise ValueError("this HTTP version is not supported")
        codings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
        if codings and (codings != [b"chunked"] or self.parser.get_http_version() == "1.0"):
            raise ValueError("Transfer-Encoding must be chunked or left out")
        self._header_bytes = None
        self._body_open, self._beside = True, 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Take note that the body is there; what was answered before can be followed by another request."""
        super().on_message_complete()
        self._body_open = False
        if self.cycle.response_complete:
            self._wait(self._limits.idle_secs)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of one that was answered early; neither without an end."""
        super().on_response_complete()
        self._unset_keepalive_if_required()  # every byte that comes would end it
        comes = self._header_bytes is not None  # and has a deadline of its own
        if self.cycle.response_complete and not comes and not self.transport.is_closing():
            self._wait(self._limits.linger_secs if self._body_open else self._limits.idle_secs)

    def _unsupported_upgrade_warning(self) -> None:
        """Answer as if no upgrade had been asked for."""

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, in the form of all errors."""
        self._refuse(RequestRefused(400, "this is not a valid HTTP request"))

    def _refuse(self, refused: RequestRefused) -> None:
        """Answer, and drop what still comes for a while: closed at once, the client might never read the answer."""
        if self.transport.is_closing():
            return
        cycle: RequestResponseCycle | None = self.cycle  # uvicorn has none before the first request
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started or self.pipeline:
                self.transport.abort()  # a second response inside of the first would be read as part of it
                return
            cycle.disconnected = True  # whoever reads the rest of its body reads that there is none
            cycle.message_event.set()
        request_id = uuid4().hex
        response = refusal_response(refused, request_id)
        headers = {"x-request-id": request_id, "connection": "close", **ANSWER_HEADERS, **refused.headers}
        self.transport.write(whole_response(refused.status, bytes(response.body), headers.items()))
        self.transport.write_eof()
        self._ignores = True
        self._wait(self._limits.linger_secs)

    def _wait(self, seconds: float) -> None:
        """Close the connection after some seconds, unless something happens before that changes the deadline."""
        self._stop_waiting()
        self._deadline = self.loop.call_later(seconds, self._give_up)

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


class ServerLines(logging.Handler):
    """Passes what uvicorn and asyncio have to say on to the log of the process, as lines like all others."""

    def __init__(self, log: RequestLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; of an exception its kind and its place, since its message may quote anything."""
        level = "error" if record.levelno >= logging.ERROR else "warning"
        self._log("server", level=level, message=record.getMessage().strip(), **_raised(record))


def _raised(record: logging.LogRecord) -> dict[str, str]:
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return {}
    frames = traceback.extract_tb(error.__traceback__)
    at = {"at": f"{frames[-1].filename}:{frames[-1].lineno}"} if frames else {}
    return {"error": type(error).__name__, **at}


@contextlib.contextmanager
def lines_of_servers(log: RequestLog) -> Iterator[None]:
    """Take the lines of the libraries below for a while; otherwise they stand on standard error as plain text."""
    handler, loggers = ServerLines(log), [logging.getLogger(name) for name in ("uvicorn", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
            logger.propagate = True


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


def allow_connections(wanted: int) -> int:
    """Raise the number of files that this process may open as far as needed and possible; returns the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = wanted + OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= files:
        return wanted
    most = files if hard == resource.RLIM_INFINITY else min(hard, files)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    return max(1, min(wanted, most - min(OTHER_FILES, most // 2)))


def limits_of(settings: Settings) -> ConnectionLimits:
    """Return the limits that an operator chose, as far as this process may open so many files."""
    serve = settings.serve
    return ConnectionLimits(
        connections=allow_connections(serve.connections),
        per_client=serve.connections_per_client,
        proxies=read_networks(serve.trusted_proxies),
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound; raises BadArgument when the address cannot be used."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        # asyncio turns off Nagle's algorithm only where the protocol is named; with it, a response whose headers and
        # body are written apart waits 40 ms for the acknowledgement of the client.
        listener = socket.socket(family, kind, protocol)
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


def make_server(app: ASGIApp, on_start: Callable[[], None], limits: ConnectionLimits) -> ApiServer:
    """Return a server of an application."""
    config = uvicorn.Config(
        app,
        http=partial(BoundedProtocol, opened=OpenConnections(limits)),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        backlog=1024,
    )
    return ApiServer(config, on_start)

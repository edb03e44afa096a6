"""What a request must pass before a route sees it, as ASGI middlewares: id, host, origin, user, size and time."""

import asyncio
import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from uuid import uuid4

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muster.api.callers import Callers, Headers, RequestCaller
from muster.api.errors import RequestRefused, error_response, refusal_response
from muster.dashboard import SERVED

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
HEADER_BYTES = 32_768  # of all headers of a request, with the path
HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+?)\.?)(?::[0-9]{0,5})?", re.ASCII)
OPEN_PATHS = frozenset({"/healthz"}) | SERVED.keys()  # which need no token: the page holds nothing of anybody
# Headers that decide something; with two of one, this server and a proxy before it might read another.
SINGLE = frozenset({b"host", b"origin", b"authorization", b"content-length", b"content-type", b"idempotency-key"})
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def header(scope: Scope, name: bytes) -> str | None:
    """Return the value of a header; None without it."""
    headers: Headers = scope["headers"]
    return next((value.decode("latin-1") for key, value in headers if key == name), None)


RequestLog = Callable[..., None]  # takes the name of what happened, and its fields


ANSWER_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}  # unless a route says otherwise


def _answer_headers(given: Headers, request_id: str) -> Headers:
    """Return the headers of a response with its id, and what every response says that does not say otherwise."""
    names = {name.lower() for name, _ in given}
    more = [(name.encode(), value.encode()) for name, value in ANSWER_HEADERS.items() if name.encode() not in names]
    return [*given, *more, (b"x-request-id", request_id.encode())]


class RequestIds:
    """Gives each request an id, its client's own if it has a proper one, and a line in the log."""

    def __init__(self, app: ASGIApp, log: RequestLog, secrets: Collection[str] = ()) -> None:
        self._app, self._log, self._secrets = app, log, secrets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; an error that nobody expected becomes status 500 without its words."""
        if scope["type"] != "http":
            return
        begun = time.monotonic()
        request_id = self._id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        started, status, failure = False, 0, None

        async def with_id(message: Message) -> None:
            nonlocal started, status
            if message["type"] == "http.response.start":
                started, status = True, message["status"]
                message = {**message, "headers": _answer_headers(message["headers"], request_id)}
            await send(message)

        try:
            await self._app(scope, receive, with_id)
        except RequestRefused as refused:
            if started:
                raise
            await refusal_response(refused, request_id)(scope, receive, with_id)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            if started:
                raise
            message = "unexpected error in the server; its log, or standard error if there is none, says which"
            await error_response(500, "internal", message, request_id)(scope, receive, with_id)
            raise
        finally:
            caller = scope["state"].get("caller")
            self._log(
                "request",
                request_id=request_id,
                method=scope["method"],
                path=scope["path"],
                status=status,
                milliseconds=round(1000 * (time.monotonic() - begun)),
                user=caller.name if caller is not None else None,
                **({} if failure is None else {"error": failure}),
            )

    def _id(self, scope: Scope) -> str:
        """Return the id of a request; one that holds a secret would be written down and sent back."""
        given = header(scope, b"x-request-id") or ""
        fits = REQUEST_ID.fullmatch(given) and not any(secret in given for secret in self._secrets)
        return given if fits else uuid4().hex


@dataclass(slots=True)
class Lifetime:
    """Whether the server is stopping; then requests are refused."""

    stopping: asyncio.Event = field(default_factory=asyncio.Event)


class Stopping:
    """Refuses requests while the server stops."""

    def __init__(self, app: ASGIApp, lifetime: Lifetime) -> None:
        self._app, self._lifetime = app, lifetime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if self._lifetime.stopping.is_set():
            raise RequestRefused(
                503, "the server is stopping; try again when it runs again", headers={"retry-after": "5"}
            )
        await self._app(scope, receive, send)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The hosts that requests may be addressed to and the origins of pages that may make them."""

    hosts: Collection[str]
    origins: Collection[str] = ()
    any_address: bool = False  # it listens on every address, so a host that is an address cannot be a rebound name

    def allows_host(self, host: str) -> bool:
        """Return whether a Host header names this server; another name may be one rebound to its address."""
        name = host_name(host)
        return name is not None and (name in self.hosts or (self.any_address and _is_address(name)))

    def allows_origin(self, origin: str, host: str) -> bool:
        """Return whether a page of an origin may make a request: one of this server itself, or an allowed one."""
        return origin in self.origins or origin in (f"http://{host}", f"https://{host}")


def host_name(host: str) -> str | None:
    """Return a Host header without its port, in lower case, an IPv6 address without brackets; None for other texts."""
    found = HOST.fullmatch(host)
    return None if found is None else (found["address"] or found["name"]).lower()


def _repeats(headers: Headers) -> bool:
    """Return whether a header that may stand once stands there more often."""
    found = [name for name, _ in headers if name in SINGLE]
    return len(found) != len(set(found))


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class SourceChecks:
    """Refuses requests for other hosts, which a rebound name would make, and those of pages elsewhere."""

    def __init__(self, app: ASGIApp, sources: Sources) -> None:
        self._app, self._sources = app, sources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; a preflight of an allowed page is answered here."""
        if _repeats(scope["headers"]):
            raise RequestRefused(
                400,
                "duplicate header: Host, Origin, Authorization and others may be sent once",
                headers={"connection": "close"},
            )
        host, origin = header(scope, b"host") or "", header(scope, b"origin")
        if not self._sources.allows_host(host):
            raise RequestRefused(403, "the Host header does not name this server; see serve.allowed_hosts")
        if origin is None:
            await self._app(scope, receive, send)
            return
        if not self._sources.allows_origin(origin, host):
            raise RequestRefused(403, "pages of this origin may not use this server; see serve.allowed_origins")
        shared = [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]
        if scope["method"] == "OPTIONS" and header(scope, b"access-control-request-method") is not None:
            await Response(status_code=204, headers=PREFLIGHT | _text(shared))(scope, receive, send)
            return

        async def with_origin(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *shared]}
            await send(message)

        await self._app(scope, receive, with_origin)


PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, PUT, DELETE",
    "access-control-allow-headers": "authorization, content-type, idempotency-key, last-event-id, x-request-id",
    "access-control-max-age": "600",
}


def _text(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}


class Authentication:
    """Finds out who asks; without a valid token nothing of the server is to be seen, not even what it has."""

    def __init__(self, app: ASGIApp, callers: Callers) -> None:
        self._app, self._callers = app, callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        peer = scope.get("client")
        caller = self._callers.identify(peer[0] if peer else "", scope["headers"])
        if caller is None and scope["path"] not in OPEN_PATHS:
            raise RequestRefused(
                401,
                "a valid token is needed: send the header Authorization: Bearer SECRET",
                headers={"www-authenticate": "Bearer"},
            )
        scope["state"]["caller"] = caller
        await self._app(scope, receive, send)


class RequestLimits:
    """Bounds what a request may be: the size of its headers and body, their kind, and the time that they take."""

    def __init__(self, app: ASGIApp, *, body_bytes: int, body_secs: float, request_secs: float, streams: int) -> None:
        self._app, self._body_bytes = app, body_bytes
        self._body_secs, self._request_secs = body_secs, request_secs
        self._streams = StreamPlaces(streams)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; the whole body is read before a route sees it."""
        size = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if size + len(scope.get("raw_path", b"")) + len(scope.get("query_string", b"")) > HEADER_BYTES:
            raise RequestRefused(431, f"the headers of a request may have {HEADER_BYTES:,} bytes")
        body = await self._body(scope, receive)
        if body and scope["method"] in WRITES:
            _require_json(scope)
        await self._within_time(scope, _replayed(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        declared = header(scope, b"content-length") or "0"
        if not declared.isascii() or not declared.isdigit() or int(declared) > self._body_bytes:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._body_secs):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestRefused(400, "the connection was closed before the whole body arrived")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._body_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise RequestRefused(
                408,
                f"the body of the request did not arrive within {self._body_secs:g} seconds",
                headers={"connection": "close"},
            ) from None

    def _too_large(self) -> RequestRefused:
        # The connection stays open: closed while the client still sends, it would be cut before it has read this.
        return RequestRefused(413, f"the body of a request may have {self._body_bytes:,} bytes")

    async def _within_time(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _is_stream(scope):
            with self._streams.taken(_address(scope)):
                await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._request_secs) as timer:
                await self._app(scope, receive, send)
        except TimeoutError:
            if not timer.expired():
                raise
            raise RequestRefused(
                504, f"the request took more than {self._request_secs:g} seconds; what it started goes on"
            ) from None


class HeadRequests:
    """Answers HEAD wherever GET is answered: with the same status and headers, and without a body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; for a stream, whoever asks for its head is gone when the head is sent."""
        if scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        answered = False

        async def receive_until_answered() -> Message:
            return {"type": "http.disconnect"} if answered else await receive()

        async def send_head(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self._app({**scope, "method": "GET"}, receive_until_answered, send_head)


class StreamPlaces:
    """Counts the streams of events that each client follows."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, int] = {}

    @contextmanager
    def taken(self, client: str) -> Iterator[None]:
        """Take a place for a while; raises RequestRefused when a client has too many."""
        taken = self._open.get(client, 0)
        if taken >= self._most:
            raise RequestRefused(
                429,
                f"{self._most:,} streams to {client} are open (serve.streams_per_client)",
                headers={"retry-after": "5"},
            )
        self._open[client] = taken + 1
        try:
            yield
        finally:
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]


def _address(scope: Scope) -> str:
    caller: RequestCaller | None = scope["state"]["caller"]
    return "" if caller is None else caller.address


def _is_stream(scope: Scope) -> bool:
    """Return whether a response may take any time."""
    if scope["method"] != "GET":
        return False
    path: str = scope["path"]
    is_named = path.startswith("/api/stream/") or path.endswith("/stream")
    return is_named or "text/event-stream" in (header(scope, b"accept") or "")


def _require_json(scope: Scope) -> None:
    kind = (header(scope, b"content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestRefused(415, "the body must be JSON, with the header Content-Type: application/json")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body which was read, and then what comes after it."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay

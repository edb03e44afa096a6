"""The addresses of the gateway: a request comes in as bytes, and its answer leaves as it arrives.

These routes have guards of their own: bodies are larger than those of the API, answers take any time, and whatever is
refused is refused in the shape of the provider, since the client is a library of that provider.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping
from uuid import uuid4

from starlette.types import ASGIApp, Receive, Scope, Send

from muster.api.callers import Callers, Headers, RequestCaller
from muster.api.gateway_shapes import (
    FOREIGN,
    INVALID,
    STOPPING,
    TOO_LARGE,
    TOO_SLOW,
    UNEXPECTED,
    UNKNOWN_KEY,
    RefusalShape,
    shape_of,
    told,
    words,
)
from muster.api.guards import HEADER_BYTES, Lifetime, Sources, header
from muster.app import Muster
from muster.app.gateway.gateway import ForeignRequest, PassedAnswer
from muster.domain.errors import MusterError

MAX_BODY = 32 * 1024 * 1024  # bytes, as the providers have it
BODY_SECONDS = 30.0  # without a byte of a body
_ADDRESS = re.compile(
    r"(?:/run/(?P<run>[A-Za-z0-9][A-Za-z0-9._-]{0,99}))?/(?P<upstream>[A-Za-z0-9_-]+)(?P<path>/v1/.+)"
)
_SINGLE = frozenset((b"host", b"authorization", b"x-api-key", b"content-length", b"content-type", b"content-encoding"))
_NAMES = {
    b"x-claude-code-session-id": "session",
    b"x-claude-code-agent-id": "agent",
    b"x-claude-code-parent-agent-id": "parent",
    b"x-claude-code-prompt-id": "prompt",
    b"x-muster-session": "session",
}
MAX_NAME = 200  # characters of what a client calls its session


class _Refusal(Exception):
    """A request that is refused before anything is made of it."""

    def __init__(self, shape: RefusalShape, message: str) -> None:
        super().__init__(message)
        self.shape, self.message = shape, message


class GatewayRoutes:
    """Takes the requests that are for upstreams, and leaves all others to the application."""

    def __init__(self, app: ASGIApp, muster: Muster, callers: Callers, sources: Sources, lifetime: Lifetime) -> None:
        self._app, self._muster = app, muster
        self._callers, self._sources, self._lifetime = callers, sources, lifetime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        found = _ADDRESS.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if found is None or found["upstream"] not in self._muster.gateway.upstreams:
            await self._app(scope, receive, send)
            return
        await _Exchange(self._muster, scope, found, send).answer(self._guarded, receive)

    def _guarded(self, scope: Scope) -> RequestCaller:
        """Return who asks; raises what refuses the request without a look at its body."""
        headers: Headers = scope["headers"]
        names = [name for name, _ in headers if name in _SINGLE]
        if len(names) != len(set(names)):
            raise _Refusal(INVALID, "a header that may be sent once was sent twice")
        if sum(len(name) + len(value) + 4 for name, value in headers) > HEADER_BYTES:
            raise _Refusal(INVALID, f"the headers of a request may have {HEADER_BYTES:,} bytes")
        if self._lifetime.stopping.is_set():
            raise _Refusal(STOPPING, "the server is stopping; try again when it runs again")
        host, origin = header(scope, b"host") or "", header(scope, b"origin")
        if not self._sources.allows_host(host):
            raise _Refusal(FOREIGN, "the Host header does not name this server; see serve.allowed_hosts")
        if origin is not None and not self._sources.allows_origin(origin, host):
            raise _Refusal(FOREIGN, "pages of this origin may not use this server; see serve.allowed_origins")
        peer = scope.get("client")
        caller = self._caller(peer[0] if peer else "", headers)
        if caller is None:
            raise _Refusal(UNKNOWN_KEY, "a valid token of this server is needed as the API key")
        return caller

    def _caller(self, peer: str, headers: Headers) -> RequestCaller | None:
        """Return the user of a token: some clients send it as one header, some as another, and some as both."""
        found = self._callers.identify(peer, headers)
        if found is not None:
            return found
        others = [(name, value) for name, value in headers if name != b"authorization"]
        keys = [value for name, value in headers if name == b"x-api-key"]
        bearer = [(b"authorization", b"Bearer " + key) for key in keys]
        return self._callers.identify(peer, [*others, *bearer])


class _Exchange:
    """One request, from its head to the end of its answer."""

    def __init__(self, muster: Muster, scope: Scope, found: "re.Match[str]", send: Send) -> None:
        self._muster, self._scope, self._send = muster, scope, send
        self._run, self._upstream, self._path = found["run"] or "", found["upstream"], found["path"]
        self._id = f"req_{uuid4().hex}"
        self._api, self._status, self._caller = "", 0, ""
        self._is_joined = False

    async def answer(self, guarded: Callable[[Scope], RequestCaller], receive: Receive) -> None:
        """Answer, and write a line into the log."""
        began, failure = time.monotonic(), None
        try:
            self._api = self._muster.gateway.api_of(self._upstream)
            caller = guarded(self._scope)
            self._caller = caller.name or ""
            caller.require("gateway")
            if self._scope["method"] == "HEAD":
                await self._whole(200, {}, b"")
                return
            await self._pass_on(caller, await self._body(receive), receive)
        except _Refusal as refused:
            await self._refuse(refused.shape, f"Muster: {refused.message}")
        except MusterError as error:
            failure = error.code
            await self._refuse(shape_of(error), words(error))
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            if self._status:
                raise
            await self._refuse(UNEXPECTED, "Muster: unexpected error in the server; its log says which")
        finally:
            self._muster.log(
                "exchange",
                request_id=self._id,
                method=self._scope["method"],
                path=self._scope["path"],
                status=self._status,
                milliseconds=round(1000 * (time.monotonic() - began)),
                user=self._caller or None,
                joined=self._is_joined,
                **({} if failure is None else {"error": failure}),
            )

    async def _pass_on(self, caller: RequestCaller, body: bytes, receive: Receive) -> None:
        asked = ForeignRequest(
            run=self._run,
            upstream=self._upstream,
            method=self._scope["method"],
            path=self._path,
            query=self._scope["query_string"].decode("latin-1"),
            headers=tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in self._scope["headers"]),
            body=body,
            names=_names(self._scope["headers"]),
            client=caller.address,
            retries=_retries(self._scope),
        )
        answer = await self._muster.gateway.pass_on(asked, caller.user)
        self._is_joined = answer.is_joined
        leaving = asyncio.create_task(self._watch(receive, answer))
        try:
            await self._leave(answer)
        finally:
            leaving.cancel()

    async def _leave(self, answer: PassedAnswer) -> None:
        """Let an answer leave; one that its client does not wait for any more is kept for a retry."""
        flow = answer.flow
        status = await flow.head()
        if answer.assembles is not None and 200 <= status < 300:
            await self._whole(status, {**flow.headers, "content-type": "application/json"}, await answer.whole())
            flow.is_delivered = True
            return
        await self._start(status, flow.headers)
        async for piece in flow.pieces():
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        flow.is_delivered = not flow.is_left  # now: the end of a response is told like a client that goes away
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _watch(self, receive: Receive, answer: PassedAnswer) -> None:
        """Note that the client went away before it had the whole answer."""
        while (await receive())["type"] != "http.disconnect":
            pass
        answer.flow.is_left = not answer.flow.is_delivered

    async def _body(self, receive: Receive) -> bytes:
        if header(self._scope, b"content-encoding") is not None:
            raise _Refusal(INVALID, "the body must be sent as it is, without a Content-Encoding")
        parts: list[bytes] = []
        size = 0
        while True:
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    message = await receive()
            except TimeoutError:
                raise _Refusal(TOO_SLOW, f"nothing of the body arrived for {BODY_SECONDS:g} seconds") from None
            if message["type"] == "http.disconnect":
                raise _Refusal(TOO_SLOW, "the connection was closed before the whole body arrived")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > MAX_BODY:
                raise _Refusal(TOO_LARGE, f"the body of a request may have {MAX_BODY:,} bytes")
            if not message.get("more_body", False):
                return b"".join(parts)

    async def _refuse(self, shape: RefusalShape, message: str) -> None:
        if self._status:  # the answer has begun: only the end of the connection tells that it is not whole
            raise ConnectionAbortedError(message)
        body = json.dumps(told(self._api, shape, message, self._id)).encode()
        headers = {"content-type": "application/json", "x-request-id": self._id, "request-id": self._id}
        await self._whole(shape.status, {**headers, **shape.headers}, body)

    async def _whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        await self._start(status, {**headers, "content-length": str(len(body))})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self._status = status
        sent = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": sent})


def _names(headers: Headers) -> Mapping[str, str]:
    """Return what a client says of whose request it is, as far as it can be shown."""
    found = {_NAMES[name]: value.decode("latin-1")[:MAX_NAME] for name, value in headers if name in _NAMES}
    return {name: value for name, value in found.items() if value.isprintable()}


def _retries(scope: Scope) -> int:
    """Return how often a client says that it has asked this before."""
    told = header(scope, b"x-stainless-retry-count") or ""
    return int(told) if told.isascii() and told.isdigit() and len(told) < 4 else 0

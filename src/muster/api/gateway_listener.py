"""A gateway of its own for one program: on loopback, with a token for it, and no other routes."""

import asyncio
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from muster.api.callers import Callers, Headers, RequestCaller, TokenTable, bearer_of
from muster.api.gateway_routes import GatewayRoutes
from muster.api.guards import Lifetime, Sources
from muster.api.server import limits_of, listen, make_server, url_of
from muster.app import Muster

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayAddress:
    """Where a program finds the gateway that is there for it, and its key."""

    url: str
    key: str = field(repr=False)


class _OneKey(Callers):
    """Knows whoever has the key of this gateway."""

    def __init__(self, key: str) -> None:
        super().__init__(TokenTable(()), ())
        self._key = key

    def identify(self, peer: str, headers: Headers) -> RequestCaller | None:
        """Return the local user for a request with the key."""
        if not hmac.compare_digest((bearer_of(headers) or "").encode(), self._key.encode()):
            return None
        return RequestCaller(name=None, scopes=frozenset(("gateway",)), address=peer)


async def _nothing_else(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await PlainTextResponse("there is nothing here but the gateway\n", 404)(scope, receive, send)


@asynccontextmanager
async def gateway_listener(muster: Muster, key: str) -> AsyncIterator[GatewayAddress]:
    """Serve the gateway of an open Muster on a free port, for whoever has the key."""
    lifetime = Lifetime()
    sources = Sources(hosts=frozenset((LOOPBACK, "localhost")))
    app = GatewayRoutes(_nothing_else, muster, _OneKey(key), sources, lifetime)
    listener, started = listen(LOOPBACK, 0), asyncio.Event()
    server = make_server(app, started.set, limits_of(muster.settings))
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        await started.wait()
        yield GatewayAddress(url=url_of(listener), key=key)
    finally:
        lifetime.stopping.set()
        server.stop()
        await serving

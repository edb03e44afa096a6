"""The application that uvicorn serves: routes, one mapping of errors, and what every request must pass."""

from collections.abc import Sequence
from functools import cache

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from muster.api.callers import Callers, read_networks, read_tokens
from muster.api.errors import install_errors
from muster.api.gateway_routes import GatewayRoutes
from muster.api.guards import (
    Authentication,
    HeadRequests,
    Lifetime,
    RequestIds,
    RequestLimits,
    RequestLog,
    SourceChecks,
    Sources,
    Stopping,
)
from muster.api.routes import (
    batches,
    battles,
    chains,
    costs,
    councils,
    health,
    page,
    pool,
    runs,
    streams,
    suites,
    tasks,
    verify,
    work,
)
from muster.api.schema import SUMMARY, TITLE, VERSION, described
from muster.api.sse import FrameCache
from muster.app import Muster
from muster.app.kinds import AppKind, made_at
from muster.app.serving.cleaning import cleaner
from muster.app.starts import Starts
from muster.domain.canonical import Json
from muster.domain.doors import Door
from muster.settings import Settings

ROUTERS = (
    streams.router,
    health.router,
    runs.router,
    battles.router,
    suites.router,
    chains.router,
    councils.router,
    verify.router,
    tasks.router,
    pool.router,
    batches.router,
    costs.router,
    page.router,
    *map(work.route_of, made_at(Door.REQUEST)),
)
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
ANY = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not listened on


def create_app(
    muster: Muster,
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    lifetime: Lifetime | None = None,
    more: Sequence[AppKind] = (),
) -> FastAPI:
    """Return the application over an open Muster; `host` is the address that it is served at.

    `more` are kinds of work besides those that all programs know.
    """
    alive = lifetime or Lifetime()
    app = FastAPI(
        title=TITLE,
        summary=SUMMARY,
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect is a status that no route documents
        middleware=[
            Middleware(
                GatewayRoutes,
                muster=muster,
                callers=callers_of(settings),
                sources=sources_of(settings, host),
                lifetime=alive,
            ),
            *guards(settings, host, alive, muster.log),
            Middleware(HeadRequests),
        ],
    )
    app.state.muster, app.state.frames = muster, FrameCache()
    app.state.starts = Starts(muster)
    install_errors(app, cleaner(settings))
    routers = (*ROUTERS, *map(work.route_of, more))
    app.openapi = lambda: described(routers) if more else description()  # type: ignore[method-assign]  # as FastAPI wants
    for router in routers:
        # Not `include_router`: for every application it makes all routes again, which takes half a second.
        app.router.routes.extend(router.routes)
    return app


@cache  # it takes most of a second, and is the same for every application
def description() -> dict[str, Json]:
    """Return the schema of the routes that every server has, as /openapi.json."""
    return described(ROUTERS)


def create_guarded_app(
    endpoint: ASGIApp, path: str, settings: Settings, *, host: str, lifetime: Lifetime, log: RequestLog
) -> FastAPI:
    """Return an application that serves one endpoint of another protocol behind the same checks as every route."""
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        middleware=guards(settings, host, lifetime, log),
    )
    install_errors(app, cleaner(settings))
    app.router.routes.append(Route(path, endpoint=_Endpoint(endpoint)))
    return app


class _Endpoint:
    """An application of its own at one path; an object, since a function there would be a route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        await self._app(scope, receive, send)


def guards(settings: Settings, host: str, lifetime: Lifetime, log: RequestLog) -> list[Middleware]:
    """Return what every request must pass, the outermost first."""
    serve, callers = settings.serve, callers_of(settings)
    return [
        Middleware(RequestIds, log=log, secrets=settings.secrets),
        Middleware(Stopping, lifetime=lifetime),
        Middleware(SourceChecks, sources=sources_of(settings, host)),
        Middleware(Authentication, callers=callers),
        Middleware(
            RequestLimits,
            body_bytes=serve.body_bytes,
            body_secs=serve.body_secs,
            request_secs=settings.request_timeout,
            streams=serve.streams_per_client,
        ),
    ]


def callers_of(settings: Settings) -> Callers:
    """Return who finds out who asks."""
    return Callers(read_tokens(settings), read_networks(settings.serve.trusted_proxies))


def sources_of(settings: Settings, host: str) -> Sources:
    """Return which hosts and origins a server at an address accepts."""
    names = {name.lower() for name in settings.serve.allowed_hosts}
    return Sources(
        hosts=LOOPBACK | names | ({host.lower()} - ANY),
        origins=settings.serve.allowed_origins,
        any_address=host in ANY,
    )

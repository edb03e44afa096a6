"""`muster mcp`: the MCP server for an agent that coordinates others; it also drives what is started through it."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Annotated, Any

from muster.api.app import create_guarded_app
from muster.api.guards import Lifetime
from muster.api.server import limits_of, lines_of_servers, listen, make_server, url_of
from muster.app import Muster
from muster.app.service import Service
from muster.app.views.service import served_view
from muster.cli.drive import SignalHandler
from muster.cli.line import Option
from muster.cli.options import UnpricedOption
from muster.cli.service.options import LoggingOptions
from muster.cli.service.serve import require_token
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, note, print_json, say, warn
from muster.domain.errors import BadConfiguration, Interrupted, MusterError
from muster.domain.ids import RunId

SERVER = "mcp"  # whose budget --budget sets


def mcp(
    common: CommonOptions,
    log: LoggingOptions,
    http: Annotated[
        bool, Option("--http", help="Serve HTTP (streamable) instead of standard input and output.")
    ] = False,
    host: Annotated[
        str,
        Option(
            "--host",
            metavar="ADDRESS",
            help="With --http: the address to listen on; other than loopback requires [[tokens]].",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, Option("--port", metavar="N", min=0, max=65535, help="With --http: the port; 0 picks a free one.")
    ] = 7421,
    budget: Annotated[
        str | None,
        Option(
            "--budget",
            metavar="USD",
            help="Total budget in dollars for everything started through MCP in this store; "
            "restarting the server does not reset it.",
        ),
    ] = None,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Serve MCP tools to a coordinating agent, and execute what it starts, until the client disconnects."""
    serve_stdio, http_app = _adapter()

    async def work(muster: Muster) -> None:
        if budget is not None:
            await muster.server_budgets.set(SERVER, budget)
        # Without a log what a library has to say stays on standard error, rather than nowhere.
        with nullcontext() if log is None else lines_of_servers(muster.log):
            if http:
                require_token(muster, host)
                await _serve_http(muster, common, host, port, http_app)
            else:
                await _serve_stdio(muster, serve_stdio)

    with_muster(common, work, allow_unpriced=allow_unpriced, create=True, log=log, metrics=True)
    return 0


HttpServer = Callable[[Muster], AbstractAsyncContextManager[Any]]


def _adapter() -> tuple[Callable[[Muster], Awaitable[None]], HttpServer]:
    """Return what serves; raises BadConfiguration when the extra is not installed."""
    try:
        from muster.mcp.transports import http_app, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "muster":
            raise
        raise BadConfiguration(
            f"muster mcp needs the extra `mcp`, which is not installed: no module {error.name}",
            suggestions=("pip install 'muster-ai[mcp]'",),
        ) from error
    return serve_stdio, http_app


def _service(muster: Muster) -> Service:
    def on_error(run: RunId, error: MusterError) -> None:
        warn(f"run {run} could not be executed: {error.message}")

    return Service(muster, on_error=on_error, on_note=warn)


async def _serve_stdio(muster: Muster, serve: Callable[[Muster], Awaitable[None]]) -> None:
    service = _service(muster)
    if sys.stdin.isatty():
        warn("this is an MCP server, which waits for its client on standard input; a client starts it: muster mcp")

    def leave(_: object) -> None:
        service.close()
        muster.stop(Interrupted("the client of the MCP server is gone"), now=False)

    serving = asyncio.ensure_future(serve(muster))
    serving.add_done_callback(leave)
    SignalHandler(muster, warn, on_first=service.close).install()
    try:
        await service.drive()
    finally:
        serving.cancel()
        await asyncio.wait({serving})
    if not serving.cancelled():
        serving.result()


async def _serve_http(muster: Muster, common: CommonOptions, host: str, port: int, adapter: HttpServer) -> None:
    lifetime, service = Lifetime(), _service(muster)
    listener = listen(host, port)
    url = f"{url_of(listener)}/mcp"

    def on_start() -> None:
        if common.json:
            print_json(served_view(url, muster.settings))
        else:
            say(f"serving MCP for {muster.settings.store_place} at {url}")
            note(common, "stop it with Ctrl-C; runs continue when it is started again")

    def on_first() -> None:
        lifetime.stopping.set()
        service.close()

    async with adapter(muster) as endpoint:
        app = create_guarded_app(endpoint, "/mcp", muster.settings, host=host, lifetime=lifetime, log=muster.log)
        server = make_server(app, on_start, limits_of(muster.settings))
        SignalHandler(muster, warn, on_first=on_first).install()
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            await service.drive()
        finally:
            lifetime.stopping.set()
            await muster.runs.close_watchers()
            server.stop()
            await serving
            sys.stdout.flush()

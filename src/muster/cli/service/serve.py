"""`muster serve` and `muster view`: the HTTP server, which also drives what is submitted to it, and its page."""

import asyncio
import sys
import webbrowser
from collections.abc import Callable
from contextlib import nullcontext
from ipaddress import ip_address
from typing import Annotated

from muster.api.app import create_app
from muster.api.guards import Lifetime
from muster.api.server import limits_of, lines_of_servers, listen, make_server, url_of
from muster.app import Muster
from muster.app.base.stores import START_SECONDS
from muster.app.service import Service
from muster.app.serving.address import ServerAddress
from muster.app.views.service import served_view
from muster.cli.drive import SignalHandler
from muster.cli.line import Argument, Option
from muster.cli.options import UnpricedOption
from muster.cli.service.options import LoggingOptions
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, note, print_json, say, warn
from muster.domain.errors import BadConfiguration, MusterError
from muster.domain.ids import RunId

LOCAL = "localhost"


def serve(
    common: CommonOptions,
    log: LoggingOptions,
    host: Annotated[
        str,
        Option("--host", metavar="ADDRESS", help="The address to listen on; other than loopback requires [[tokens]]."),
    ] = "127.0.0.1",
    port: Annotated[int, Option("--port", metavar="N", min=0, max=65535, help="The port; 0 picks a free one.")] = 7420,
    open_page: Annotated[bool, Option("--open", help="Open the page in a browser.")] = False,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Serve the web page and the HTTP API, and execute submitted runs, until stopped; runs can be resumed."""

    async def work(muster: Muster) -> None:
        require_token(muster, host)
        # Without a log what a library has to say stays on standard error, rather than nowhere.
        with nullcontext() if log is None else lines_of_servers(muster.log):
            await serve_until_stopped(muster, common, host, port, _open_page if open_page else _leave_page)

    with_muster(
        common,
        work,
        allow_unpriced=allow_unpriced,
        create=True,
        log=log,
        metrics=True,
        start_secs=START_SECONDS,
    )
    return 0


def view(
    common: CommonOptions,
    log: LoggingOptions,
    run: Annotated[
        str | None,
        Argument(metavar="RUN", complete="run_names", help="The run to open; if left out, the list of runs."),
    ] = None,
) -> int:
    """Open the web page in a browser; starts a server on a free port if none is running for this store."""

    async def work(muster: Muster) -> None:
        place = "#/runs" if run is None else f"#/runs/{(await muster.runs.find(run)).id}"
        url = ServerAddress(muster.settings.home).find()
        if url is None:
            await serve_until_stopped(muster, common, "127.0.0.1", 0, lambda url: _open_page(url, place))
        elif common.json:
            print_json(served_view(url, muster.settings))
            _open_page(url, place)
        else:
            say(f"the page is at {url}/{place}")
            _open_page(url, place)

    with_muster(common, work, create=True, log=log, metrics=True)
    return 0


def _open_page(url: str, place: str = "") -> None:
    """Open the page in the browser of the person; without one the address is told, and that is enough."""
    if not webbrowser.open(f"{url}/{place}"):
        warn(f"cannot start a browser; open {url}/{place} yourself")


def _leave_page(url: str) -> None:
    """Open nothing."""


def require_token(muster: Muster, host: str) -> None:
    """Refuse to be reached by others when everybody could use it."""
    try:
        local = host == LOCAL or ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local and not muster.settings.tokens:
        raise BadConfiguration(
            f"--host {host} is reachable from other machines, and no [[tokens]] are declared",
            suggestions=('declare one in muster.toml: [[tokens]] name = "ci", secret_env = "MUSTER_TOKEN_CI"',),
        )


async def serve_until_stopped(
    muster: Muster, common: CommonOptions, host: str, port: int, opened: Callable[[str], None]
) -> None:
    """Serve an open store and drive what is submitted; `opened` is called with the address, in a thread."""
    lifetime = Lifetime()
    app = create_app(muster, muster.settings, host=host, lifetime=lifetime)

    def on_error(run: RunId, error: MusterError) -> None:
        warn(f"run {run} could not be executed: {error.message}")

    service = Service(muster, on_error=on_error, on_note=warn)
    listener = listen(host, port)

    def on_start() -> None:
        if common.json:
            print_json(served_view(url_of(listener), muster.settings))
        else:
            say(f"serving {muster.settings.store_place} at {url_of(listener)}")
            note(common, "stop it with Ctrl-C; runs continue when it is started again")
        # In a thread: some browsers keep whoever starts them until they are closed.
        asyncio.get_running_loop().run_in_executor(None, opened, url_of(listener))

    server = make_server(app, on_start, limits_of(muster.settings))

    def on_first() -> None:
        lifetime.stopping.set()
        service.close()

    SignalHandler(muster, warn, on_first=on_first).install()
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        with ServerAddress(muster.settings.home).announce(url_of(listener)):
            await service.drive()
    finally:
        lifetime.stopping.set()
        await muster.gateway.close()
        await muster.runs.close_watchers()  # the last events are out, so clients connect again elsewhere
        server.stop()
        await serving
        sys.stdout.flush()

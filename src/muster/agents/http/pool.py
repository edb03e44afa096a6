"""The connections of one client: opened when none is free, used again newest first, dropped when they lie idle."""

import asyncio
import os
import socket
import ssl
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, zip_longest
from typing import Any, cast

from muster.agents.http.connection import Connection
from muster.agents.http.request import HttpOrigin
from muster.agents.http.tls import make_context
from muster.agents.http.tunnel import Tunnel
from muster.domain.agent import Timeouts
from muster.domain.errors import BadConfiguration, Unreachable, Untrusted
from muster.domain.network import Network, Proxy

READ_BYTES = 64 * 1024
_TURNS = 10  # of the loop: an aborted transport gives its socket back within three


def _why(error: OSError) -> str:
    """Return why a connection was not made, without the number of the system's error and the repeated address."""
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, socket.gaierror):
        return "the host name cannot be resolved"
    if error.errno is not None and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


class ConnectionPool:
    """Free connections by origin; serves one event loop."""

    def __init__(self, *, most_bytes: int, keep: float, tls: ssl.SSLContext | None, network: Network) -> None:
        self._most_bytes, self._keep, self._tls, self._network = most_bytes, keep, tls, network
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._free: defaultdict[str, deque[Connection]] = defaultdict(deque)  # by place, oldest first
        self._open: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    def take(self, origin: HttpOrigin) -> Connection | None:
        """Return the connection that was used last, if one is free."""
        free = self._free.get(origin.place)
        while free:
            connection = free.pop()
            if connection.is_fresh():
                return connection
            connection.abort()  # nothing was written to it yet, so another may be taken
        return None

    async def open(self, origin: HttpOrigin, timeouts: Timeouts) -> tuple[Connection, float]:
        """Make a new connection and say how much of the call's time is left, or raise Unreachable."""
        self._check_open(origin)
        loop = asyncio.get_running_loop()
        began = loop.time()
        connection = await self._connect(origin, min(timeouts.connect, timeouts.call))
        if self._closed:
            connection.abort()
        self._check_open(origin)
        if connection.is_closing():
            raise Unreachable(f"{origin.place}: cannot connect: the server closed the connection at once")
        return connection, timeouts.call - (loop.time() - began)

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next exchange, or close it when it is fit for none."""
        if not connection.rest() or self._closed:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._free[connection.place].append(connection)
        if self._sweeper is None:
            self._sweeper = loop.call_later(self._keep, self._sweep, loop)

    async def close(self) -> None:
        """Close all connections, those in use too; may be called twice."""
        self._closed = True
        self._free.clear()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in tuple(self._open):
            connection.break_off("the connections of this agent were closed")
        for _ in range(_TURNS):
            if self._open:
                await asyncio.sleep(0)

    def route(self, origin: HttpOrigin) -> Proxy | None:
        """Return the proxy that leads to a server, None for none, or raise BadConfiguration."""
        return self._network.proxies.route(origin.host, origin.port, secure=origin.secure)

    async def _connect(self, origin: HttpOrigin, seconds: float) -> Connection:
        limit = asyncio.timeout(seconds)
        proxy = self.route(origin)
        way = "" if proxy is None else f" through the proxy {proxy.place} ({proxy.variable})"
        try:
            async with limit:
                if proxy is None:
                    return await self._connect_to(origin, origin.host, origin.port, secure=origin.secure)
                if origin.secure:
                    return await self._connect_by_tunnel(origin, proxy)
                with _trusting(proxy.place, "of the proxy "):
                    return await self._connect_to(origin, proxy.host, proxy.port, secure=proxy.secure)
        except ssl.SSLCertVerificationError as error:
            raise untrusted(origin.place, error) from error
        except OSError as error:  # of the system, of the resolver, of TLS, or the time is over
            if limit.expired():
                raise Unreachable(f"{origin.place}: no connection{way} within {seconds:g} s") from None
            raise Unreachable(f"{origin.place}: cannot connect{way}: {_why(error)}") from error

    async def _connect_to(self, origin: HttpOrigin, host: str, port: int, *, secure: bool) -> Connection:
        """Connect to the host that takes the requests to a server: itself, or a proxy that passes them on."""
        context = self._context() if secure else None
        connected = await dial(host, port)
        _, connection = await asyncio.get_running_loop().create_connection(
            partial(self._connection, origin), sock=connected, ssl=context, server_hostname=host if secure else None
        )
        return connection

    async def _connect_by_tunnel(self, origin: HttpOrigin, proxy: Proxy) -> Connection:
        """Connect to a server through a tunnel; the proxy sees its name and nothing else."""
        context, loop = self._context(), asyncio.get_running_loop()
        connected = await dial(proxy.host, proxy.port)
        with _trusting(proxy.place, "of the proxy "):
            outer, tunnel = await loop.create_connection(
                Tunnel,
                sock=connected,
                ssl=context if proxy.secure else None,
                server_hostname=proxy.host if proxy.secure else None,
            )
        connection = self._connection(origin)
        try:
            await tunnel.open(origin, proxy)
            connection.connection_made(outer)  # what arrives before the next line ends finds something to close
            inner = await _start_tls(outer, connection, context, origin.host)
        except BaseException:
            outer.abort()
            self._open.discard(connection)
            raise
        connection.connection_made(inner)
        return connection

    def _connection(self, origin: HttpOrigin) -> Connection:
        return Connection(origin.place, self._most_bytes, self._buffer, self._open)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:  # made when first needed: reading the certificates of the system takes a while
            try:
                self._tls = make_context(self._network)
            except BadConfiguration as error:
                raise Untrusted(f"{error.message}; nothing was sent", suggestions=error.suggestions) from error
        return self._tls

    def _check_open(self, origin: HttpOrigin) -> None:
        if self._closed:
            raise Unreachable(f"{origin.place}: the connections of this agent are closed")

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        old = loop.time() - self._keep
        for free in self._free.values():
            while free and free[0].idle_since <= old:
                free.popleft().abort()
        oldest = min((free[0].idle_since for free in self._free.values() if free), default=None)
        self._sweeper = None if oldest is None else loop.call_at(oldest + self._keep, self._sweep, loop)


async def _start_tls(
    outer: asyncio.Transport, connection: Connection, context: ssl.SSLContext, host: str
) -> asyncio.Transport:
    try:
        inner = await asyncio.get_running_loop().start_tls(outer, connection, context, server_hostname=host)
    except TypeError as error:
        # asyncio before 3.11.8 and 3.12.2 fails like this when a handshake inside of TLS has failed.
        if isinstance(error.__context__, OSError):
            raise error.__context__ from None
        raise
    if outer.is_closing():  # closed by ourselves: asyncio does not call that a failure
        raise ConnectionAbortedError("the connection was closed during the handshake")
    return cast(asyncio.Transport, inner)


@contextmanager
def _trusting(place: str, whose: str) -> Iterator[None]:
    """Return whose certificate is not valid."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise untrusted(place, error, whose) from error


def untrusted(place: str, error: ssl.SSLCertVerificationError, whose: str = "") -> Untrusted:
    """Return the error for a certificate that is not valid."""
    return Untrusted(
        f"{place}: the certificate {whose}is not valid: {error.verify_message}; nothing was sent",
        suggestions=("name the certificates to trust: SSL_CERT_FILE=/path/to/ca.pem", "check the base address"),
    )


PATIENCE = 0.25  # seconds until the next address is tried beside those before it

QUIET = 45  # seconds of silence before the system asks whether the other side is still there

Address = tuple[int, int, int, str, Any]  # as getaddrinfo gives them
Attempt = asyncio.Task[socket.socket]


async def dial(host: str, port: int) -> socket.socket:
    """Return a connected socket, or raise OSError; canceled, it leaves none behind."""
    return await reach(in_turn(await _resolve(host, port)))


def in_turn(addresses: list[Address]) -> list[Address]:
    """Alternate between IPv6 and IPv4, the family that the system prefers first: one of them may lead nowhere."""
    first = [address for address in addresses if address[0] == addresses[0][0]]
    second = [address for address in addresses if address[0] != addresses[0][0]]
    return [address for address in chain.from_iterable(zip_longest(first, second)) if address is not None]


async def reach(addresses: list[Address]) -> socket.socket:
    """Try addresses one beside the other and give the socket that is connected first."""
    if len(addresses) == 1:
        return await _connect(addresses[0])
    attempts: list[Attempt] = []
    winner: Attempt | None = None
    try:
        for address in addresses:
            attempts.append(asyncio.create_task(_connect(address)))
            if (winner := await _winner(attempts, PATIENCE)) is not None:
                return winner.result()
        while winner is None and not all(attempt.done() for attempt in attempts):
            winner = await _winner(attempts, None)
        return (winner or attempts[0]).result()  # when all failed, the error of the best address
    finally:
        for attempt in attempts:
            if attempt is not winner:
                attempt.cancel()
                attempt.add_done_callback(_discard)


async def _resolve(host: str, port: int) -> list[Address]:
    try:
        return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST))
    except socket.gaierror:  # a name: looking it up takes a thread, which numbers do not need
        return list(await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM))


async def _winner(attempts: list[Attempt], seconds: float | None) -> Attempt | None:
    open_ = [attempt for attempt in attempts if not attempt.done()]
    done, _ = await asyncio.wait(open_, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    return next((attempt for attempt in done if attempt.exception() is None), None)


async def _connect(address: Address) -> socket.socket:
    family, kind, protocol, _, where = address
    connecting = socket.socket(family, kind, protocol)
    try:
        connecting.setblocking(False)
        # A model may think for minutes without a byte: keep routers on the way from forgetting the connection.
        connecting.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, QUIET)
        await asyncio.get_running_loop().sock_connect(connecting, where)
    except BaseException:
        connecting.close()
        raise
    return connecting


def _discard(attempt: Attempt) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()

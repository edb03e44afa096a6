"""Finds a way to a host: resolves its name and tries its addresses, each a moment after the one before it.

The standard library can do this too (`happy_eyeballs_delay`), but loses a connected socket when it is canceled then.
"""

import asyncio
import socket
from itertools import chain, zip_longest
from typing import Any

PATIENCE = 0.25  # seconds until the next address is tried beside those before it

QUIET = 45  # seconds of silence before the system asks whether the other side is still there

Address = tuple[int, int, int, str, Any]  # as getaddrinfo gives them
Attempt = asyncio.Task[socket.socket]


async def dial(host: str, port: int) -> socket.socket:
    """Give a connected socket, or raise OSError; canceled, it leaves none behind."""
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

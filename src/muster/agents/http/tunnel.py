"""The CONNECT request: asks a proxy for a way to a server, before anything of a request can leave.

What a proxy refuses was never sent. Its words are not shown: they may quote the password that it was told.
"""

import asyncio
import re
from http import HTTPStatus
from typing import cast

from muster import __version__
from muster.agents.http.request import HttpOrigin
from muster.agents.http.response import MAX_HEAD_BYTES
from muster.domain.errors import AuthRefused, Unreachable, WireError
from muster.domain.network import Proxy

_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})\b")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_FORBIDDEN = (401, 403, 407)  # waiting does not help, and every other call would meet the same


class Tunnel(asyncio.Protocol):
    """One connection to a proxy until it leads to a server; then it is handed over to TLS."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._answered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def open(self, origin: HttpOrigin, proxy: Proxy) -> None:
        """Ask for the way to a server, or raise why there is none."""
        self._transport.write(connect_request(origin, proxy))
        way = f"{origin.place}: the proxy {proxy.place} ({proxy.variable})"
        if not await self._answered:
            raise Unreachable(f"{way} closed the connection before it led anywhere")
        status, end = _STATUS.match(self._head), _HEAD_END.search(self._head)
        if status is None or end is None:
            raise Unreachable(f"{way} did not answer in HTTP/1.1")
        if not 200 <= int(status[1]) < 300:
            raise refusal(origin, proxy, int(status[1]))
        if end.end() != len(self._head):
            raise Unreachable(f"{way} sent unexpected data")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Read until the head of the answer is there, or too long to be one."""
        self._head += data
        if _HEAD_END.search(self._head) or len(self._head) > MAX_HEAD_BYTES:
            self._answer(True)

    def connection_lost(self, exc: Exception | None) -> None:
        """Learn that the proxy is gone."""
        self._answer(False)

    def _answer(self, answered: bool) -> None:
        if not self._answered.done():
            self._answered.set_result(answered)


def connect_request(origin: HttpOrigin, proxy: Proxy) -> bytes:
    """Spell the request for a way to a server."""
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    lines = [
        f"CONNECT {host}:{origin.port} HTTP/1.1",
        f"host: {host}:{origin.port}",
        f"user-agent: muster/{__version__}",
        *([f"proxy-authorization: {proxy.authorization}"] if proxy.authorization else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def refusal(origin: HttpOrigin, proxy: Proxy, status: int) -> WireError:
    """Return the error for what a proxy answered instead of passing anything on."""
    known = {each.value: f" {each.phrase}" for each in HTTPStatus}
    message = (
        f"{origin.place}: the proxy {proxy.place} ({proxy.variable}) answered {status}{known.get(status, '')}; "
        "nothing was sent"
    )
    if status not in _FORBIDDEN:
        return Unreachable(message, status=status)
    return AuthRefused(message, status=status, suggestions=_remedies(origin, proxy, status))


def _remedies(origin: HttpOrigin, proxy: Proxy, status: int) -> tuple[str, ...]:
    if status == HTTPStatus.FORBIDDEN:
        allow = f"ask the administrator of the proxy to allow {origin.authority}"
        return (allow, f"or add {origin.host} to NO_PROXY, if it can be reached directly")
    if proxy.authorization:
        remedy = f"check the name and the password in {proxy.variable}; special characters are percent-encoded"
    else:
        where = proxy.place.partition("://")
        remedy = f"write a name and a password into {proxy.variable}: {where[0]}://NAME:PASSWORD@{where[2]}"
    return (remedy, "only Basic authentication is supported")

"""Connections: how many there may be, how long they may take, and that none is held open by bytes that trickle."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from muster.api.callers import read_networks
from muster.api.errors import RequestRefused
from muster.api.guards import StreamPlaces
from muster.api.server import MAX_PIPELINED, ConnectionLimits, OpenConnections, listen, make_server

LIMITS = ConnectionLimits(header_secs=60, idle_secs=60, linger_secs=0.05, stall_secs=60)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def early(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer before the body was read, as 401 and 413 are."""
    await PlainTextResponse("no", status_code=401)(scope, receive, send)


class Opener:
    """Opens connections to a server and closes them with it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self, data: bytes = b"") -> Connection:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers.append(writer)
        writer.write(data)
        return reader, writer

    def close(self) -> None:
        for writer in self._writers:
            writer.close()


@asynccontextmanager
async def serving(app: ASGIApp = early, limits: ConnectionLimits = LIMITS) -> AsyncIterator[Opener]:
    """Serve an application in this process."""
    begun = asyncio.Event()
    listener = listen("127.0.0.1", 0)
    server = make_server(app, begun.set, limits)
    task = asyncio.ensure_future(server.serve(sockets=[listener]))
    await begun.wait()
    opener = Opener(listener.getsockname()[1])
    try:
        yield opener
    finally:
        opener.close()
        server.stop()
        await task
        listener.close()


async def trickle(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Send a few bytes again and again."""
    with suppress(ConnectionError):
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)


async def status_of(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    await reader.readexactly(length)
    return int(head.split()[1])


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (POST + b"Content-Length: 1000000\r\n\r\n", b"x"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
)
async def test_bytes_that_trickle_after_an_early_answer_hold_no_connection(head: bytes, piece: bytes) -> None:
    async with serving() as opener:
        reader, writer = await opener.connect(head)
        trickling = asyncio.ensure_future(trickle(writer, piece))
        assert await status_of(reader) == 401
        with suppress(ConnectionError):
            assert await reader.read() == b""
        trickling.cancel()


async def test_a_body_that_is_complete_soon_leaves_the_connection_open() -> None:
    async with serving(limits=replace(LIMITS, linger_secs=60)) as opener:
        reader, writer = await opener.connect(POST + b"Content-Length: 3\r\n\r\nx")
        assert await status_of(reader) == 401
        writer.write(b"yz" + GET)
        assert await status_of(reader) == 401


async def test_empty_lines_between_requests_do_not_keep_a_connection_open() -> None:
    async with serving(limits=replace(LIMITS, idle_secs=0.05)) as opener:
        reader, writer = await opener.connect(GET)
        assert await status_of(reader) == 401
        trickling = asyncio.ensure_future(trickle(writer, b"\r\n"))
        with suppress(ConnectionError):
            assert await reader.read() == b""
        trickling.cancel()


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"\r\n", GET + b"GET / HT"])
async def test_headers_that_do_not_come_hold_no_connection(sent: bytes) -> None:
    async with serving(limits=replace(LIMITS, header_secs=0.05)) as opener:
        reader, _ = await opener.connect(sent)
        assert (await reader.read()).startswith(b"HTTP/1.1 401" if GET in sent else b"")


async def test_connections_of_one_address_are_bounded_and_more_are_told_when_to_come_again() -> None:
    async with serving(limits=replace(LIMITS, per_client=2)) as opener:
        kept = [await opener.connect(GET) for _ in range(2)]
        for reader, _ in kept:
            assert await status_of(reader) == 401
        reader, _ = await opener.connect(GET)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 429")
        assert b"retry-after: 5" in head
        assert json.loads(body)["error"]["code"] == "limit"
        silent, _ = await opener.connect()
        assert await silent.read() == b""  # one that says nothing is not waited for
        kept[0][1].write(GET)
        assert await status_of(kept[0][0]) == 401


async def test_connections_of_all_are_bounded() -> None:
    async with serving(limits=replace(LIMITS, connections=1, linger_secs=60)) as opener:
        kept, _ = await opener.connect(GET)
        assert await status_of(kept) == 401
        reader, _ = await opener.connect(GET)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 5" in head


def test_a_place_is_free_again_when_its_connection_is_closed_and_proxies_have_as_many_as_there_are() -> None:
    limits = ConnectionLimits(connections=3, per_client=1, proxies=read_networks(["10.0.0.0/8"]))
    opened = OpenConnections(limits)
    assert opened.open("192.0.2.1") is None
    refused = opened.open("192.0.2.1")
    assert refused is not None
    assert refused.status == 429
    opened.close("192.0.2.1", refused)
    opened.close("192.0.2.1", None)
    assert opened.open("192.0.2.1") is None
    assert [opened.open("10.0.0.1") for _ in range(2)] == [None, None]
    full = opened.open("10.0.0.1")
    assert full is not None
    assert full.status == 503


def test_streams_of_one_client_are_bounded() -> None:
    places = StreamPlaces(1)
    with places.taken("a"), places.taken("b"):
        with pytest.raises(RequestRefused) as refused, places.taken("a"):
            pass
        assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "5")
    with places.taken("a"):
        pass


async def test_requests_that_wait_on_one_connection_are_bounded() -> None:
    go = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await go.wait()
        await PlainTextResponse("done")(scope, receive, send)

    async with serving(slow) as opener:
        reader, _ = await opener.connect(GET * (MAX_PIPELINED + 2))
        with suppress(ConnectionError):
            assert await reader.read() == b""
        go.set()


CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"


async def test_trailers_are_not_headers() -> None:
    seen: list[bytes] = []

    async def headers(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend(name for name, _ in scope["headers"])
        await PlainTextResponse("seen")(scope, receive, send)

    async with serving(headers) as opener:
        reader, _ = await opener.connect(CHUNKED + b"Authorization: Bearer x\r\n\r\n")
        await reader.readuntil(b"seen")
    assert seen == [b"host", b"transfer-encoding"]


async def test_trailers_without_an_end_are_refused() -> None:
    async def patient(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass

    async with serving(patient) as opener:
        reader, writer = await opener.connect(CHUNKED + b"X-A: ")
        sending = asyncio.ensure_future(trickle(writer, b"a" * 20_000))
        assert await status_of(reader) == 431
        sending.cancel()


async def test_garbage_after_a_request_is_not_answered_inside_of_its_response() -> None:
    go, begun = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"part", "more_body": True})
        begun.set()
        await go.wait()

    async with serving(slow) as opener:
        reader, writer = await opener.connect(GET)
        await begun.wait()
        writer.write(b"\x00garbage\r\n\r\n")
        said = b""
        with suppress(ConnectionError):
            while piece := await reader.read(65_536):
                said += piece
        assert b" 400 " not in said
        go.set()


@pytest.mark.parametrize(
    "request_",
    [
        b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: +5\r\n\r\nhello",
        POST + b"Content-Length: 5 \x0b\r\n\r\nhello",
        POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\nHost: x\n\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b\rX-B: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-A: \x00\r\n\r\n",
        b"GET /\x80 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: x\r\n\r\n",
        b"GET / HTTP/0.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_what_two_servers_could_read_in_two_ways_is_not_answered(request_: bytes) -> None:
    seen: list[Any] = []

    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        while message.get("more_body"):
            message = await receive()
        if message["type"] == "http.disconnect":
            return
        seen.append((scope["method"], scope["path"]))
        await PlainTextResponse("seen")(scope, receive, send)

    async with serving(reading) as opener:
        reader, _ = await opener.connect(request_)
        answer = b""
        with suppress(ConnectionError):
            answer = await reader.read()
        assert (answer[:12], seen) == (b"HTTP/1.1 400", [])


async def test_what_is_written_in_pieces_does_not_wait_for_acknowledgements() -> None:
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def look(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = writer.get_extra_info("socket")
        accepted.set_result(found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listener = listen("127.0.0.1", 0)
    async with await asyncio.start_server(look, sock=listener):
        _, writer = await asyncio.open_connection(*listener.getsockname())
        assert await accepted == 1
        writer.close()

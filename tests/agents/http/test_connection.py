"""The life of connections, over real sockets: kept, taken again, given up; and nothing is ever sent twice."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from muster.agents.http.client import HttpClient
from muster.agents.http.connection import MAX_UNREAD_BYTES
from muster.domain.agent import Timeouts
from muster.domain.errors import OutcomeUnknown, Unreachable

if TYPE_CHECKING:
    from tests.agents.conftest import Host

SOON = Timeouts(connect=60.0, idle=60.0, call=60.0)
HEADERS = {"content-type": "application/json"}
EVIL = b"HTTP/1.1 200 X\r\ncontent-length: 4\r\n\r\nevil"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(serve: Serve, host: str = "127.0.0.1") -> AsyncIterator[int]:
    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except ConnectionError:
            pass  # the client is gone
        finally:
            writer.close()

    server = await asyncio.start_server(session, host, 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - the server runs in this very loop and needs its turn
            await asyncio.sleep(0.001)


async def test_a_hundred_calls_at_once_get_their_own_answers(http: HttpClient) -> None:
    connections = 0

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while head := await reader.readuntil(b"\r\n\r\n"):
            body = await reader.readexactly(int(head.rpartition(b"content-length: ")[2]))
            await asyncio.sleep(0.01)
            writer.write(b"HTTP/1.1 200 X\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            await echo(reader, writer)

    async with serving(session) as port:
        for _ in range(3):
            posts = (http.post(f"http://127.0.0.1:{port}", HEADERS, b"%d" % n, SOON) for n in range(100))
            assert [answer.body for answer in await asyncio.gather(*posts)] == [b"%d" % n for n in range(100)]
        await http.close()
    assert connections == 100, "one for each place, and all of them are used again"


async def test_the_newest_connection_is_used_first(host: Host) -> None:
    http = HttpClient(keep=600.0)
    host.play(host.answer(b"x"))
    await asyncio.gather(*(http.post(host.url, HEADERS, b"", SOON) for _ in range(3)))
    free = http._connections._free[host.url]
    before = [(connection, connection.idle_since) for connection in free]
    for _ in range(8):
        await http.post(host.url, HEADERS, b"", SOON)
    assert host.connections == 3
    assert [(connection, connection.idle_since) for connection in free][:2] == before[:2]
    assert (free[-1], free[-1].idle_since > before[-1][1]) == (before[-1][0], True)
    await http.close()


async def test_connections_that_lie_idle_are_dropped_in_time(host: Host) -> None:
    http = HttpClient(keep=0.5)
    host.play(host.answer(b"x"))
    await asyncio.gather(*(http.post(host.url, HEADERS, b"", SOON) for _ in range(3)))
    assert host.connections == 3
    async with asyncio.timeout(60):
        while len(http._connections._open) > 1:
            await http.post(host.url, HEADERS, b"", SOON)
    opened = host.connections
    await until(lambda: not http._connections._open)
    await http.post(host.url, HEADERS, b"", SOON)
    assert host.connections == opened + 1
    await http.close()


async def test_an_idle_connection_that_the_server_closed_is_not_used(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"a"), host.hangs_up)
    host.play(host.answer(b"b"))
    assert (await http.post(host.url, HEADERS, b"", SOON)).body == b"a"
    await until(lambda: not http._connections._open)
    assert (await http.post(host.url, HEADERS, b"", SOON)).body == b"b"
    assert host.connections == 2


def answer_and_close(listener: socket.socket, times: int, closed: threading.Event) -> None:
    for _ in range(times):
        client, _ = listener.accept()
        with client:
            client.recv(65_536)
            client.sendall(b"HTTP/1.1 200 X\r\ncontent-length: 1\r\n\r\nx")
        closed.set()


async def test_a_connection_that_was_closed_while_this_process_slept_is_not_used(http: HttpClient) -> None:
    closed = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answer_and_close, args=(listener, 2, closed))
        server.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert (await http.post(url, HEADERS, b"", SOON)).body == b"x"
        assert closed.wait(60)  # without a turn of the loop, which must not notice
        assert (await http.post(url, HEADERS, b"", SOON)).body == b"x"
        server.join()


@pytest.mark.parametrize("apart", [False, True])
async def test_what_a_server_says_unasked_never_becomes_an_answer(host: Host, http: HttpClient, apart: bool) -> None:
    true = host.answer(b"good")
    host.play(*((true, EVIL) if apart else (true + EVIL,)))
    host.play(true)
    for turns in range(20):
        assert (await http.post(host.url, HEADERS, b"", SOON)).body == b"good"
        await asyncio.sleep(0.02 if turns == 0 else 0)
    assert host.connections == 2


async def test_what_is_said_before_anything_was_asked_never_becomes_an_answer(host: Host, http: HttpClient) -> None:
    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example\r\n")

    async with serving(speak) as port:
        with pytest.raises((OutcomeUnknown, Unreachable)):
            await http.post(f"http://127.0.0.1:{port}", HEADERS, b"", SOON)


@pytest.mark.parametrize("reset", [False, True])
async def test_a_connection_that_dies_as_we_send_is_not_tried_again(http: HttpClient, reset: bool) -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 X\r\ncontent-length: 1\r\n\r\nx")
        heads.append(await reader.readexactly(1))
        if reset:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async with serving(serve) as port:
        url = f"http://127.0.0.1:{port}"
        await http.post(url, HEADERS, b"", SOON)
        with pytest.raises(OutcomeUnknown, match="connection broke"):
            await http.post(url, HEADERS, b"x" * 10_000_000, SOON)
        await asyncio.sleep(0.02)
    assert len(heads) == 2


async def test_an_answer_that_overtakes_its_request_ends_the_connection(http: HttpClient) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 X\r\ncontent-length: 0\r\n\r\n")
        await over.wait()

    over = asyncio.Event()
    async with serving(refuse) as port:
        assert (await http.post(f"http://127.0.0.1:{port}", HEADERS, b"x" * 50_000_000, SOON)).status == 413
        assert not http._connections._free[f"http://127.0.0.1:{port}"]
        over.set()


async def test_large_bodies_go_out_whole(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"y" * 20_000_000))
    body = bytes(range(256)) * 50_000
    assert (await http.post(host.url, HEADERS, body, SOON)).body == b"y" * 20_000_000
    assert host.seen[0].body == body


async def test_the_loopback_of_ipv6_is_reached(http: HttpClient) -> None:
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 X\r\ncontent-length: 1\r\n\r\nx")

    async with serving(serve, "::1") as port:
        assert (await http.post(f"http://[::1]:{port}/v1", HEADERS, b"", SOON)).body == b"x"
    assert b"\r\nhost: [::1]:%d\r\n" % port in seen[0]


async def test_a_body_that_trickles_is_given_up_when_the_time_of_the_call_is_over(host: Host, http: HttpClient) -> None:
    async def trickle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 X\r\ncontent-length: 1000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    brief = replace(SOON, call=1.0)
    async with serving(trickle) as port:
        url = f"http://127.0.0.1:{port}"
        with pytest.raises(OutcomeUnknown, match=r"no whole answer within 1 s"):
            await http.post(url, HEADERS, b"", brief)
        with pytest.raises(OutcomeUnknown, match=r"no whole answer within 1 s"):
            async with http.stream(url, HEADERS, b"", brief) as flow:
                await flow.body()


async def test_a_stream_whose_head_never_comes_is_given_up_after_the_idle_time(host: Host, http: HttpClient) -> None:
    host.play(host.hangs)
    with pytest.raises(OutcomeUnknown, match=r"nothing arrived for 0\.05 s"):
        async with http.stream(host.url, HEADERS, b"", replace(SOON, idle=0.05)):
            pass
    await host.left.wait()


async def test_what_arrived_before_a_stream_broke_is_handed_over_first(host: Host, http: HttpClient) -> None:
    host.play_events([b"data: x\n\n"], host.hangs_up)
    async with http.stream(host.url, HEADERS, b"", SOON) as flow:
        await asyncio.sleep(0.05)
        assert await anext(flow.chunks) == b"data: x\n\n"
        with pytest.raises(OutcomeUnknown):
            await anext(flow.chunks)
        with pytest.raises(OutcomeUnknown):
            await anext(flow.chunks)


async def test_a_stream_that_was_left_gives_nothing_of_the_next(host: Host, http: HttpClient) -> None:
    host.play_events([b"data: x\n\n"])
    async with http.stream(host.url, HEADERS, b"", SOON) as left:
        await left.body()
    async with http.stream(host.url, HEADERS, b"", SOON) as flow:
        with pytest.raises(RuntimeError, match="over"):
            await left.body()
        assert await flow.body() == b"data: x\n\n"
    assert host.connections == 1


async def test_a_reader_that_is_slow_holds_the_server_back(http: HttpClient) -> None:
    sent, piece, pieces = 0, b"x" * 65_536, 800

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 X\r\ncontent-length: %d\r\n\r\n" % (len(piece) * pieces))
        for _ in range(pieces):
            writer.write(piece)
            await writer.drain()
            sent += len(piece)

    async with serving(flood) as port, http.stream(f"http://127.0.0.1:{port}", HEADERS, b"", SOON) as flow:
        before, turns = -1, 0
        while turns < 100:  # the server runs in this very loop, so turns of it are counted, not time
            before, turns = sent, turns + 1 if sent == before else 0
            await asyncio.sleep(0.001)
        assert sent < len(piece) * pieces, "the rest waits at the server"
        first = await anext(flow.chunks)
        assert len(first) < MAX_UNREAD_BYTES + 2 * 65_536
        assert len(first) + len(await flow.body()) == len(piece) * pieces


async def test_canceling_while_connecting_leaves_nothing_behind(http: HttpClient) -> None:
    reached, left = asyncio.Event(), asyncio.Event()

    async def stall(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read(1)
        reached.set()
        while await reader.read(65_536):
            pass
        left.set()

    async with serving(stall) as port:
        call = asyncio.create_task(http.post(f"https://127.0.0.1:{port}", HEADERS, b"", Timeouts()))
        await reached.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await left.wait()
    assert not http._connections._open


async def test_canceling_while_reading_closes_the_connection(host: Host, http: HttpClient) -> None:
    async def read() -> None:
        async with http.stream(host.url, HEADERS, b"", Timeouts()) as flow:
            assert await anext(flow.chunks) == b"data: x\n\n"
            started.set()
            await anext(flow.chunks)

    started = asyncio.Event()
    host.play_events([b"data: x\n\n"], host.hangs)
    call = asyncio.create_task(read())
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await host.left.wait()


async def test_canceling_at_any_instant_harms_nobody_else(host: Host) -> None:
    host.play(host.answer(b"x" * 10))
    for turns in range(60):
        http = HttpClient()
        if turns % 2:
            await http.post(host.url, HEADERS, b"", SOON)
        doomed = asyncio.create_task(http.post(host.url, HEADERS, b"", SOON))
        for _ in range(turns // 2):
            await asyncio.sleep(0)
        other = asyncio.create_task(http.post(host.url, HEADERS, b"", SOON))
        doomed.cancel()
        assert (await other).body == b"x" * 10
        await asyncio.gather(doomed, return_exceptions=True)
        await http.close()
        assert not http._connections._open
    gc.collect()


async def test_closing_ends_the_calls_under_way(host: Host, http: HttpClient) -> None:
    host.play(host.hangs)
    call = asyncio.create_task(http.post(host.url, HEADERS, b"", Timeouts()))
    await host.reached.wait()
    await http.close()
    with pytest.raises(OutcomeUnknown, match="closed"):
        await call
    await host.left.wait()
    assert not http._connections._open


async def test_a_call_that_was_connecting_when_all_was_closed_sends_nothing(host: Host, http: HttpClient) -> None:
    call = asyncio.create_task(http.post(host.url, HEADERS, b"", Timeouts()))
    await asyncio.sleep(0)
    await http.close()
    with pytest.raises(Unreachable, match="closed"):
        await call
    await asyncio.sleep(0.02)
    assert host.seen == []


async def test_time_to_connect_counts_as_time_of_the_call(host: Host, http: HttpClient) -> None:
    with pytest.raises(Unreachable, match=r"no connection within 0\.05 s"):
        await http.post(host.url.replace("http:", "https:"), HEADERS, b"", replace(SOON, call=0.05))


async def test_a_host_without_an_address_was_never_reached(http: HttpClient) -> None:
    with pytest.raises(Unreachable, match="cannot connect"):
        await http.post("http://no-such-host.invalid", HEADERS, b"", SOON)

"""The connection: keep-alive, pipelining, chunked bodies, limits, clients that go away."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from muster.sim.http import Handler, HttpRequest, SimConnection
from muster.sim.options import Options
from muster.sim.playback import SOON, Part, Playback
from muster.sim.server import serve

from .wire import Line, ask, dial, message, one_fault, spell

PIECE = b"x" * 64 * 1024


async def test_one_connection_serves_many_requests() -> None:
    async with serve() as server, dial(server) as line:
        texts = [(await line.ask(message(f"m{n}"))).json()["content"][0]["text"] for n in range(5)]
    assert texts == ["m0", "m1", "m2", "m3", "m4"]


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with serve(Options(latency_ms=1)) as server, dial(server) as line:
        for n in range(200):
            line.send(message(f"m{n}"))
        texts = [(await line.answer()).json()["content"][0]["text"] for _ in range(200)]
    assert texts == [f"m{n}" for n in range(200)]
    assert server.audit.max_in_flight == 1


async def test_a_client_that_does_not_read_is_not_read_either() -> None:
    text = "x" * 100_000
    async with serve() as server, dial(server) as line:
        for _ in range(100):
            line.send(message(text, max_tokens=100_000))
        answers = [await line.answer() for _ in range(100)]
    assert {answer.json()["content"][0]["text"] for answer in answers} == {text}


async def test_a_connection_is_closed_when_the_client_wants_it_so() -> None:
    async with serve() as server, dial(server) as line:
        assert (await line.ask(message(), connection="close")).status == 200
        assert await line.reader.read() == b""


async def test_a_body_may_come_in_chunks() -> None:
    data = json.dumps(message("in chunks")).encode()
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (data[:7], data[7:]))
    async with serve() as server, dial(server) as line:
        head = spell(b"", content_length="", transfer_encoding="chunked")
        line.writer.write(head + chunks + b"0\r\n\r\n")
        answer = await line.answer()
    assert answer.json()["content"][0]["text"] == "in chunks"


async def test_a_request_may_come_byte_by_byte() -> None:
    async with serve() as server, dial(server) as line:
        for byte in spell(json.dumps(message("slowly")).encode(), "/anthropic/v1/messages?beta=true"):
            line.writer.write(bytes([byte]))
            await line.writer.drain()
        answer = await line.answer()
    assert answer.json()["content"][0]["text"] == "slowly"


async def test_a_body_that_is_too_large_is_refused_and_the_connection_goes_on() -> None:
    async with serve(Options(max_body_bytes=1000)) as server, dial(server) as line:
        refused = await line.ask(message("x" * 300_000))
        taken = await line.ask(message("small"))
    assert (refused.status, refused.json()["error"]["type"]) == (413, "request_too_large")
    assert taken.status == 200


async def test_what_is_not_http_is_refused_and_closed() -> None:
    async with serve() as server, dial(server) as line:
        line.writer.write(b"hello there\r\n\r\n")
        assert (await line.answer()).status == 400
        assert await line.reader.read() == b""


async def test_a_knock_has_no_body() -> None:
    async with serve() as server, dial(server) as line:
        line.writer.write(spell(b"", "/anthropic", "HEAD"))
        assert await line.head() == (200, {"content-type": "application/json", "content-length": "0"})
        assert (await line.ask(message())).status == 200


async def test_a_client_that_goes_away_gives_back_its_place() -> None:
    async with serve(Options(capacity=1, latency_ms=60_000)) as server:
        async with dial(server) as line:
            line.send(message())
            while server.audit.max_in_flight == 0:
                await ask(server, b"", "/anthropic/other")
            assert (await ask(server, message("second"))).status == 429
        server.play(one_fault("429", retry_after=7))
        while (await ask(server, message("third"))).headers.get("retry-after") != "7":
            pass  # refused by the plan of faults, no longer for want of a place
    assert server.audit.calls == 1


async def test_latency_is_kept_and_requests_wait_side_by_side() -> None:
    loop = asyncio.get_running_loop()
    async with serve(Options(latency_ms=500)) as server:
        start = loop.time()
        await asyncio.gather(*(ask(server, message(f"m{n}")) for n in range(20)))
        took = loop.time() - start
    assert took >= 0.5
    assert server.audit.max_in_flight > 1


@asynccontextmanager
async def connected(handler: Handler) -> AsyncIterator[Line]:
    connections: set[SimConnection] = set()
    listener = await asyncio.get_running_loop().create_server(
        lambda: SimConnection(handler, 1000, connections), "127.0.0.1", 0
    )
    async with listener:
        reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
        yield Line(reader, writer)
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def test_a_defect_is_told_to_the_client_and_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def defective(request: HttpRequest) -> Playback:
        raise ZeroDivisionError

    async with connected(defective) as line:
        assert (await line.ask(message())).status == 500
    assert "ZeroDivisionError" in caplog.text


async def test_a_defect_in_the_middle_of_an_answer_cuts_it(caplog: pytest.LogCaptureFixture) -> None:
    def parts() -> Iterator[Part]:
        yield 0.0, b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"
        raise ZeroDivisionError

    async with connected(lambda request: Playback(parts=parts())) as line:
        line.send(message())
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await line.answer()
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("wait", [0.0, SOON])
@pytest.mark.parametrize("connection", ["close", "keep-alive"])
async def test_a_large_answer_is_made_no_faster_than_it_is_read(
    wait: float, connection: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = []

    def parts() -> Iterator[Part]:
        yield 0.0, b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (1000 * len(PIECE))
        for number in range(1000):
            made.append(number)
            yield wait, PIECE

    async with connected(lambda request: Playback(parts=parts())) as line:
        line.send(message(), connection=connection)
        await line.head()
        for _ in range(1000):
            await asyncio.sleep(0)
        assert len(made) < 500
        assert await line.reader.readexactly(1000 * len(PIECE)) == 1000 * PIECE
        if connection == "close":
            assert await line.reader.read() == b""
        else:
            line.send(message())
            assert (await line.head())[0] == 200
    assert caplog.text == ""


async def test_a_server_may_be_closed_twice_while_clients_hang() -> None:
    async with serve(Options(faults=one_fault("timeout"))) as server, dial(server) as line:
        line.send(message())
        await ask(server, b"", "/anthropic/other")
        await server.close()
        assert await line.reader.read() == b""

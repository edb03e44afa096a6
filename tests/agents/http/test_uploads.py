"""What batches need of HTTP, over real sockets: asking, fetching files of any length, sending bodies in pieces."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from muster.agents.http.client import HttpClient, RequestBody
from muster.agents.http.connection import MAX_UNREAD_BYTES
from muster.domain.agent import Timeouts
from muster.domain.errors import BadConfiguration, OutcomeUnknown, Unreachable

if TYPE_CHECKING:
    from tests.agents.conftest import Host

SOON = Timeouts(connect=60.0, idle=60.0, call=60.0)
STALLED = replace(SOON, idle=0.2)
HEADERS = {"x-api-key": "k"}
PIECE = b"x" * 65_536
REFUSAL = b"HTTP/1.1 413 X\r\ncontent-length: 9\r\n\r\ntoo large"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[str]:
    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client is gone
        finally:
            writer.close()

    server = await asyncio.start_server(session, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


class Pieces:
    """Gives pieces and counts them."""

    def __init__(self, count: int, piece: bytes = PIECE) -> None:
        self.count, self.piece, self.given, self.closed = count, piece, 0, False

    async def all(self) -> AsyncIterator[bytes]:
        try:
            for _ in range(self.count):
                self.given += 1
                yield self.piece
        finally:
            self.closed = True

    def body(self, more: int = 0) -> RequestBody:
        return RequestBody(self.count * len(self.piece) + more, self.all())


async def settle(count: Callable[[], int]) -> int:
    """Wait until a count no longer grows: the server runs in this very loop, so turns of it are counted, not time."""
    before, turns = -1, 0
    while turns < 100:
        before, turns = count(), turns + 1 if count() == before else 0
        await asyncio.sleep(0.001)
    return before


# Asking.


async def test_a_question_has_no_body_and_no_length(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"hello", x="y"))
    answer = await http.get(f"{host.url}/v1/x?limit=3", HEADERS, SOON)
    assert (answer.status, answer.body, answer.headers["X"]) == (200, b"hello", "y")
    [seen] = host.seen
    assert (seen.method, seen.path, seen.headers["x-api-key"]) == ("GET", "/v1/x?limit=3", "k")
    assert "content-length" not in seen.headers


async def test_questions_and_posts_share_connections(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"hello"))
    await http.get(host.url, HEADERS, SOON)
    await http.post(host.url, HEADERS, b"{}", SOON)
    await http.get(host.url, HEADERS, SOON)
    assert ([seen.method for seen in host.seen], host.connections) == (["GET", "POST", "GET"], 1)


async def test_a_question_is_not_asked_twice_and_no_redirect_is_followed(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"", 302, location=f"{host.url}/other"))
    assert (await http.get(host.url, HEADERS, SOON)).status == 302
    host.play(host.hangs_up)
    with pytest.raises(OutcomeUnknown):
        await http.get(host.url, HEADERS, SOON)
    assert len(host.seen) == 2


async def test_a_question_nobody_answers_is_given_up(host: Host, http: HttpClient) -> None:
    await host.connect(http)
    host.play(host.hangs)
    with pytest.raises(OutcomeUnknown, match=r"within 0\.1 s"):
        await http.get(host.url, HEADERS, Timeouts(call=0.1))
    await host.left.wait()


# Fetching.


async def test_a_file_has_no_limit_and_comes_no_faster_than_it_is_read() -> None:
    sent, pieces = 0, 400

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 X\r\ncontent-length: %d\r\n\r\n" % (len(PIECE) * pieces))
        for _ in range(pieces):
            writer.write(PIECE)
            await writer.drain()
            sent += len(PIECE)

    http = HttpClient(most_bytes=1000)
    async with serving(flood) as url, http.fetch(url, HEADERS, SOON) as flow:
        assert await settle(lambda: sent) < len(PIECE) * pieces, "the rest waits at the server"
        largest = total = 0
        async for chunk in flow.chunks:
            largest, total = max(largest, len(chunk)), total + len(chunk)
    assert total == len(PIECE) * pieces
    assert largest < MAX_UNREAD_BYTES + 2 * 65_536
    await http.close()


async def test_a_file_read_to_its_end_keeps_its_connection_and_the_next_answer_has_a_limit_again(host: Host) -> None:
    http = HttpClient(most_bytes=10)
    host.play_lines(b"x" * 100)
    async with http.fetch(host.url, HEADERS, SOON) as flow:
        assert await flow.body() == b"x" * 100
    host.play(host.answer(b"x" * 11))
    with pytest.raises(OutcomeUnknown, match="longer than 10 bytes"):
        await http.get(host.url, HEADERS, SOON)
    assert host.connections == 1
    await http.close()


async def test_reading_may_take_longer_than_the_time_of_the_call(host: Host, http: HttpClient) -> None:
    host.play_lines(b"x" * 100)
    async with http.fetch(host.url, HEADERS, replace(SOON, call=4.0)) as flow:
        await asyncio.sleep(4.5)  # a reader that has much to do with every line
        assert await flow.body() == b"x" * 100


async def test_the_head_of_a_file_must_come_within_the_time_of_the_call(host: Host, http: HttpClient) -> None:
    await host.connect(http)
    host.play(host.hangs)
    with pytest.raises(OutcomeUnknown, match=r"within 0\.05 s"):
        async with http.fetch(host.url, HEADERS, replace(SOON, call=0.05)):
            pass
    await host.left.wait()


async def test_a_file_that_stalls_is_given_up_after_the_idle_time(host: Host, http: HttpClient) -> None:
    host.play_lines(b"x", host.hangs)
    with pytest.raises(OutcomeUnknown, match=r"nothing arrived for 0\.2 s"):
        async with http.fetch(host.url, HEADERS, STALLED) as flow:
            await flow.body()
    await host.left.wait()


async def test_a_file_that_is_cut_is_never_taken_for_whole(host: Host, http: HttpClient) -> None:
    host.play_lines(b"x", host.hangs_up)
    async with http.fetch(host.url, HEADERS, SOON) as flow:
        assert await anext(flow.chunks) == b"x"
        with pytest.raises(OutcomeUnknown):
            await anext(flow.chunks)


async def test_a_file_left_early_closes_its_connection(host: Host, http: HttpClient) -> None:
    host.play_lines(b"x", host.hangs)
    async with http.fetch(host.url, HEADERS, SOON) as flow:
        assert await flow.beginning(1) == b"x"
    await host.left.wait()


async def test_the_beginning_of_a_body_may_be_all_of_it(host: Host, http: HttpClient) -> None:
    host.play_lines(b"abc")
    host.play_lines(b"")
    for most, expected in ((2, b"ab"), (5, b"")):
        async with http.fetch(host.url, HEADERS, SOON) as flow:
            assert await flow.beginning(most) == expected


# Sending in pieces.


async def test_pieces_arrive_as_one_body_between_what_goes_before_and_after(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"taken", 201))
    pieces = Pieces(40)
    body = pieces.body()._replace(before=b"<", after=b">")
    answer = await http.upload(f"{host.url}/files", HEADERS, body, SOON)
    assert (answer.status, answer.body) == (201, b"taken")
    [seen] = host.seen
    assert (seen.method, seen.path, seen.body) == ("POST", "/files", b"<" + PIECE * 40 + b">")
    assert pieces.closed


@pytest.mark.parametrize("count", [0, 1])
async def test_small_bodies_go_out_as_well(host: Host, http: HttpClient, count: int) -> None:
    host.play(host.answer(b"taken"))
    await http.upload(host.url, HEADERS, Pieces(count, b"abc").body(), SOON)
    assert host.seen[0].body == b"abc" * count


async def test_a_large_answer_to_a_large_body_comes_whole(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"y" * 5_000_000))
    assert len((await http.upload(host.url, HEADERS, Pieces(40).body(), SOON)).body) == 5_000_000


async def test_pieces_are_asked_for_only_as_the_server_takes_them(http: HttpClient) -> None:
    go = asyncio.Event()
    size = 400 * len(PIECE)

    async def lazy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await go.wait()
        await reader.readexactly(size)
        writer.write(b"HTTP/1.1 200 X\r\ncontent-length: 2\r\n\r\nok")

    pieces = Pieces(400)
    async with serving(lazy) as url:
        call = asyncio.create_task(http.upload(url, HEADERS, pieces.body(), Timeouts()))
        assert await settle(lambda: pieces.given) < 200, "the rest was not even asked for"
        go.set()
        assert (await call).body == b"ok"
    assert pieces.given == 400


@pytest.mark.parametrize("closes", [False, True])
async def test_an_answer_that_comes_early_is_the_answer(http: HttpClient, closes: bool) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(REFUSAL)
        if not closes:
            await reader.read()

    pieces = Pieces(4000)
    async with serving(refuse) as url:
        answer = await http.upload(url, HEADERS, pieces.body(), SOON)
    assert (answer.status, answer.body) == (413, b"too large")
    assert pieces.given < 4000
    assert pieces.closed
    assert not http._connections._open or not http._connections._free, "nothing more is sent on this connection"


async def test_an_answer_that_comes_while_we_wait_for_a_piece_survives_a_server_that_is_gone(http: HttpClient) -> None:
    answered = asyncio.Event()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(PIECE))
        writer.write(REFUSAL)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 5))
        writer.close()
        await writer.wait_closed()
        answered.set()

    async def pieces() -> AsyncIterator[bytes]:
        yield PIECE
        await answered.wait()
        yield PIECE
        yield PIECE

    async with serving(refuse) as url:
        assert (await http.upload(url, HEADERS, RequestBody(3 * len(PIECE), pieces()), SOON)).status == 413


@pytest.mark.parametrize("reset", [False, True])
async def test_a_connection_cut_in_the_middle_leaves_the_outcome_unknown(http: HttpClient, reset: bool) -> None:
    heads = 0

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heads
        await reader.readuntil(b"\r\n\r\n")
        heads += 1
        await reader.readexactly(100_000)
        if reset:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    pieces = Pieces(4000)
    async with serving(cut) as url:
        with pytest.raises(OutcomeUnknown, match="connection broke"):
            await http.upload(url, HEADERS, pieces.body(), SOON)
    assert (heads, pieces.closed) == (1, True)
    assert pieces.given < 4000


async def test_a_connection_cut_after_the_last_piece_leaves_the_outcome_unknown(host: Host, http: HttpClient) -> None:
    with pytest.raises(OutcomeUnknown, match="connection broke"):
        await http.upload(host.url, HEADERS, Pieces(3).body(), SOON)
    assert len(host.seen) == 1


async def test_a_server_that_takes_nothing_more_is_given_up_after_the_idle_time(http: HttpClient) -> None:
    left = asyncio.Event()

    async def stall(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await left.wait()

    async with serving(stall) as url:
        with pytest.raises(OutcomeUnknown, match=r"the server took nothing for 0\.2 s"):
            await http.upload(url, HEADERS, Pieces(4000).body(), STALLED)
        left.set()
    assert not http._connections._open


async def test_the_time_of_the_call_begins_when_the_body_is_out(host: Host, http: HttpClient) -> None:
    async def slowly() -> AsyncIterator[bytes]:
        for _ in range(3):
            await asyncio.sleep(1.5)
            yield b"x"

    host.play(host.answer(b"taken"))
    limited = replace(SOON, call=4.0)
    assert (await http.upload(host.url, HEADERS, RequestBody(3, slowly()), limited)).body == b"taken"
    host.play(host.hangs)
    with pytest.raises(OutcomeUnknown, match=r"no whole answer within 2 s"):
        await http.upload(host.url, HEADERS, Pieces(3).body(), replace(SOON, call=2.0))
    await host.left.wait()


async def test_what_cannot_be_reached_is_not_asked_for_a_piece(http: HttpClient, unused_port: int) -> None:
    pieces = Pieces(1)
    with pytest.raises(Unreachable):
        await http.upload(f"http://127.0.0.1:{unused_port}", HEADERS, pieces.body(), SOON)
    with pytest.raises(BadConfiguration):
        await http.upload("http://h", {"x-api-key": "a\nb"}, pieces.body(), SOON)
    assert pieces.given == 0


async def test_a_body_never_goes_out_on_a_connection_that_lay_idle(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"x"))
    await http.get(host.url, HEADERS, SOON)
    await http.upload(host.url, HEADERS, Pieces(1).body(), SOON)
    assert host.connections == 2


@pytest.mark.parametrize("more", [-1, 1])
async def test_pieces_that_are_not_what_was_promised_are_no_request(host: Host, http: HttpClient, more: int) -> None:
    host.play(host.answer(b"taken"))
    with pytest.raises(RuntimeError, match="promised"):
        await http.upload(host.url, HEADERS, Pieces(3).body(more), SOON)
    assert host.seen == []
    assert not http._connections._open or all(connection.is_closing() for connection in http._connections._open)


async def test_a_piece_that_cannot_be_had_ends_the_exchange(http: HttpClient) -> None:
    left = asyncio.Event()

    async def take(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        while await reader.read(65_536):
            pass
        left.set()

    async def pieces() -> AsyncIterator[bytes]:
        yield PIECE
        raise OSError("the disk is gone")

    async with serving(take) as url:
        with pytest.raises(OSError, match="disk"):
            await http.upload(url, HEADERS, RequestBody(2 * len(PIECE), pieces()), SOON)
        await left.wait()


async def test_canceling_in_the_middle_closes_the_connection(http: HttpClient) -> None:
    reached, left = asyncio.Event(), asyncio.Event()

    async def stall(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readexactly(100_000)
        reached.set()
        await go.wait()
        while await reader.read(1_000_000):
            pass
        left.set()

    go, pieces = asyncio.Event(), Pieces(4000)
    async with serving(stall) as url:
        call = asyncio.create_task(http.upload(url, HEADERS, pieces.body(), Timeouts()))
        await reached.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        go.set()
        await left.wait()
    assert pieces.closed
    assert not http._connections._open


async def test_closing_ends_what_is_being_sent(http: HttpClient) -> None:
    reached, over = asyncio.Event(), asyncio.Event()

    async def stall(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readexactly(100_000)
        reached.set()
        await over.wait()

    async with serving(stall) as url:
        call = asyncio.create_task(http.upload(url, HEADERS, Pieces(4000).body(), Timeouts()))
        await reached.wait()
        await http.close()
        with pytest.raises(OutcomeUnknown, match="closed"):
            await call
        over.set()

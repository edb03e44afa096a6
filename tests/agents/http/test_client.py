from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from muster.agents.http.client import HttpClient
from muster.domain.agent import Timeouts
from muster.domain.errors import OutcomeUnknown, Paid, Unreachable

if TYPE_CHECKING:
    from tests.agents.conftest import Host

SOON = Timeouts(connect=60.0, idle=60.0, call=60.0)
BODY = b'{"a":1}'
HEADERS = {"content-type": "application/json", "x-api-key": "k"}


async def test_a_body_goes_out_and_an_answer_comes_back(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"hello", 201, request_id="r1"))
    answer = await http.post(f"{host.url}/x", HEADERS, BODY, SOON)
    assert (answer.status, answer.body, answer.headers["Request-Id"]) == (201, b"hello", "r1")
    assert (host.seen[0].path, host.seen[0].body, host.seen[0].headers["x-api-key"]) == ("/x", BODY, "k")


async def test_connections_are_used_again(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"hello"))
    for _ in range(3):
        await http.post(host.url, HEADERS, BODY, SOON)
    assert host.connections == 1


async def test_cookies_are_not_kept(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"", set_cookie="a=b"))
    await http.post(host.url, HEADERS, BODY, SOON)
    await http.post(host.url, HEADERS, BODY, SOON)
    assert "cookie" not in host.seen[1].headers


async def test_proxies_of_the_environment_are_not_used(
    host: Host, http: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    host.play(host.answer(b"direct"))
    assert (await http.post(host.url, HEADERS, BODY, SOON)).body == b"direct"


async def test_a_redirect_is_an_answer_and_is_not_followed(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"", 307, location=f"{host.url}/other"))
    assert (await http.post(host.url, HEADERS, BODY, SOON)).status == 307
    assert len(host.seen) == 1


async def test_a_refused_connection_never_left(http: HttpClient, unused_port: int) -> None:
    with pytest.raises(Unreachable, match=r": cannot connect: the connection was refused\n") as caught:
        await http.post(f"http://127.0.0.1:{unused_port}", HEADERS, BODY, SOON)
    assert caught.value.paid is Paid.NO


async def test_a_server_that_does_not_speak_tls_was_never_reached(http: HttpClient) -> None:
    async def speak_plainly(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 X\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(speak_plainly, "127.0.0.1", 0)
    with pytest.raises(Unreachable, match="cannot connect"):
        await http.post(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", HEADERS, BODY, SOON)
    server.close()


async def test_a_connection_that_takes_too_long_was_never_made(host: Host, http: HttpClient) -> None:
    slow_handshake = host.url.replace("http:", "https:")  # this server waits for the end of a request
    with pytest.raises(Unreachable, match=r"no connection within 0\.1 s"):
        await http.post(slow_handshake, HEADERS, BODY, Timeouts(connect=0.1))
    assert host.seen == []


async def test_a_connection_cut_before_the_answer_leaves_the_outcome_unknown(host: Host, http: HttpClient) -> None:
    with pytest.raises(OutcomeUnknown) as caught:
        await http.post(host.url, HEADERS, BODY, SOON)
    assert caught.value.paid is Paid.UNKNOWN
    assert len(host.seen) == 1, "nothing may be sent twice"


async def test_a_reused_connection_that_is_cut_is_not_tried_again(host: Host, http: HttpClient) -> None:
    host.play(host.answer(b"hello"))
    host.play(host.hangs_up)
    await http.post(host.url, HEADERS, BODY, SOON)
    with pytest.raises(OutcomeUnknown):
        await http.post(host.url, HEADERS, BODY, SOON)
    assert (len(host.seen), host.connections) == (2, 1)


async def test_garbage_leaves_the_outcome_unknown(host: Host, http: HttpClient) -> None:
    host.play(b"this is not HTTP at all\r\n\r\n")
    with pytest.raises(OutcomeUnknown):
        await http.post(host.url, HEADERS, BODY, SOON)


BREAKS = {
    "short body": b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n{",
    "no last chunk": b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    "bad chunk": b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{\r\n",
    "bad gzip": b"HTTP/1.1 200 X\r\ncontent-length: 4\r\ncontent-encoding: gzip\r\n\r\nabcd",
}


@pytest.mark.parametrize("answer", BREAKS.values(), ids=BREAKS.keys())
async def test_a_body_that_breaks_leaves_the_outcome_unknown(host: Host, http: HttpClient, answer: bytes) -> None:
    host.last = (answer, host.hangs_up)
    with pytest.raises(OutcomeUnknown):
        await http.post(host.url, HEADERS, BODY, SOON)
    with pytest.raises(OutcomeUnknown):
        async with http.stream(host.url, HEADERS, BODY, SOON) as flow:
            await flow.body()


async def test_an_answer_that_takes_too_long_leaves_the_outcome_unknown(host: Host, http: HttpClient) -> None:
    await host.connect(http)
    host.play(host.hangs)
    with pytest.raises(OutcomeUnknown, match=r"within 0\.1 s"):
        await http.post(host.url, HEADERS, BODY, Timeouts(call=0.1))
    await host.left.wait()


async def test_a_model_may_think_longer_than_the_idle_time_before_a_whole_answer(host: Host, http: HttpClient) -> None:
    await host.connect(http)
    host.play(host.hangs)
    with pytest.raises(OutcomeUnknown, match=r"within 0\.2 s"):
        await http.post(host.url, HEADERS, BODY, Timeouts(idle=0.05, call=0.2))


async def test_a_stream_that_stalls_leaves_the_outcome_unknown(host: Host, http: HttpClient) -> None:
    host.play_events([b"data: x\n\n"], host.hangs)
    with pytest.raises(OutcomeUnknown, match=r"nothing arrived for 0\.1 s"):
        async with http.stream(host.url, HEADERS, BODY, replace(SOON, idle=0.1)) as flow:
            await flow.body()
    await host.left.wait()


async def test_an_answer_that_is_too_long_is_given_up(host: Host) -> None:
    http = HttpClient(most_bytes=10)
    host.play(host.answer(b"x" * 11))
    with pytest.raises(OutcomeUnknown, match="longer than 10 bytes"):
        await http.post(host.url, HEADERS, BODY, SOON)
    await http.close()


@pytest.mark.parametrize("streams", [False, True])
async def test_canceling_closes_the_connection(host: Host, http: HttpClient, streams: bool) -> None:
    async def exchange() -> None:
        if not streams:
            await http.post(host.url, HEADERS, BODY, Timeouts())
        async with http.stream(host.url, HEADERS, BODY, Timeouts()) as flow:
            await flow.body()

    host.play_events([b"data: x\n\n"], host.hangs)
    call = asyncio.create_task(exchange())
    await host.reached.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await host.left.wait()


async def test_a_stream_read_to_its_end_keeps_its_connection(host: Host, http: HttpClient) -> None:
    host.play_events([b"data: x\n\n"])
    for _ in range(2):
        async with http.stream(host.url, HEADERS, BODY, SOON) as flow:
            assert await flow.body() == b"data: x\n\n"
    assert host.connections == 1


async def test_a_stream_left_early_closes_its_connection(host: Host, http: HttpClient) -> None:
    host.play_events([b"data: x\n\n"], host.hangs)
    async with http.stream(host.url, HEADERS, BODY, SOON) as flow:
        assert await anext(flow.chunks) == b"data: x\n\n"
    await host.left.wait()


async def test_closing_twice_is_fine_and_nothing_leaves_afterwards(host: Host, http: HttpClient) -> None:
    await http.close()
    await http.close()
    with pytest.raises(Unreachable, match="closed"):
        await http.post(host.url, HEADERS, BODY, SOON)
    assert host.seen == []

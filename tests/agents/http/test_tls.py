"""Over TLS: certificates are always verified, and what is not trusted is never sent a byte."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from muster.agents.http.client import HttpClient, RequestBody
from muster.domain.agent import Timeouts
from muster.domain.errors import OutcomeUnknown, Paid, Untrusted
from tests.agents.conftest import Host

CERTIFICATE = Path(__file__).parents[1] / "tls" / "localhost.pem"
SOON = Timeouts(connect=60.0, idle=60.0, call=60.0)
HEADERS = {"content-type": "application/json"}


@pytest.fixture
async def guarded() -> AsyncIterator[Host]:
    """A server with a certificate for "localhost", signed by itself."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    host = Host()
    server = await asyncio.start_server(host.serve, "127.0.0.1", 0, ssl=context)
    host.port = server.sockets[0].getsockname()[1]
    yield host
    server.close()
    await host.close()


@pytest.fixture
async def trusting() -> AsyncIterator[HttpClient]:
    client = HttpClient(tls=ssl.create_default_context(cafile=str(CERTIFICATE)))
    yield client
    await client.close()


async def test_a_certificate_that_is_trusted_is_talked_to(guarded: Host, trusting: HttpClient) -> None:
    guarded.play(guarded.answer(b"x" * 300_000))
    url = f"https://localhost:{guarded.port}/x"
    for _ in range(3):
        assert (await trusting.post(url, HEADERS, b"y" * 300_000, SOON)).body == b"x" * 300_000
    assert (guarded.connections, len(guarded.seen)) == (1, 3)
    assert guarded.seen[0].headers["host"] == f"localhost:{guarded.port}"
    assert guarded.seen[0].body == b"y" * 300_000


async def test_streams_go_over_tls_too(guarded: Host, trusting: HttpClient) -> None:
    guarded.play_events([b"data: x\n\n"])
    for _ in range(2):
        async with trusting.stream(f"https://localhost:{guarded.port}", HEADERS, b"", SOON) as flow:
            assert await flow.body() == b"data: x\n\n"
    assert guarded.connections == 1


async def pieces(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"y" * 100_000


async def test_bodies_in_pieces_and_files_go_over_tls_too(guarded: Host, trusting: HttpClient) -> None:
    url = f"https://localhost:{guarded.port}"
    guarded.play(guarded.answer(b"taken"))
    assert (await trusting.upload(url, HEADERS, RequestBody(5_000_000, pieces(50)), SOON)).body == b"taken"
    assert guarded.seen[0].body == b"y" * 5_000_000
    guarded.play(guarded.answer(b"z" * 5_000_000))
    async with trusting.fetch(url, HEADERS, SOON) as flow:
        assert await flow.body() == b"z" * 5_000_000


async def test_an_answer_that_comes_before_the_body_is_out_is_read(trusting: HttpClient) -> None:
    host = Host()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host.transports.append(writer.transport)  # type: ignore[arg-type]
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 X\r\ncontent-length: 0\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while await reader.read(100_000):
                pass

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    server = await asyncio.start_server(refuse, "127.0.0.1", 0, ssl=context)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
    assert (await trusting.upload(url, HEADERS, RequestBody(1_000_000_000, pieces(10_000)), SOON)).status == 413
    server.close()
    await host.close()


async def test_a_body_that_ends_with_the_connection_is_whole(guarded: Host, trusting: HttpClient) -> None:
    guarded.play(b"HTTP/1.1 200 X\r\n\r\nall of it", guarded.hangs_up)
    assert (await trusting.post(f"https://localhost:{guarded.port}", HEADERS, b"", SOON)).body == b"all of it"


async def test_a_cut_leaves_the_outcome_unknown(guarded: Host, trusting: HttpClient) -> None:
    with pytest.raises(OutcomeUnknown):
        await trusting.post(f"https://localhost:{guarded.port}", HEADERS, b"", SOON)
    assert len(guarded.seen) == 1


async def test_canceling_closes_the_connection(guarded: Host, trusting: HttpClient) -> None:
    guarded.play(guarded.hangs)
    call = asyncio.create_task(trusting.post(f"https://localhost:{guarded.port}", HEADERS, b"", Timeouts()))
    await guarded.reached.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await guarded.left.wait()


async def test_a_certificate_that_nobody_trusts_is_sent_nothing(guarded: Host, http: HttpClient) -> None:
    with pytest.raises(Untrusted, match=r"the certificate is not valid: .*self.signed") as caught:
        await http.post(f"https://localhost:{guarded.port}", HEADERS, b"", SOON)
    assert (caught.value.paid, guarded.seen) == (Paid.NO, [])


async def test_a_certificate_for_another_name_is_sent_nothing(guarded: Host, trusting: HttpClient) -> None:
    with pytest.raises(Untrusted, match=r"the certificate is not valid: .*127"):
        await trusting.post(f"https://127.0.0.1:{guarded.port}", HEADERS, b"", SOON)
    assert guarded.seen == []

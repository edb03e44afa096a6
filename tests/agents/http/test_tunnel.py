"""Through a proxy: tunnels for https, whole addresses for http; what a proxy refuses was never sent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from muster.agents.http.client import HttpClient, RequestBody
from muster.agents.http.request import split_url
from muster.agents.http.tunnel import connect_request
from muster.domain.agent import Timeouts
from muster.domain.errors import (
    AuthRefused,
    BadConfiguration,
    OutcomeUnknown,
    Paid,
    Unreachable,
    Untrusted,
    WireError,
)
from muster.domain.network import Network, Proxy, ProxyRules, parse_exceptions
from tests.agents.conftest import Host
from tests.agents.http.network import Authority, TestProxy, basic, running

SOON = Timeouts(connect=20.0, idle=20.0, call=20.0)
HEADERS = {"x-api-key": "sk-key"}
USER = "me:open/sesame"
SECURE, PLAIN = "https://api.model.test/v1", "http://model.internal/v1"


@dataclass
class Scene:
    """Two servers that only the proxy knows by name: one behind TLS, one without; and a client that trusts ours."""

    authority: Authority
    proxy: TestProxy
    guarded: Host
    plain: Host
    client: HttpClient

    def host(self, url: str) -> Host:
        return self.guarded if url == SECURE else self.plain


@pytest.fixture(params=["plain proxy", "proxy behind TLS"])
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    authority = Authority(tmp_path)
    async with AsyncExitStack() as stack:
        guarded, plain = Host(), Host()
        for host, context in ((guarded, authority.server("api.model.test")), (plain, None)):
            server = await asyncio.start_server(host.serve, "127.0.0.1", 0, ssl=context)
            stack.callback(server.close)
            stack.push_async_callback(host.close)
            host.port = server.sockets[0].getsockname()[1]
        proxy = TestProxy(names={"api.model.test:443": guarded.port, "model.internal:80": plain.port}, user=USER)
        context = authority.server("127.0.0.1") if request.param == "proxy behind TLS" else None
        await stack.enter_async_context(running(proxy, context))
        client = trusting(authority, proxy)
        stack.push_async_callback(client.close)
        yield Scene(authority, proxy, guarded, plain, client)


def trusting(authority: Authority, proxy: TestProxy) -> HttpClient:
    return HttpClient(network=Network(proxies=proxy.rules(), certificate_file=str(authority.file)))


@pytest.mark.parametrize("url", [SECURE, PLAIN])
async def test_bodies_and_streams_and_files_go_through(scene: Scene, url: str) -> None:
    host = scene.host(url)
    host.play(host.answer(b"x" * 300_000))
    for _ in range(3):
        assert (await scene.client.post(url, HEADERS, b"y" * 300_000, SOON)).body == b"x" * 300_000
    assert (scene.proxy.passed, host.connections) == (1, 1), "a way through the proxy is used again"
    host.play_events([b"data: x\n\n"])
    async with scene.client.stream(url, HEADERS, b"", SOON) as flow:
        assert await flow.body() == b"data: x\n\n"

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"y" * 100_000

    host.play(host.answer(b"taken"))
    assert (await scene.client.upload(url, HEADERS, RequestBody(5_000_000, pieces()), SOON)).body == b"taken"
    assert host.seen[-1].body == b"y" * 5_000_000
    host.play(host.answer(b"z" * 5_000_000))
    async with scene.client.fetch(url, HEADERS, SOON) as flow:
        assert await flow.body() == b"z" * 5_000_000
    assert [seen.path for seen in host.seen] == ["/v1"] * len(host.seen)
    assert all("proxy-authorization" not in seen.headers for seen in host.seen)


async def test_a_tunnel_hides_everything_but_the_name(scene: Scene) -> None:
    scene.guarded.play(scene.guarded.answer(b"hello"))
    await scene.client.post(SECURE, HEADERS, b"", SOON)
    ((line, headers),) = scene.proxy.asked
    assert line == "CONNECT api.model.test:443 HTTP/1.1"
    assert set(headers) == {"host", "user-agent", "proxy-authorization"}
    assert headers["host"] == "api.model.test:443"
    assert scene.guarded.seen[0].headers["host"] == "api.model.test"


async def test_a_proxy_that_passes_on_gets_the_whole_address(scene: Scene) -> None:
    scene.plain.play(scene.plain.answer(b"hello"))
    await scene.client.get(f"{PLAIN}/files?a=b", HEADERS, SOON)
    ((line, headers),) = scene.proxy.asked
    assert line == "GET http://model.internal/v1/files?a=b HTTP/1.1"
    assert (headers["host"], headers["proxy-authorization"]) == ("model.internal", basic(USER))


def test_a_server_of_numbers_is_asked_for_in_brackets() -> None:
    proxy = Proxy(place="http://p:1", host="p", port=1, secure=False, variable="HTTPS_PROXY")
    origin, _ = split_url("https://[fd00::1]:8443/x")
    assert connect_request(origin, proxy).startswith(b"CONNECT [fd00::1]:8443 HTTP/1.1\r\nhost: [fd00::1]:8443\r\n")


async def refused(scene: Scene, url: str, kind: type[WireError]) -> WireError:
    with pytest.raises(kind) as caught:
        await scene.client.post(url, HEADERS, b"", SOON)
    with pytest.raises(kind):
        async with scene.client.stream(url, HEADERS, b"", SOON):
            pass
    said = " ".join([str(caught.value), *caught.value.suggestions, repr(caught.value)])
    assert "sesame" not in said
    assert basic(USER) not in said
    return caught.value


@pytest.mark.parametrize("url", [SECURE, PLAIN])
@pytest.mark.parametrize("user", ["", "me:wrong"])
async def test_a_proxy_that_does_not_know_us_is_a_lasting_error_that_names_it(
    scene: Scene, url: str, user: str
) -> None:
    stranger = replace(scene.proxy, user=user)
    scene.client = trusting(scene.authority, stranger)
    error = await refused(scene, url, AuthRefused)
    assert f"the proxy {scene.proxy.url} (HTTPS_PROXY) answered 407 Proxy Authentication Required" in error.message
    assert "HTTPS_PROXY" in error.suggestions[0]
    assert (error.paid, error.status, scene.host(url).seen) == (Paid.NO, 407, [])
    await scene.client.close()


@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, AuthRefused), (502, Unreachable), (503, Unreachable), (504, Unreachable), (418, Unreachable)],
)
async def test_a_tunnel_that_is_refused_was_never_used(scene: Scene, status: int, kind: type[WireError]) -> None:
    scene.proxy.refuse = status
    error = await refused(scene, SECURE, kind)
    assert f"{scene.proxy.url} (HTTPS_PROXY) answered {status}" in error.message
    assert (error.paid, scene.guarded.seen) == (Paid.NO, [])


@pytest.mark.parametrize(
    "reply",
    [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b"x" * 100_000, b"HTTP/1.1 200 OK\r\n\r\nmore", b"\r\n\r\n"],
)
async def test_a_proxy_that_does_not_lead_anywhere_was_never_used(scene: Scene, reply: bytes) -> None:
    scene.proxy.reply = reply
    error = await refused(scene, SECURE, Unreachable)
    assert scene.proxy.url in error.message
    assert (error.paid, scene.guarded.seen) == (Paid.NO, [])


@pytest.mark.parametrize("url", [SECURE, PLAIN])
async def test_a_proxy_that_is_not_there_was_never_reached(
    scene: Scene, unused_port: int, url: str, tmp_path: Path
) -> None:
    scene.client = trusting(scene.authority, replace(scene.proxy, port=unused_port))
    error = await refused(scene, url, Unreachable)
    assert f"through the proxy {'https' if scene.proxy.secure else 'http'}://127.0.0.1:{unused_port}" in error.message


async def test_a_proxy_without_an_address_was_never_reached() -> None:
    proxy = Proxy(place="http://no.invalid:1", host="no.invalid", port=1, secure=False, variable="https_proxy")
    client = HttpClient(network=Network(proxies=ProxyRules(https=proxy, http=proxy)))
    for url in (SECURE, PLAIN):
        with pytest.raises(Unreachable, match=r"through the proxy http://no\.invalid:1 \(https_proxy\)"):
            await client.post(url, HEADERS, b"", SOON)
    await client.close()


async def test_a_proxy_that_says_nothing_was_never_reached(scene: Scene) -> None:
    scene.proxy.silent = True
    with pytest.raises(Unreachable, match=r"no connection through the proxy .* within 2 s"):
        await scene.client.post(SECURE, HEADERS, b"", replace(SOON, connect=2.0))
    assert scene.guarded.seen == []


async def test_canceling_while_a_tunnel_is_made_closes_it(scene: Scene) -> None:
    scene.proxy.silent = True
    call = asyncio.create_task(scene.client.post(SECURE, HEADERS, b"", SOON))
    await scene.proxy.reached.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(scene.proxy.writers[0].wait_closed(), 20)


async def test_closing_the_client_during_a_handshake_ends_it(scene: Scene) -> None:
    greeted = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        greeted.set()
        while await reader.read(65_536):
            pass
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    scene.proxy.names["silent.test:443"] = server.sockets[0].getsockname()[1]
    call = asyncio.create_task(scene.client.post("https://silent.test", HEADERS, b"", SOON))
    await asyncio.wait_for(greeted.wait(), 20)
    await scene.client.close()
    with pytest.raises(Unreachable):
        await asyncio.wait_for(call, 10)
    server.close()


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\n\r\n"])
async def test_a_server_that_speaks_no_tls_was_never_reached(scene: Scene, first: bytes) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    scene.proxy.names["plain.test:443"] = server.sockets[0].getsockname()[1]
    with pytest.raises(Unreachable) as caught:
        await scene.client.post("https://plain.test", HEADERS, b"", SOON)
    assert caught.value.paid is Paid.NO
    server.close()


@pytest.mark.parametrize("url", [SECURE, PLAIN])
async def test_a_proxy_that_dies_in_mid_answer_leaves_the_outcome_unknown(scene: Scene, url: str) -> None:
    host = scene.host(url)
    host.play(host.answer(b"x" * 1_000_000))
    scene.proxy.most = 100_000
    with pytest.raises(OutcomeUnknown) as caught:
        await scene.client.post(url, HEADERS, b"", SOON)
    assert (caught.value.paid, len(host.seen)) == (Paid.UNKNOWN, 1), "nothing may be sent twice"


async def test_a_server_that_is_not_who_it_should_be_is_sent_nothing(scene: Scene) -> None:
    scene.proxy.names["other.test:443"] = scene.guarded.port
    with pytest.raises(Untrusted, match=r"https://other.test: the certificate is not valid: .*other.test") as caught:
        await scene.client.post("https://other.test", HEADERS, b"", SOON)
    assert (caught.value.paid, scene.guarded.seen) == (Paid.NO, [])


async def test_a_server_of_another_authority_is_sent_nothing(scene: Scene, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    client = trusting(other, scene.proxy)
    whose = "the certificate of the proxy" if scene.proxy.secure else "https://api.model.test: the certificate"
    with pytest.raises(Untrusted, match=f"{whose} is not valid"):
        await client.post(SECURE, HEADERS, b"", SOON)
    assert (scene.guarded.seen, scene.proxy.passed) == ([], 0 if scene.proxy.secure else 1)
    await client.close()


async def test_what_needs_no_proxy_is_reached_directly(scene: Scene) -> None:
    scene.plain.play(scene.plain.answer(b"direct"))
    assert (await scene.client.post(scene.plain.url, HEADERS, b"", SOON)).body == b"direct"
    rules = replace(scene.proxy.rules(), exceptions=parse_exceptions("model.internal"))
    client = HttpClient(network=Network(proxies=rules))
    with pytest.raises(Unreachable) as caught:  # nobody but the proxy knows it
        await client.post(PLAIN, HEADERS, b"", SOON)
    assert "proxy" not in str(caught.value)
    assert scene.proxy.asked == []
    await client.close()


async def test_a_proxy_that_cannot_be_used_is_refused_before_anything_is_sent(scene: Scene) -> None:
    bad = BadConfiguration("https_proxy is not the address of a proxy")
    client = HttpClient(network=Network(proxies=ProxyRules(https=bad, http=bad)))
    for url in (SECURE, PLAIN):
        with pytest.raises(BadConfiguration, match="https_proxy"):
            await client.post(url, HEADERS, b"", SOON)
    await client.close()

"""The client of a server: what it sends, what it makes of refusals, and how long it tries."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.client import ServiceClient
from muster.domain.errors import (
    AccessDenied,
    AuthRefused,
    BadArgument,
    BadConfiguration,
    Conflict,
    LimitReached,
    MusterError,
    NotFound,
    ProviderFault,
    Unreachable,
)
from tests.agents.conftest import Host


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    host = Host()
    server = await asyncio.start_server(host.serve, "127.0.0.1", 0)
    host.port = server.sockets[0].getsockname()[1]
    yield host
    server.close()


class Pauses:
    """Takes no time, and remembers how long it would have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


def told(name: str, seq: int | None, **data: Any) -> bytes:
    id_ = "" if seq is None else f"id: {seq}\n"
    return f"{id_}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


async def test_a_run_is_started_with_a_key_that_is_the_same_on_every_try(host: Host) -> None:
    host.play(host.hangs_up)
    host.play_json({"error": {"code": "stopping", "message": "the server is stopping"}}, 503)
    host.play_json({"id": "run1", "jobId": "run1", "state": "queued"}, 202)
    async with ServiceClient(host.url, token="secret-0123456789", sleep=Pauses()) as client:
        started = await client.start("battles/start", {"agentId": "a"})
    assert (started.id, started.state) == ("run1", "queued")
    assert [seen.path for seen in host.seen] == ["/api/battles/start"] * 3
    assert len({seen.headers["idempotency-key"] for seen in host.seen}) == 1
    assert {seen.headers["authorization"] for seen in host.seen} == {"Bearer secret-0123456789"}
    assert host.seen[0].json == {"agentId": "a"}


async def test_other_starts_have_other_keys_unless_one_is_given(host: Host) -> None:
    async with ServiceClient(host.url) as client:
        for _ in range(2):
            host.play_json({"runId": "run1"}, 202)
            await client.start("scale/start", {})
        host.play_json({"id": "run1"}, 202)
        await client.start("/suites/start", {}, key="mine")
        host.play_json({"ok": True})
        with pytest.raises(BadArgument, match="does not start a run"):
            await client.start("pool/drain", {})
    keys = [seen.headers["idempotency-key"] for seen in host.seen]
    assert len(set(keys)) == 4
    assert keys[2] == "mine"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadArgument),
        (401, AuthRefused),
        (403, AccessDenied),
        (404, NotFound),
        (409, Conflict),
        (413, BadArgument),
        (429, LimitReached),
    ],
)
async def test_a_refusal_is_raised_at_once_with_the_words_of_the_server(
    host: Host, status: int, kind: type[MusterError]
) -> None:
    body = {"error": {"code": "x", "message": "these words", "request_id": "r"}}
    async with ServiceClient(host.url) as client:
        for ask in (client.get("run1"), client.start("x", {}), client.wait("run1"), client.cancel("run1")):
            host.play_json(body, status, retry_after="7")
            with pytest.raises(kind, match="these words") as raised:
                await ask
            assert getattr(raised.value, "retry_after", 7.0) in (7.0, None)
    assert len(host.seen) == 4


async def test_a_server_that_cannot_be_reached_is_tried_for_a_while(unused: int) -> None:
    pauses = Pauses()
    async with ServiceClient(f"http://127.0.0.1:{unused}", patience=0.0, sleep=pauses) as client:
        for ask in (client.get("run1"), client.start("x", {}), client.wait("run1")):
            with pytest.raises(Unreachable):
                await ask
    assert len(pauses.seconds) >= 3
    assert all(0.04 < pause <= 3.0 for pause in pauses.seconds)


@pytest.fixture
async def unused() -> int:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


async def test_a_broken_stream_goes_on_after_the_last_event_and_gives_none_twice(host: Host) -> None:
    host.play_events([told("status", 1), told("event", 2), told("delta", None, text="on")], host.hangs_up)
    host.play_events([told("event", 2), told("event", 3)])  # it ends without the end of the run
    host.play_events([told("event", 4), told("resync", None, reason="slow")])
    host.play_json({"error": {"message": "restarting"}}, 503)
    host.play_events([told("status", 5, kind="run.completed"), told("end", 5, state="completed")])
    async with ServiceClient(host.url, sleep=Pauses()) as client:
        updates = [update async for update in client.follow("run 1", after=0)]
    assert [(update.name, update.seq) for update in updates] == [
        ("status", 1),
        ("event", 2),
        ("delta", None),
        ("event", 3),
        ("event", 4),
        ("status", 5),
        ("end", 5),
    ]
    assert [seen.headers["last-event-id"] for seen in host.seen] == ["0", "2", "3", "4", "4"]
    assert {seen.path for seen in host.seen} == {"/api/stream/run%201"}


async def test_a_gap_is_never_given_to_the_caller(host: Host) -> None:
    host.play_events([told("event", 1), told("event", 3)])
    host.play_events([told("event", 2), told("end", 2)])
    async with ServiceClient(host.url, sleep=Pauses()) as client:
        assert [update.seq async for update in client.follow("run1")] == [1, 2, 2]


async def test_a_server_with_another_store_is_told(host: Host) -> None:
    host.play_events([told("resync", 0, reason="ahead", after=0), told("event", 1)])
    async with ServiceClient(host.url) as client:
        with pytest.raises(Conflict, match="its store is another one"):
            _ = [update async for update in client.follow("run1", after=9)]


async def test_something_else_than_muster_is_told_at_once(host: Host) -> None:
    async with ServiceClient(host.url) as client:
        host.play(host.answer(b"<html>"))
        with pytest.raises(BadConfiguration, match="does not answer like muster serve"):
            await client.get("run1")
        for play in (host.answer(b"{}"), None):
            if play is None:
                host.play_events([b"id: x\ndata: {}\n\n"])
            else:
                host.play(play)
            with pytest.raises(BadConfiguration, match="does not answer like muster serve"):
                _ = [update async for update in client.follow("run1")]
    assert len(host.seen) == 3


async def test_a_broken_server_is_tried_for_a_while(host: Host) -> None:
    host.play(host.answer(b"", 500))
    async with ServiceClient(host.url, patience=0.0, sleep=Pauses()) as client:
        with pytest.raises(ProviderFault, match="status 500"):
            await client.get("run1")
    assert len(host.seen) > 1


@pytest.mark.parametrize("url", ["127.0.0.1:7420", "ftp://x", "http://user:word@127.0.0.1", "http://example.org"])
async def test_an_address_that_cannot_be_used_is_refused_at_once(url: str) -> None:
    with pytest.raises(BadConfiguration):
        ServiceClient(url)

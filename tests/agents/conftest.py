"""A small real HTTP server whose every byte a test decides, and a registry of processes."""

import asyncio
import json
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from muster.agents.anthropic.live import AnthropicAgent
from muster.agents.http.client import HttpClient
from muster.agents.openai.live import OpenAIAgent
from muster.agents.processes import system
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.processes.system import this_process
from muster.domain.agent import Profile, Timeouts
from muster.domain.price import Price, Pricing, Rates
from muster.testing.agents import RememberedProcesses

KEY = "sk-very-secret-0123456789"


class Act(Enum):
    """What a server can do beside sending bytes."""

    HANG = "hang"  # until the client is gone
    CUT = "cut"


Piece = bytes | Act


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    method: str = "POST"

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Host:
    """Answers requests with the plays that were queued, then always with the last of them."""

    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    plays: deque[tuple[Piece, ...]] = field(default_factory=deque)
    last: tuple[Piece, ...] = (Act.CUT,)
    reached: asyncio.Event = field(default_factory=asyncio.Event)  # the first request has arrived
    left: asyncio.Event = field(default_factory=asyncio.Event)  # a client hung up on a hanging answer
    transports: list[asyncio.Transport] = field(default_factory=list)

    hangs = Act.HANG
    hangs_up = Act.CUT

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def play(self, *pieces: Piece) -> None:
        """Queue one answer."""
        self.plays.append(pieces)

    def play_json(self, value: Any, status: int = 200, **headers: str) -> None:
        """Queue one JSON answer."""
        self.play(self.answer(json.dumps(value).encode(), status, **{"content-type": "application/json", **headers}))

    def play_events(self, events: list[Any], *after: Piece) -> None:
        """Queue one stream; an event is JSON, or bytes as they are."""
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        self.play(head, *(self.chunk(self.event(event)) for event in events), *(after or (b"0\r\n\r\n",)))

    def play_lines(self, lines: bytes, *after: Piece) -> None:
        """Queue one file, in chunks."""
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-jsonl\r\ntransfer-encoding: chunked\r\n\r\n"
        self.play(head, *([self.chunk(lines)] if lines else []), *(after or (b"0\r\n\r\n",)))

    @staticmethod
    def answer(body: bytes, status: int = 200, **headers: str) -> bytes:
        """Spell an answer."""
        lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    @staticmethod
    def event(value: Any) -> bytes:
        """Spell an event."""
        if isinstance(value, bytes):
            return value
        name = f"event: {value['type']}\n" if "type" in value else ""
        return f"{name}data: {json.dumps(value)}\n\n".encode()

    @staticmethod
    def chunk(data: bytes) -> bytes:
        """Frame a piece of a body."""
        return f"{len(data):x}\r\n".encode() + data + b"\r\n"

    async def connect(self, client: HttpClient) -> None:
        """Have a client connect, which then takes no time of the next call."""
        self.play(self.answer(b""))
        await client.post(self.url, {}, b"", Timeouts())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        self.connections += 1
        self.transports.append(writer.transport)  # type: ignore[arg-type]
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client is gone
        finally:
            writer.close()

    async def close(self) -> None:
        """Close every connection at once, also one that a goodbye over TLS keeps open."""
        for transport in self.transports:
            transport.abort()
        for _ in range(3):  # turns of the loop in which the sockets are closed
            await asyncio.sleep(0)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = head[0].split(" ")
        self.seen.append(Seen(path, headers, body, method))
        if self.plays:
            self.last = self.plays.popleft()
        pieces = self.last
        self.reached.set()
        for piece in pieces:
            if piece is Act.CUT:
                return False
            if piece is Act.HANG:
                await reader.read()
                self.left.set()
                return False
            assert isinstance(piece, bytes)
            writer.write(piece)
            await writer.drain()
        return True


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    host = Host()
    server = await asyncio.start_server(host.serve, "127.0.0.1", 0)
    host.port = server.sockets[0].getsockname()[1]
    yield host
    server.close()


@pytest.fixture
def unrolled() -> Callable[[Any], Any]:
    """Turn what Pydantic made of a body, with its lazy lists, back into plain JSON."""

    def unroll(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: unroll(part) for name, part in value.items()}
        return [unroll(part) for part in value] if not isinstance(value, str) and isinstance(value, Iterable) else value

    return unroll


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that refuses everybody: it is held, so that no other process can listen there, and nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()


@pytest.fixture
def price() -> Price:
    rates = {"input": "3", "output": "15", "cache_read": "0.3", "cache_write": "3.75", "cache_write_1h": "6"}
    return Price(base=Rates(**{name: Decimal(rate) for name, rate in rates.items()}))


@pytest.fixture
def anthropic(host: Host, http: HttpClient, price: Price) -> AnthropicAgent:
    profile = Profile(name="anthropic/claude-test", limiter="anthropic:claude-test")
    return AnthropicAgent(
        profile=profile, model="claude-test", key=KEY, pricing=Pricing(standard=price), http=http, base_url=host.url
    )


@pytest.fixture
def openai(host: Host, http: HttpClient, price: Price) -> OpenAIAgent:
    profile = Profile(name="openai/gpt-test", limiter="openai:gpt-test")
    return OpenAIAgent(
        profile=profile,
        model="gpt-test",
        key=KEY,
        pricing=Pricing(standard=price),
        http=http,
        base_url=f"{host.url}/v1",
    )


@pytest.fixture
def remembered() -> RememberedProcesses:
    """What a registry has noted of its processes."""
    return RememberedProcesses()


@pytest.fixture
async def processes(remembered: RememberedProcesses) -> AsyncIterator[ProcessRegistry]:
    """A registry whose processes are all over when the test is, and seen dead when it closes."""
    processes = ProcessRegistry(remembered, this_process())
    yield processes
    assert processes.at_work == 0, "a call left a process behind"
    await processes.close()
    assert remembered.noted == {}
    houses = [process.token for process in remembered.seen if process.pid is None]
    assert [pid for house in houses for pid, _ in system.with_token(house + ".") if system.started(pid)] == []

"""A rehearsal server that lies about usage: the question says which figure is wrong, and how."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.app import Muster, open_muster
from muster.domain.agent import Timeouts
from muster.settings import load_settings
from muster.sim.audit import Audit
from muster.sim.http import HttpRequest, SimConnection
from muster.sim.options import Options
from muster.sim.playback import Playback, at_once
from muster.sim.rehearsal import Rehearsal
from muster.sim.server import Router
from tests.chaos.stage import HASTY, declare_prices
from tests.engine.batches.house import ANTHROPIC, OPENAI, QUICK

Path_ = tuple[str, ...]

PATIENT = Timeouts()  # nothing here is slow but the machine

FIELDS: dict[str, tuple[Path_, ...]] = {
    ANTHROPIC: (
        ("input_tokens",),
        ("output_tokens",),
        ("cache_creation_input_tokens",),
        ("cache_read_input_tokens",),
        ("cache_creation", "ephemeral_5m_input_tokens"),
        ("cache_creation", "ephemeral_1h_input_tokens"),
    ),
    OPENAI: (
        ("prompt_tokens",),
        ("completion_tokens",),
        ("prompt_tokens_details", "cached_tokens"),
        ("prompt_tokens_details", "cache_write_tokens"),
    ),
}
OBJECTS: dict[str, tuple[Path_, ...]] = {
    ANTHROPIC: ((), ("cache_creation",)),
    OPENAI: ((), ("prompt_tokens_details",)),
}

_HOLE = "a figure that is filled in last"


@dataclass(frozen=True)
class Lie:
    """One figure of the usage, and the JSON text that stands in its place."""

    place: Path_  # () is the usage itself
    text: str


class LyingServer:
    """Answers like the rehearsal server, but for the usage of questions that hold `lie:N`."""

    def __init__(self, lies: list[Lie]) -> None:
        self._lies = lies
        self._rehearsal = Rehearsal(Options(), time.time)
        self._router = Router(self._rehearsal)
        self.connections: set[SimConnection] = set()

    @property
    def audit(self) -> Audit:
        """What was paid, as the provider says."""
        return self._rehearsal.audit()

    def connect(self) -> SimConnection:
        return SimConnection(self, 2**26, self.connections, self._router.large_bodies)

    def __call__(self, request: HttpRequest) -> Playback:
        play = self._router(request)
        answer = b"".join(data for _, data in play.parts)
        play.ended()
        return at_once(self._twisted(answer, request.body))

    def _twisted(self, answer: bytes, asked: bytes) -> bytes:
        head, body = answer.split(b"\r\n\r\n", 1)
        if b"transfer-encoding: chunked" in head:
            head, body = head.replace(b"\r\ntransfer-encoding: chunked", b""), _unchunked(body)
        else:
            head = re.sub(rb"\r\ncontent-length: \d+", b"", head)
        body = b"\n".join(self._line(line, asked) for line in body.split(b"\n"))
        return b"%b\r\ncontent-length: %d\r\n\r\n%b" % (head, len(body), body)

    def _line(self, line: bytes, asked: bytes) -> bytes:
        told = re.search(rb"lie:(\d+)", line) or re.search(rb"lie:(\d+)", asked)
        if told is None or b'"usage"' not in line:
            return line
        lie = self._lies[int(told[1])]
        name, separator, value = line.rpartition(b"data: ")
        found = json.loads(value)
        for holder in _holders(found):
            _put(holder, ("usage", *lie.place))
        return name + separator + json.dumps(found).replace(f'"{_HOLE}"', lie.text).encode()


def _holders(value: Any) -> Iterator[dict[str, Any]]:
    """Give the objects in which a usage is told."""
    if isinstance(value, dict):
        if value.get("usage") is not None:
            yield value
        for part in value.values():
            yield from _holders(part)


def _put(holder: dict[str, Any], place: Path_) -> None:
    for name in place[:-1]:
        holder = holder.setdefault(name, {})
    holder[place[-1]] = _HOLE


def _unchunked(body: bytes) -> bytes:
    found = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        found += rest[: int(size, 16)]
        body = rest[int(size, 16) + 2 :]
    return found


@asynccontextmanager
async def before_a_liar(folder: Path, lies: list[Lie]) -> AsyncIterator[tuple[Muster, LyingServer]]:
    """Open a Muster whose providers lie."""
    liar = LyingServer(lies)
    server = await asyncio.get_running_loop().create_server(liar.connect, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    declare_prices(folder)
    environment = {
        "ANTHROPIC_API_KEY": "sk-test-anthropic",
        "OPENAI_API_KEY": "sk-test-openai",
        "ANTHROPIC_BASE_URL": f"{address}/anthropic",
        "OPENAI_BASE_URL": f"{address}/openai/v1",
    }
    settings = load_settings(folder=folder, environment=environment)
    try:
        async with open_muster(
            settings=settings, policy=HASTY, timeouts=PATIENT, batch_timeouts=PATIENT, patience=QUICK
        ) as muster:
            yield muster, liar
    finally:
        server.close()
        for connection in tuple(liar.connections):
            connection.abort()

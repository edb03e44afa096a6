"""Watchers of judged battles over HTTP: what one event delivered to one watcher costs the server.

The server is a process of its own with the limits that it has by default, and its CPU alone is counted, from when all
watchers are connected to when all battles are over, less what the same battles take without watchers. Sides and judge
are scripted and take as long as a quick model, so that events come as they do in life: few at a time. One watcher more
stops reading.
"""

import asyncio
import json
import os
import resource
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import muster
from bench.processes import serving
from muster.agents.http.sse import EventParser, ServerSentEvent
from muster.domain.ids import RunId
from muster.settings import load_settings

BATTLES = 10
REPLIES = 25  # of the agent under test in each battle
CONNECTING = 50  # watchers at the same time
SIDES = """
import asyncio
from pathlib import Path

VERDICT = {
    "verdict": "no", "confidence": 0.1, "criteria": ["a table is booked"], "reason": "Nothing is booked yet. " * 5,
}


async def speak(request):
    while not Path("begin").exists():  # until all watchers are connected
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.05)
    return f"{len(request.messages)}. For how many, and when? " + "We have tables inside and outside. " * 20


async def judge(request):
    await asyncio.sleep(0.05)
    return VERDICT
"""
TOML = """
[agents.clerk]
kind = "python"
function = "sides:speak"
[agents.guest]
kind = "python"
function = "sides:speak"
[agents.referee]
kind = "python"
function = "sides:judge"
"""


@dataclass
class BenchWatcher:
    """What one watcher saw."""

    run: RunId
    ids: list[int] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)  # of messages and decisions, from when they were written
    ended: bool = False

    def take(self, event: ServerSentEvent, now: float) -> None:
        """Note an event."""
        if event.name == "end":
            self.ended = True
            return
        self.ids.append(int(event.id or 0))
        if event.name in ("message", "decision"):
            self.delays.append(now - datetime.fromisoformat(json.loads(event.data)["createdAt"]).timestamp())

    def saw(self, last: int) -> bool:
        """Return whether every event of a run came once, in order, to the end."""
        return self.ended and self.ids == list(range(1, last + 1))


def cpu_of(pid: int) -> float:
    """Return the seconds that a process alone has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def watch(port: int, run: RunId, few: asyncio.Semaphore, connected: asyncio.Barrier) -> BenchWatcher:
    """Follow a run to its end."""
    watcher, parser = BenchWatcher(run), EventParser()
    async with few:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(port, run))
        await reader.readuntil(b"\r\n\r\n")
    await connected.wait()
    while not watcher.ended:
        size = int(await reader.readline(), 16)
        data = (await reader.readexactly(size + 2))[:size]
        now = time.time()
        for event in parser.feed(data):
            watcher.take(event, now)
        if not size:
            break
    writer.close()
    return watcher


def stalled(port: int, run: str) -> socket.socket:
    """Connect as a watcher that never reads."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    found.connect(("127.0.0.1", port))
    found.sendall(request(port, run))
    return found


def unsent(port: int) -> int:
    """Return the bytes that wait on this machine to be sent to a port, whose owner does not read."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(int(row[4].partition(":")[0], 16) for row in rows if row[2].endswith(f":{port:04X}"))


def request(port: int, run: str) -> bytes:
    """Return the request for a stream."""
    return f"GET /api/stream/{run} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()


def measure(watchers: int) -> dict[str, Any]:
    """Start a server, battles and their watchers, and return what it took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sides.py").write_text(SIDES)
        (folder / "muster.toml").write_text(TOML)
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": name}
        with serving(folder, environment) as server:
            port = int(server.url.rpartition(":")[2])
            return asyncio.run(server.beside(follow_battles(folder, server.process.pid, port, watchers)))


async def follow_battles(folder: Path, pid: int, port: int, watchers: int) -> dict[str, Any]:
    """Have so many watchers follow the battles from their beginning to their end."""
    settings = load_settings(folder / ".muster", folder=folder, environment={})
    async with muster.open(settings=settings) as m:
        spec = m.battles.spec("clerk", "guest", goal="A table is booked", judge="referee", message_limit=REPLIES)
        runs = [await m.battles.submit(spec) for _ in range(BATTLES)]
        connected, few = asyncio.Barrier(watchers + 1), asyncio.Semaphore(CONNECTING)
        watching = [watch(port, runs[number % BATTLES].id, few, connected) for number in range(watchers)]
        found = asyncio.gather(*watching)
        opened = cpu_of(pid)
        await connected.wait()
        stuck = stalled(port, runs[0].id)
        before = cpu_of(pid)
        (folder / "begin").touch()
        ends = {run.id: (await run.wait()).last_seq for run in runs}
        seen: Sequence[BenchWatcher] = await found
        used = cpu_of(pid) - before
        held = unsent(stuck.getsockname()[1])
        stuck.close()
    return figures(seen, ends) | {"cpu": used, "connecting": before - opened, "held": held}


def figures(seen: Sequence[BenchWatcher], ends: Mapping[RunId, int]) -> dict[str, Any]:
    """Return how many events were delivered, to how many watchers all of them, and how late."""
    delays = sorted(delay for watcher in seen for delay in watcher.delays) or [0.0]
    return {
        "delivered": sum(len(watcher.ids) + watcher.ended for watcher in seen),
        "complete": sum(watcher.saw(ends[watcher.run]) for watcher in seen),
        "p50_ms": delays[len(delays) // 2] * 1000,
        "p99_ms": delays[len(delays) * 99 // 100] * 1000,
    }


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(json.dumps(measure(int(sys.argv[1]))))

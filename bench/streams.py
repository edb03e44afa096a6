"""Watchers of runs over HTTP: what one event delivered to one watcher costs the server, and that nobody is slowed.

The server is a process of its own, and its CPU alone is counted: reading the store, encoding, sending, and driving the
runs. One watcher more connects to each run and never reads.
"""

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import muster
from muster.agents.http.sse import EventParser, ServerSentEvent
from muster.settings import load_settings

RUNS = 10
EVENTS = 40  # that each run tells, besides its states
WORKLOAD = """
import asyncio

import muster


@muster.workload("told")
async def told(ctx, spec):
    await ctx.receive("begin", "begin")
    for number in range(spec["events"]):
        await ctx.emit(f"event/{number}", "told", {"n": number, "text": "some words " * 100})
        await asyncio.sleep(0.1)
    return {}
"""
TOML = '[workloads]\nimport = ["told"]\n[serve]\nruns = 20\n'


@dataclass
class BenchWatcher:
    """What one watcher saw."""

    ids: list[int] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)  # from when an event was written to when it was here
    ended: bool = False

    def take(self, event: ServerSentEvent, now: float) -> None:
        """Note an event."""
        if event.name == "end":
            self.ended = True
            return
        self.ids.append(int(event.id or 0))
        told = json.loads(event.data)
        if told["kind"] == "told":
            self.delays.append(now - datetime.fromisoformat(told["at"]).timestamp())

    @property
    def complete(self) -> bool:
        """Return whether every event came once, in order, to the end."""
        return self.ended and self.ids == list(range(1, len(self.ids) + 1)) and len(self.delays) == EVENTS


def cpu_of(pid: int) -> float:
    """Return the seconds that a process alone has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def watch(port: int, run: str, few: asyncio.Semaphore, connected: asyncio.Barrier) -> BenchWatcher:
    """Follow a run to its end."""
    watcher, parser = BenchWatcher(), EventParser()
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


def request(port: int, run: str) -> bytes:
    """Spell the request for a stream."""
    return f"GET /api/stream/{run} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()


def measure(folder: Path, watchers: int) -> dict[str, Any]:
    """Start a server, runs and their watchers, and return what it took."""
    (folder / "told.py").write_text(WORKLOAD)
    (folder / "muster.toml").write_text(TOML)
    command = [sys.executable, "-m", "muster", "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            line = server.stdout.readline() if server.stdout else ""
            port = int(json.loads(line)["url"].rpartition(":")[2])
            return asyncio.run(follow_runs(folder, server.pid, port, watchers))
        finally:
            server.kill()


async def follow_runs(folder: Path, pid: int, port: int, watchers: int) -> dict[str, Any]:
    """Have so many watchers follow the runs from their beginning to their end."""
    settings = load_settings(folder / ".muster", folder=folder, environment={})
    async with muster.open(settings=settings) as m:
        runs = [await m.submit("told", {"events": EVENTS}) for _ in range(RUNS)]
        await asyncio.gather(*(run.wait() for run in runs))  # until they wait for their signal
        connected, few = asyncio.Barrier(watchers + 1), asyncio.Semaphore(50)
        watching = [watch(port, runs[number % RUNS].id, few, connected) for number in range(watchers)]
        found = asyncio.gather(*watching)
        await connected.wait()
        idle = [stalled(port, run.id) for run in runs]
        before, wall = cpu_of(pid), time.perf_counter()
        for run in runs:
            await m.runs.send(run.id, "begin", {})
        seen = await found
        used, seconds = cpu_of(pid) - before, time.perf_counter() - wall
        for one in idle:
            one.close()
    delays = sorted(delay for watcher in seen for delay in watcher.delays)
    return {
        "delivered": len(delays),
        "complete": sum(watcher.complete for watcher in seen) / watchers,
        "microseconds": used / len(delays) * 1e6,
        "p50_ms": delays[len(delays) // 2] * 1000,
        "p99_ms": delays[len(delays) * 99 // 100] * 1000,
        "seconds": seconds,
    }


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(measure(Path(name), int(sys.argv[1]))))

"""One process polls a batch that several wait for, by the requests that the provider gets; another takes over."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from muster.app import open_muster
from muster.settings import load_settings
from tests.chaos import law
from tests.chaos.fleet import Order
from tests.chaos.fleets import open_copy
from tests.chaos.stage import BRISK, Stage, declare_prices, until
from tests.rehearsal import ForkedRehearsal

CALLS = 5
POLLS = 8  # that are looked at before and after the poller is killed
BATCH_MS = 30_000  # long enough for all of that, also on a busy machine


class RequestLog:
    """A proxy before the provider that notes which process asked for what."""

    def __init__(self, url: str) -> None:
        self._server = urlsplit(url)
        self.polls: list[int] = []  # the process of each look at a batch

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Listen, and return the address that stands for the provider's."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{self._server.path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pid = owner_of(*(writer.get_extra_info(end)[1] for end in ("peername", "sockname")))
        far_reader, far_writer = await asyncio.open_connection(self._server.hostname, self._server.port)
        back = asyncio.ensure_future(_pass(far_reader, writer))
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                line = data.partition(b"\r\n")[0]
                if line.startswith(b"GET") and b"/messages/batches/" in line and b"/results" not in line:
                    self.polls.append(pid)
                far_writer.write(data)
        for one in (far_writer, writer):
            one.transport.abort()
        await asyncio.wait({back})


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)


def owner_of(port: int, to: int) -> int:
    """Return the process that has the connection from a port to another one of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = [([int(end.rpartition(":")[2], 16) for end in row[1:3]], row[9]) for row in rows]
    (inode,) = [inode for ports, inode in ends if ports == [port, to]]
    for folder in Path("/proc").glob("[0-9]*/fd"):
        if f"socket:[{inode}]" in _opened_in(folder):
            return int(folder.parent.name)
    raise AssertionError(f"nobody has port {port}")


def _opened_in(folder: Path) -> set[str]:
    """Return what a process has open; a file that it closes meanwhile, as the one that lists them, is left out."""
    found = set()
    with contextlib.suppress(OSError):  # the process has ended
        for handle in folder.iterdir():
            with contextlib.suppress(OSError):
                found.add(str(handle.readlink()))
    return found


@pytest.mark.chaos
@pytest.mark.postgres
async def test_a_batch_that_two_processes_wait_for_is_polled_by_one_at_a_time(
    tmp_path: Path, database_url: str
) -> None:
    with ForkedRehearsal(batch_ms=BATCH_MS) as sim:
        log = RequestLog(sim.anthropic)
        async with log.listening() as address:
            stage = Stage(tmp_path / "stage", sim, {"ANTHROPIC_BASE_URL": address, "MUSTER_DATABASE_URL": database_url})
            declare_prices(stage.folder)
            await _park(stage)
            drivers = [await stage.start(_order(stage, name)) for name in ("one", "two")]
            try:
                await until(lambda: _all_driven(database_url, {driver.pid for driver in drivers}))
                first = await _poller(log)
                (killed,) = [driver for driver in drivers if driver.pid == first]
                (other,) = [driver for driver in drivers if driver.pid != first]
                assert (await killed.kill()).killed
                assert await _poller(log) == other.pid
                assert (await other.end()).run["state"] == "completed"
            finally:
                for driver in drivers:
                    await driver.kill()
            for name in ("one", "two"):
                assert (await stage.drive(_order(stage, name))).run["state"] == "completed"
        audit = law.read_audit(sim.audit_url)
        assert len(audit["batches"]) == 1
        with closing(await open_copy(stage.folder, stage.environment)) as database:
            assert list(law.violations(database, audit)) == []


def _order(stage: Stage, name: str) -> Order:
    return stage.order(CALLS, name=name, dispatch="batch", mixed=False, max_tokens=50, topic=f"run {name} ")


async def _park(stage: Stage) -> None:
    """Start both runs in one process, whose calls go into one batch, and let go of them."""
    settings = load_settings(folder=stage.folder, environment=stage.environment)
    async with open_muster(settings=settings, patience=replace(BRISK, settle=1.0)) as muster:
        for name in ("one", "two"):
            await muster.start("fleet", _order(stage, name).spec, name=name, dispatch="batch")
        await until(lambda: asyncio.to_thread(lambda: bool(law.read_audit(stage.sim.audit_url)["batches"])))


async def _all_driven(database_url: str, pids: set[int]) -> bool:
    """Return whether each of some processes drives a run."""
    async with await psycopg.AsyncConnection.connect(database_url) as session:
        found = await (await session.execute("SELECT driver_pid FROM runs")).fetchall()
    return {pid for (pid,) in found} == pids


async def _poller(log: RequestLog) -> int:
    """Return who polls from now on: one process and no other."""
    log.polls.clear()

    async def enough() -> bool:
        return len(log.polls) >= POLLS

    await until(enough)
    (pid,) = set(log.polls)
    return pid

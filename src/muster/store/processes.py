"""Processes of ours that nobody has seen dead yet, in the database."""

from collections.abc import Awaitable, Sequence

from muster.domain.process import OwnedProcess
from muster.domain.run import Driver
from muster.store.connection import Connection, Parameters, Row
from muster.store.writer import Writer


class DatabaseProcesses:
    """Which processes drivers have started."""

    def __init__(self, reader: Connection, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    def note(self, process: OwnedProcess) -> Awaitable[None]:
        """Remember a process."""
        driver = process.driver
        return self._write(
            "note_process",
            {
                "token": process.token,
                "driver_host": driver.host,
                "driver_pid": driver.pid,
                "driver_started": driver.started,
                "pid": process.pid,
                "started": process.started,
                "agent": process.agent,
                "noted_at": process.at,
            },
        )

    def forget(self, token: str) -> Awaitable[None]:
        """Forget a process that was seen dead."""
        return self._write("forget_process", {"token": token})

    async def all(self, host: str) -> Sequence[OwnedProcess]:
        """Give the processes of a host that nobody has seen dead."""
        return [_process_of(row) for row in self._reader.rows("select_processes", {"host": host})]

    def _write(self, query: str, parameters: Parameters) -> Awaitable[None]:
        def work(database: Connection) -> None:
            database.execute(query, parameters)

        return self._writer.run(work)


def _process_of(row: Row) -> OwnedProcess:
    return OwnedProcess(
        token=row["token"],
        driver=Driver(host=row["driver_host"], pid=row["driver_pid"], started=row["driver_started"]),
        at=row["noted_at"],
        pid=row["pid"],
        started=row["started"],
        agent=row["agent"],
    )

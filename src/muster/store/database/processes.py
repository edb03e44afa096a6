"""The workers of a store, and the processes that drivers have started, over any database."""

from collections.abc import Awaitable, Collection, Sequence

from muster.domain.run import Driver, OwnedProcess
from muster.store.base import PresentWorker
from muster.store.queries import DatabaseConnection, DatabaseReader, Parameters, Row
from muster.store.writer import Writer

WORKER_SECONDS = 86_400  # after which a worker that has not registered again is forgotten


class DatabaseProcesses:
    """Which workers are there, and which processes drivers have started."""

    def __init__(self, reader: DatabaseReader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    def note(self, process: OwnedProcess) -> Awaitable[None]:
        """Remember a process."""
        driver = process.driver
        return write_query(
            self._writer,
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
        return write_query(self._writer, "forget_process", {"token": token})

    async def all(self, host: str) -> Sequence[OwnedProcess]:
        """Return the processes of a host that nobody has seen dead."""
        return [_process_of(row) for row in await self._reader.rows("select_processes", {"host": host})]

    def register(self, driver: Driver, at: float, queues: Collection[str] = ()) -> Awaitable[Sequence[PresentWorker]]:
        """Register a worker, forget those that were killed long ago, and return all of them."""
        taken = " ".join(sorted(queues))

        def work(database: DatabaseConnection) -> Sequence[PresentWorker]:
            database.execute("register_worker", {**_driver_parameters(driver), "at": at, "queues": taken})
            database.execute("forget_workers", {"before": at - WORKER_SECONDS})
            return [_worker_of(row) for row in database.rows("select_workers", {"since": at - WORKER_SECONDS})]

        return self._writer.run(work)

    def dismiss(self, driver: Driver) -> Awaitable[None]:
        """Remove a worker."""

        def work(database: DatabaseConnection) -> None:
            database.execute("dismiss", _driver_parameters(driver))

        return self._writer.run(work)

    async def present(self, since: float) -> Sequence[PresentWorker]:
        """Return the workers that registered since then."""
        return [_worker_of(row) for row in await self._reader.rows("select_workers", {"since": since})]


def _process_of(row: Row) -> OwnedProcess:
    return OwnedProcess(
        token=row["token"],
        driver=Driver(host=row["driver_host"], pid=row["driver_pid"], started=row["driver_started"]),
        at=row["noted_at"],
        pid=row["pid"],
        started=row["started"],
        agent=row["agent"],
    )


def _worker_of(row: Row) -> PresentWorker:
    driver = Driver(host=row["host"], pid=row["pid"], started=row["started"])
    return PresentWorker(driver=driver, queues=frozenset(row["queues"].split()), seen_at=row["seen_at"])


def _driver_parameters(driver: Driver) -> Parameters:
    return {"host": driver.host, "pid": driver.pid, "started": driver.started}


def write_query(writer: Writer, query: str, parameters: Parameters) -> Awaitable[None]:
    """Run one query in a transaction of its own."""

    def work(database: DatabaseConnection) -> None:
        database.execute(query, parameters)

    return writer.run(work)

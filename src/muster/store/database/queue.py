"""What waits in the database: runs for workers, client after client, and endings that hooks are to be told of.

Clients and workloads are found by seeks in one index, so a look costs the same however many runs wait.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence

from muster.domain.ids import BatchId, RunId
from muster.domain.run import Run, RunState
from muster.store.base import Announcement, QueueTurn, SweptState, UnfinishedRuns
from muster.store.codec import run_of
from muster.store.database import runs
from muster.store.queries import DatabaseConnection, DatabaseReader, first
from muster.store.writer import Writer

WANTED = "hooks"  # the trait that says that endings are noted


class DatabaseQueue:
    """The runs that wait for a worker."""

    def __init__(self, reader: DatabaseReader) -> None:
        self._reader = reader

    async def workloads(self) -> Sequence[str]:
        """Return the workloads of runs that wait for a worker."""
        return await self._reader.read(_due_workloads)

    async def next(self, turn: QueueTurn) -> Run | None:
        """Return the oldest run of the client whose turn it is."""
        return await self._reader.read(lambda database: _next(database, turn))

    async def left_behind(self, at: float) -> SweptState:
        """Return what a sweep looks at."""
        return await self._reader.read(lambda database: _left_behind(database, at))

    async def unfinished(self, wanted: Callable[[str], bool], page: int, after: Run | None) -> UnfinishedRuns:
        """Return the runs that are not over."""
        return await self._reader.read(lambda database: _unfinished(database, wanted, page, after))

    async def starts(self, since: float) -> Sequence[tuple[str, float]]:
        """Return the clients whose requests started runs after a time, and when."""
        return [
            (row["client"], row["created_at"]) for row in await self._reader.rows("select_starts", {"since": since})
        ]


def _left_behind(database: DatabaseConnection, at: float) -> SweptState:
    with database.snapshot():
        return SweptState(
            driven=[run_of(row) for row in database.rows("select_runs_with_driver", {})],
            signals_due=bool(database.rows("select_due_roots", {"at": at})),
            orphans=[BatchId(row["id"]) for row in database.rows("select_orphans", {})],
        )


def _unfinished(
    database: DatabaseConnection, wanted: Callable[[str], bool], page: int, after: Run | None
) -> UnfinishedRuns:
    with database.snapshot():
        workloads = [name for name in _due_workloads(database) if wanted(name)]
        oldest = runs.submitted(database, page, workloads, None) if workloads else []
        further = runs.submitted(database, page, workloads, after or oldest[-1]) if len(oldest) == page else []
        known = {run.id for run in oldest}
        return UnfinishedRuns(
            due=[*oldest, *(run for run in further if run.id not in known)],
            after=further[-1] if len(further) == page else None,
            driven=[run_of(row) for row in database.rows("select_runs_with_driver", {})],
            waiting=runs.select(database, [RunState.WAITING], page),
        )


def _due_workloads(database: DatabaseConnection) -> Sequence[str]:
    found: list[str] = []
    while row := first(database.rows("next_due_workload", {"after": found[-1] if found else ""})):
        found.append(row["workload"])
    return found


def _next(database: DatabaseConnection, turn: QueueTurn) -> Run | None:
    clients = [_client(database, turn, workload) for workload in turn.workloads]
    found = [client for client in clients if client is not None]
    if not found:
        return None
    chosen = min(found, key=lambda client: (client <= turn.after, client))
    heads = [head for workload in turn.workloads if (head := _head(database, turn, workload, chosen)) is not None]
    # Another process may have taken it since.
    return runs.get(database, min(heads)[1]) if heads else None


def _client(database: DatabaseConnection, turn: QueueTurn, workload: str) -> str | None:
    """Return the next client that has a run of a workload which may be taken."""
    for client in _clients(database, workload, turn.after):
        if client not in turn.full and _head(database, turn, workload, client) is not None:
            return client
    return None


def _clients(database: DatabaseConnection, workload: str, after: str) -> Iterator[str]:
    """Yield the clients that have runs of a workload: those behind a client, then those from the first one on."""
    row = first(database.rows("next_due_client", {"workload": workload, "after": after}))
    while row is not None:
        yield row["client"]
        row = first(database.rows("next_due_client", {"workload": workload, "after": row["client"]}))
    row = first(database.rows("first_due_client", {"workload": workload}))
    while row is not None and row["client"] <= after:
        yield row["client"]
        row = first(database.rows("next_due_client", {"workload": workload, "after": row["client"]}))


def _head(database: DatabaseConnection, turn: QueueTurn, workload: str, client: str) -> tuple[float, RunId] | None:
    """Return the oldest run of a client and workload that is not left alone, with when it was created."""
    scope = {"workload": workload, "client": client, "limit": len(turn.passed) + 1}
    rows = database.rows("select_due", scope)
    return next(((row["created_at"], RunId(row["id"])) for row in rows if row["id"] not in turn.passed), None)


class DatabaseAnnouncements:
    """Runs of which hooks are still to be told."""

    def __init__(self, reader: DatabaseReader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    async def want(self, wanted: bool) -> None:
        """Begin or end to note runs."""
        known = bool(await self._reader.rows("select_trait", {"name": WANTED}))
        if known == wanted:
            return

        def work(database: DatabaseConnection) -> None:
            if wanted:
                database.execute("set_trait", {"name": WANTED, "value": ""})
            else:
                database.execute("delete_trait", {"name": WANTED, "value": ""})
                database.execute("delete_announcements", {})

        await self._writer.run(work)

    async def due(self, at: float, limit: int) -> Sequence[Announcement]:
        """Return what is to be told now."""
        rows = await self._reader.rows("select_announcements", {"at": at, "limit": limit})
        return [Announcement(run=RunId(row["run_id"]), seq=row["seq"], tries=row["tries"]) for row in rows]

    def take(self, one: Announcement, at: float, until: float) -> Awaitable[bool]:
        """Take what is due, until a time."""
        parameters = {"run_id": one.run, "seq": one.seq, "at": at, "until": until}
        return self._writer.run(lambda db: db.execute("postpone_announcement", parameters) > 0)

    def done(self, one: Announcement) -> Awaitable[None]:
        """Forget what was told."""

        def work(database: DatabaseConnection) -> None:
            database.execute("delete_announcement", {"run_id": one.run, "seq": one.seq})

        return self._writer.run(work)

"""Names of runs that others are compared with, in the database."""

from collections.abc import Awaitable, Sequence

from muster.domain.errors import BadArgument, NotFound
from muster.domain.ids import RunId
from muster.store import leases
from muster.store.base import Baseline
from muster.store.codec import Codec
from muster.store.connection import Connection, Row, first
from muster.store.writer import Writer


class DatabaseBaselines:
    """The baselines of this store."""

    def __init__(self, reader: Connection, writer: Writer, codec: Codec) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec

    def set(self, name: str, run: RunId, at: float) -> Awaitable[None]:
        """Let a name stand for a run, whatever it stood for before."""
        if self._codec.clean(name) != name:
            raise BadArgument("the name of the baseline holds a configured secret; use another name")

        def work(database: Connection) -> None:
            leases.get(database, run)
            database.execute("put_baseline", {"name": name, "run_id": run, "set_at": at})

        return self._writer.run(work)

    async def find(self, name: str) -> Baseline | None:
        """Give the baseline of this name."""
        row = first(self._reader.rows("select_baseline", {"name": name}))
        return _baseline_of(row) if row else None

    async def all(self) -> Sequence[Baseline]:
        """Give all baselines, by name."""
        return [_baseline_of(row) for row in self._reader.rows("select_baselines", {})]

    def remove(self, name: str) -> Awaitable[None]:
        """Forget a name; the run stays."""

        def work(database: Connection) -> None:
            if database.execute("delete_baseline", {"name": name}) == 0:
                raise NotFound(f"there is no baseline {name!r}", suggestions=("muster baseline list",))

        return self._writer.run(work)


def _baseline_of(row: Row) -> Baseline:
    return Baseline(name=row["name"], run=RunId(row["run_id"]), at=row["set_at"])

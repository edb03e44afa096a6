"""The pool in the database: slots, the tasks they were given, its driver and the context that slots share."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from math import inf

from muster.domain.canonical import Json
from muster.domain.entry import NewSignal
from muster.domain.errors import BadArgument
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import BudgetedCost, Driver, Run, RunState, Spent
from muster.store.base.pool import POOL, POOL_LEVEL, REACHABLE, PoolRecord, SlotOutcome, SlotRecord, SlotStanding
from muster.store.codec import Codec, read, run_of, spent_of
from muster.store.database.signals import address_lock, send
from muster.store.queries import DatabaseConnection, DatabaseReader, Locks, Parameters, Row, first
from muster.store.writer import Writer

LANES = ("reserved", "billed", "imputed", "uncertain")
SLOTS = Locks(names=("slots",))  # held by whoever reads which slots there are before a write


class DatabasePool:
    """The pool of this store."""

    def __init__(self, reader: DatabaseReader, writer: Writer, codec: Codec) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec

    async def slots(self) -> Sequence[SlotRecord]:
        """Return all slots in their order."""
        return [_slot_of(row) for row in await self._reader.rows("select_slots", {})]

    def add_slot(self, slot: SlotRecord) -> Awaitable[None]:
        """Store a slot; one with this name stays as it is."""
        values = {"name": self._codec.checked(slot.name), "place": slot.place, "state": str(slot.standing)}
        return self._write("insert_slot", values)

    def update_slot(self, slot: SlotRecord) -> Awaitable[None]:
        """Write whether a slot takes tasks, its failures and how many tasks it completed."""
        values = {
            "name": slot.name,
            "state": str(slot.standing),
            "failures": slot.failures,
            "error": self._codec.clean(slot.error),
            "completed": slot.completed,
        }
        return self._write("update_slot", values)

    def remove_slot(self, name: str) -> Awaitable[bool]:
        """Forget a slot that has no task."""
        return self._writer.run(lambda db: db.execute("delete_slot", {"name": name}) > 0, SLOTS)

    def message_slots(self, messages: Mapping[str, NewSignal]) -> Awaitable[Sequence[str]]:
        """Send its message to each slot that exists and is not stopped."""

        def work(database: DatabaseConnection) -> Sequence[str]:
            slots = [_slot_of(row) for row in database.rows("select_slots", {})]
            names = [slot.name for slot in slots if slot.name in messages and slot.standing in REACHABLE]
            for name in names:
                send(database, self._codec, messages[name])
            return names

        addresses = (address_lock(message.address) for message in messages.values())
        return self._writer.run(work, Locks(names=tuple(sorted((*SLOTS.names, *addresses)))))

    def assign(self, slot: str, run: RunId) -> Awaitable[bool]:
        """Give a task to a slot that is active and has none, and remember that it had it."""

        def work(database: DatabaseConnection) -> bool:
            given = {"name": slot, "run_id": run}
            return database.execute("assign_slot", given) > 0 and database.execute("put_slot_task", given) > 0

        return self._writer.run(work, SLOTS)  # no two slots may be given one task

    def free(self, slot: str, run: RunId) -> Awaitable[None]:
        """Take a task from a slot."""
        return self._write("free_slot", {"name": slot, "run_id": run})

    def note_outcome(self, outcome: SlotOutcome) -> Awaitable[None]:
        """Write how the last task of a slot ended."""
        values = {
            "name": outcome.slot,
            "failures": outcome.failures,
            "error": self._codec.clean(outcome.error),
            "completed": int(outcome.completed),
            "errored": int(outcome.errored),
        }
        return self._write("note_outcome", values)

    async def tasks(self, states: Iterable[RunState], limit: int = 10_000) -> Sequence[Run]:
        """Return the runs in some states, the oldest first."""
        found = [
            run_of(row)
            for state in states
            for row in await self._reader.rows("select_task_runs", {"state": str(state), "limit": limit})
        ]
        return sorted(found, key=lambda run: (run.created_at, run.id))[:limit]

    async def newest_tasks(self, before: Run | None = None, limit: int = 100) -> Sequence[Run]:
        """Return the newest tasks that were created before another one, the newest first."""
        created_at, id_ = (inf, "") if before is None else (before.created_at, before.id)
        scope = {"created_at": created_at, "id": id_, "limit": limit}
        return [run_of(row) for row in await self._reader.rows("select_newest_task_runs", scope)]

    async def count_tasks(self) -> Mapping[RunState, int]:
        """Return how many tasks are in each state."""
        return {RunState(row["state"]): row["number"] for row in await self._reader.rows("count_task_runs", {})}

    async def tasks_of_slot(self, slot: str, limit: int = 10) -> Sequence[RunId]:
        """Return the newest runs of tasks that a slot was the last to have, the newest first."""
        rows = await self._reader.rows("select_slot_tasks", {"slot": slot, "limit": limit})
        return [RunId(row["run_id"]) for row in rows]

    def keep_work(self, lineage: str, work: Mapping[str, Json]) -> Awaitable[None]:
        """Write what the branch of a task holds."""
        return self._write("put_task_work", {"lineage": lineage, "work": self._codec.text(work)})

    async def kept_work(self, lineage: str) -> Mapping[str, Json]:
        """Return what was last written by `keep_work` for a task."""
        row = first(await self._reader.rows("select_task_work", {"lineage": lineage}))
        found: Mapping[str, Json] = {} if row is None else read(row["work"]) or {}
        return found

    async def pool_cost(self) -> BudgetedCost:
        """Return what all tasks have cost, those that were deleted too, and may cost."""
        row = first(await self._reader.rows("select_levels", {"low": POOL_LEVEL, "high": f"{POOL_LEVEL} "}))
        return BudgetedCost() if row is None else BudgetedCost(spent=spent_of(row), cap=row["cap"])

    async def slot_costs(self) -> Mapping[str, Spent]:
        """Return what the tasks of each slot have cost, by its name."""
        rows = await self._reader.rows("sum_slot_costs", {})
        return {row["slot"]: Spent(**{lane: Microdollars(int(row[lane])) for lane in LANES}) for row in rows}

    async def pool(self) -> PoolRecord | None:
        """Return the pool; None when no task was ever submitted."""
        row = first(await self._reader.rows("select_pool", {"name": POOL}))
        return None if row is None else _pool_of(row)

    def create_pool(self, at: float) -> Awaitable[None]:
        """Store the pool with a budget that has no cap yet."""

        def work(database: DatabaseConnection) -> None:
            database.execute("insert_pool", {"name": POOL, "created_at": at})
            database.execute("insert_budget", {"id": POOL_LEVEL, "cap": None})

        return self._writer.run(work)

    def drain(self, until: float | None) -> Awaitable[None]:
        """Write that new work is refused, and until when tasks may go on; None: that it is taken again."""
        return self._write("drain_pool", {"name": POOL, "until": until})

    def drive_pool(self, driver: Driver, until: float, *, instead: Driver) -> Awaitable[bool]:
        """Let a driver have the pool, if nobody has it but the one that it comes after."""
        before = {f"{name}_before": value for name, value in _driver_parameters(instead).items()}
        parameters = {"name": POOL, "until": until, **_driver_parameters(driver), **before}
        return self._writer.run(lambda db: db.execute("drive_pool", parameters) > 0)

    def leave_pool(self, driver: Driver) -> Awaitable[None]:
        """Write that a driver drives the pool no more."""
        return self._write("leave_pool", {"name": POOL, **_driver_parameters(driver)})

    def cap_pool(self, cap: Microdollars) -> Awaitable[None]:
        """Set the cap of the pool's budget."""
        return self._write("cap_budget", {"id": POOL_LEVEL, "cap": cap})

    async def context(self) -> Mapping[str, str]:
        """Return all texts, in the order of their names."""
        return {row["name"]: row["value"] for row in await self._reader.rows("select_contexts", {})}

    def set_context(self, name: str, value: str, at: float) -> Awaitable[None]:
        """Set a text."""
        if self._codec.clean(name) != name:
            raise BadArgument("the name of a shared text contains a configured secret; use another name")
        return self._write("put_context", {"name": name, "value": self._codec.clean(value), "set_at": at})

    def delete_context(self, name: str) -> Awaitable[bool]:
        """Forget a text."""
        return self._writer.run(lambda db: db.execute("delete_context", {"name": name}) > 0)

    def _write(self, query: str, values: Parameters) -> Awaitable[None]:
        def work(database: DatabaseConnection) -> None:
            database.execute(query, values)

        return self._writer.run(work)


def _driver_parameters(driver: Driver) -> dict[str, str | int]:
    return {"host": driver.host, "pid": driver.pid, "started": driver.started}


def _slot_of(row: Row) -> SlotRecord:
    return SlotRecord(
        name=row["name"],
        place=row["place"],
        standing=SlotStanding(row["state"]),
        run=row["run_id"],
        failures=row["failures"],
        error=row["error"],
        completed=row["completed"],
    )


def _pool_of(row: Row) -> PoolRecord:
    driver = None
    if row["driver_pid"] is not None:
        driver = Driver(host=row["driver_host"], pid=row["driver_pid"], started=row["driver_started"])
    return PoolRecord(
        created_at=row["created_at"],
        drain_until=row["drain_until"],
        driver=driver,
        driven_until=row["driven_until"],
    )

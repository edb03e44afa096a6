"""Signals in the database: sent once, taken once and in order, with the journal entry that remembers them."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence

from muster.domain.entry import AwaitedSignal, Entry, EntryKind, EntryState, NewSignal, Signal
from muster.domain.errors import Conflict
from muster.domain.ids import RunId
from muster.domain.run import Run
from muster.store.base.signals import SignalTaking
from muster.store.codec import Codec, entry_parameters, read
from muster.store.database.calls.events import NewEvent, write_event
from muster.store.database.calls.journal import check_fence, find, write_entry
from muster.store.queries import DatabaseConnection, DatabaseReader, Locks, Row, first
from muster.store.writer import Writer

OUTSIDE = "outside"  # taken by nobody's run


def address_lock(address: str) -> str:
    """Return the lock of an address: whoever sends to it, waits at it or takes from it has it for itself.

    Else a signal could come just when a run begins to wait for it, and neither would see the other.
    """
    return f"address:{address}"


class DatabaseSignals:
    """The signals of this store."""

    def __init__(self, reader: DatabaseReader, writer: Writer, codec: Codec) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec

    def send(self, signal: NewSignal) -> Awaitable[Signal]:
        """Store a signal and queue the runs that wait for it."""
        return self._writer.run(lambda db: send(db, self._codec, signal), _at(signal.address))

    def wake(self, at: float) -> Awaitable[int]:
        """Queue the runs that have waited for a signal until the end of their time."""

        def work(database: DatabaseConnection) -> int:
            roots = [RunId(row["root_id"]) for row in database.rows("select_due_roots", {"at": at})]
            return sum(queue_awaiting(database, self._codec, root, at) for root in roots)

        return self._writer.run(work)

    def take(self, taking: SignalTaking) -> Awaitable[Sequence[Signal] | None]:
        """Take what is there and remember it under the key."""
        locks = Locks(names=(address_lock(taking.address),), runs=(taking.run,))
        return self._writer.run(lambda db: take(db, self._codec, taking), locks)

    def mark_read(self, address: str, channel: str, limit: int) -> Awaitable[Sequence[Signal]]:
        """Return what is there to a reader outside of any run."""
        scope = {"address": address, "channel": channel}
        return self._writer.run(lambda db: _take_rows(db, scope, limit, OUTSIDE), _at(address))

    async def untaken(self, address: str, channel: str, limit: int = 1) -> Sequence[Signal]:
        """Return the signals of a channel that nobody has taken, in order."""
        scope = {"address": address, "channel": channel, "limit": limit}
        return [signal_of(row) for row in await self._reader.rows("select_untaken_signals", scope)]

    async def read(self, address: str, channel: str, after: int = 0, limit: int = 100) -> Sequence[Signal]:
        """Return the signals of a channel after a number, taken or not, in order."""
        scope = {"address": address, "channel": channel, "after": after, "limit": limit}
        return [signal_of(row) for row in await self._reader.rows("select_signals", scope)]


def _at(address: str) -> Locks:
    return Locks(names=(address_lock(address),))


def send(database: DatabaseConnection, codec: Codec, new: NewSignal) -> Signal:
    """Store a signal, once for each client id, and queue the runs that wait for it."""
    client = {"address": codec.checked(new.address), "client_id": codec.checked(new.client_id)}
    payload = codec.text(new.payload)
    known = first(database.rows("select_signal_of_client", client))
    if known is not None:
        if (known["channel"], known["payload"]) != (new.channel, payload):
            raise Conflict(f"the client id {new.client_id!r} was used for another signal")
        return signal_of(known)
    sender, channel = codec.clean(new.sender), codec.checked(new.channel)
    more = {"channel": channel, "payload": payload, "sender": sender, "sent_at": new.at}
    stored = database.rows("insert_signal", client | more)[0]
    if new.number not in (None, stored["seq"]):
        raise Conflict(f"another {new.channel} was sent meanwhile")
    for row in database.rows("select_awaiting_roots", {"address": new.address, "channel": channel}):
        queue_awaiting(database, codec, RunId(row["root_id"]), new.at)
    return signal_of(stored)


def take(database: DatabaseConnection, codec: Codec, taking: SignalTaking) -> Sequence[Signal] | None:
    """Take the next signals of a channel and remember them; a second time gives back what the first one took."""
    check_fence(database, taking.run, taking.epoch)
    known = find(database, taking.run, taking.key)
    if known is not None:
        return signals_of(known)
    scope = {"address": taking.address, "channel": taking.channel}
    found = _take_rows(database, scope, taking.most, taking.run, taking.only)
    if not found and not taking.even_none:
        return None
    entry = Entry(
        run=taking.run,
        key=codec.checked(taking.key),
        kind=EntryKind.SIGNAL,
        state=EntryState.DONE,
        digest=taking.digest,
        value=[signal._asdict() for signal in found],
        opened_at=taking.at,
        settled_at=taking.at,
    )
    write_entry(database, entry_parameters(entry, codec))
    for signal in found:
        data = {"key": taking.key, "channel": signal.channel, "sender": signal.sender, "signal": signal.seq}
        write_event(database, codec, NewEvent(run=taking.run, kind="signal.received", data=data, at=taking.at))
    return found


def _take_rows(
    database: DatabaseConnection, scope: Mapping[str, str], most: int, taker: str, only: Sequence[int] = ()
) -> list[Signal]:
    rows = database.rows("select_untaken_signals", {**scope, "limit": most})
    rows = [row for row in rows if not only or row["seq"] in only]
    for row in rows:
        database.execute("take_signal", {**scope, "seq": row["seq"], "taken_by": taker})
    return [signal_of(row) for row in rows]


def signals_of(entry: Entry) -> Sequence[Signal]:
    """Return the signals that an entry of the journal remembers."""
    return [Signal(**one) for one in entry.value]


def begin_awaiting(database: DatabaseConnection, run: Run, root: RunId, awaited: Iterable[AwaitedSignal]) -> None:
    """Note what a run that is let go of waits for."""
    for one in awaited:
        scope = {"address": one.address, "channel": one.channel, "until": one.until}
        database.execute("insert_await", {"run_id": run.id, "root_id": root, **scope})


def queue_answered(database: DatabaseConnection, codec: Codec, root: RunId, at: float) -> bool:
    """Queue a run that was let go of while a signal for it, or for a child of it, arrived."""
    answered = database.rows("select_answered_await", {"root_id": root})
    return bool(answered) and queue_awaiting(database, codec, root, at)


def queue_awaiting(database: DatabaseConnection, codec: Codec, run: RunId, at: float) -> bool:
    """Hand a run that waits for a signal to the workers; False when it does not wait, or is driven."""
    if database.execute("wake_run", {"id": run}) == 0:
        return False
    write_event(database, codec, NewEvent(run=run, kind="run.queued", data={}, at=at))
    return True


def signal_of(row: Row) -> Signal:
    """Read a signal."""
    return Signal(
        channel=row["channel"], seq=row["seq"], payload=read(row["payload"]), sender=row["sender"], at=row["sent_at"]
    )

"""Questions in the database: a call without an attempt, answered once by a signal that becomes its reply."""

from collections.abc import Awaitable, Sequence
from typing import NoReturn

from muster.domain.call import Reply, Timings
from muster.domain.entry import (
    ANSWERS,
    Entry,
    EntryKind,
    EntryState,
    NewSignal,
    SentAnswer,
    Signal,
    answer_channel,
    question_command,
)
from muster.domain.errors import Conflict, NotFound, state_verb
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL
from muster.store.base.questions import AnswerTaking, QuestionOpening
from muster.store.codec import Codec, entry_of, entry_parameters, read, run_of
from muster.store.database.calls.events import EventBuffer, NewEvent
from muster.store.database.calls.journal import check_fence, find, write_entry
from muster.store.database.signals import address_lock, send, signal_of
from muster.store.queries import DatabaseConnection, DatabaseReader, Locks, Row, first
from muster.store.writer import Writer


class DatabaseQuestions:
    """The questions of this store."""

    def __init__(self, reader: DatabaseReader, writer: Writer, codec: Codec) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec

    def ask(self, opening: QuestionOpening) -> Awaitable[float]:
        """Open a call and tell it, or one that failed again; return since when it is open."""
        return self._writer.run(lambda db: ask(db, self._codec, opening), Locks(runs=(opening.run,)))

    def settle(self, taking: AnswerTaking) -> Awaitable[Reply | None]:
        """Take the answer and make it the reply, both or neither; None when there is no answer."""
        locks = Locks(names=(address_lock(taking.address),), runs=(taking.run,))
        return self._writer.run(lambda db: settle(db, self._codec, taking), locks)

    async def unanswered(self, run: RunId) -> Sequence[Entry]:
        """Return the open questions of a run and of those below it that nobody has answered, in order."""
        return [entry_of(row) for row in await self._reader.rows("select_unanswered_questions", {"run_id": run})]

    async def sent(self, run: RunId, client_id: str) -> SentAnswer | None:
        """Return the answer with a client id to a question of a run, its lineage or those below them, taken or not."""
        row = first(await self._reader.rows("select_answer_of_client", {"run_id": run, "client_id": client_id}))
        if row is None:
            return None
        signal = signal_of(row)
        return SentAnswer(run=RunId(row["run_id"]), key=signal.channel.removeprefix(ANSWERS), signal=signal)

    def answer(self, run: RunId, key: str, answer: NewSignal) -> Awaitable[Signal]:
        """Store the answer to an open question; raises Conflict for one that is not open, or is answered."""
        locks = Locks(names=(address_lock(answer.address),), runs=(run,))
        return self._writer.run(lambda db: answer_question(db, self._codec, run, key, answer), locks)


def ask(database: DatabaseConnection, codec: Codec, opening: QuestionOpening) -> float:
    """Write a call without an attempt; one that is open stays as it is, one that failed is asked again."""
    check_fence(database, opening.run, opening.epoch)
    known = find(database, opening.run, opening.key)
    if known is not None and known.attempts:
        raise Conflict(
            f"call {opening.key!r} was sent when agent {opening.agent!r} was not a person",
            suggestions=(f"muster runs fork {opening.run} --from {opening.key}",),
        )
    if known is not None and known.state is EntryState.OPEN:
        return known.opened_at
    if known is None:
        write_entry(database, _parameters(opening, codec))
    else:
        name = {"run_id": opening.run, "key": opening.key}
        database.execute("reopen_question", name | {"at": opening.at})
    buffer = EventBuffer(database, codec)
    tally = buffer.tally(opening.run)
    tally.total += known is None
    tally.failed -= known is not None
    data = {
        "key": opening.key,
        "agent": opening.agent,
        "channel": answer_channel(opening.key),
        "read_with": question_command(opening.run, opening.key),
    }
    buffer.add(NewEvent(run=opening.run, kind="call.asked", data=data, at=opening.at))
    buffer.write()
    return opening.at


def _parameters(opening: QuestionOpening, codec: Codec) -> dict[str, object]:
    entry = Entry(
        run=opening.run,
        key=codec.checked(opening.key),
        kind=EntryKind.CALL,
        state=EntryState.OPEN,
        digest=opening.digest,
        agent=opening.agent,
        opened_at=opening.at,
    )
    return entry_parameters(entry, codec) | {"request": codec.clean(opening.request)}


def settle(database: DatabaseConnection, codec: Codec, taking: AnswerTaking) -> Reply | None:
    """Make the answer the reply of its call, or let the call fail when there is none and its time is over."""
    check_fence(database, taking.run, taking.epoch)
    entry = find(database, taking.run, taking.key)
    if entry is None:
        raise NotFound(f"run {taking.run} has no call under the key {taking.key!r}")
    if entry.reply is not None:
        return entry.reply
    row = _untaken(database, taking.address, taking.key)
    if row is not None:
        return _finish(database, codec, taking, entry, row)
    if taking.failure is not None:
        _fail(database, codec, taking)
    return None


def _finish(database: DatabaseConnection, codec: Codec, taking: AnswerTaking, entry: Entry, row: Row) -> Reply:
    payload = read(row["payload"])
    timings = Timings(waited=max(0.0, row["sent_at"] - entry.opened_at))
    reply = Reply(text=payload["text"], timings=timings, attempt=0)
    name = {"run_id": taking.run, "key": taking.key, "at": taking.at}
    scope = {"address": taking.address, "channel": row["channel"], "seq": row["seq"]}
    database.execute("take_signal", scope | {"taken_by": taking.run})
    database.execute("finish_call", name)
    database.execute("insert_outcome", name | {"outcome": codec.text(reply)})
    buffer = EventBuffer(database, codec)
    buffer.tally(taking.run).done += 1
    data = {"key": taking.key, "cost": 0, "quality": str(reply.quality), "sender": row["sender"]}
    buffer.add(NewEvent(run=taking.run, kind="call.done", data=data, at=taking.at))
    buffer.write()
    return reply


def _fail(database: DatabaseConnection, codec: Codec, taking: AnswerTaking) -> None:
    name = {"run_id": taking.run, "key": taking.key, "at": taking.at}
    database.execute("fail_call", name | {"error": codec.text(taking.failure)})
    buffer = EventBuffer(database, codec)
    buffer.tally(taking.run).failed += 1
    data = {"key": taking.key, "cost": 0, "error": taking.failure}
    buffer.add(NewEvent(run=taking.run, kind="call.failed", data=data, at=taking.at))
    buffer.write()


def answer_question(database: DatabaseConnection, codec: Codec, run: RunId, key: str, answer: NewSignal) -> Signal:
    """Store an answer if its question is open and has none; two who answer at once are told apart here."""
    known = database.rows("select_signal_of_client", {"address": answer.address, "client_id": answer.client_id})
    if not known:
        _require_unanswered(database, run, key, answer.address)
    return send(database, codec, answer)


def _require_unanswered(database: DatabaseConnection, run: RunId, key: str, address: str) -> None:
    row, entry = first(database.rows("select_run", {"id": run})), find(database, run, key)
    if row is None:
        raise NotFound(f"run {run} not found")
    found = run_of(row)
    if found.state in TERMINAL:
        raise Conflict(f"run {run} {state_verb(found.state)}; it no longer waits for an answer")
    if entry is None or entry.kind is not EntryKind.CALL:
        raise NotFound(f"run {run} has no call under the key {key!r}", suggestions=(f"muster runs show {run} --calls",))
    if entry.state is not EntryState.OPEN or entry.attempts:
        _refuse(entry)
    if _untaken(database, address, key) is not None:
        raise Conflict(f"call {key!r} of run {run} is answered already; the run has not gone on yet")


def _refuse(entry: Entry) -> NoReturn:
    if entry.attempts and entry.state is EntryState.OPEN:
        raise Conflict(f"call {entry.key!r} of run {entry.run} is open, but agent {entry.agent!r} is not a person")
    words = {EntryState.DONE: "is done: it has an answer", EntryState.FAILED: "has failed: its time was over"}
    raise Conflict(
        f"call {entry.key!r} of run {entry.run} {words[entry.state]}",
        suggestions=(question_command(entry.run, entry.key),),
    )


def _untaken(database: DatabaseConnection, address: str, key: str) -> Row | None:
    scope = {"address": address, "channel": answer_channel(key), "limit": 1}
    return first(database.rows("select_untaken_signals", scope))

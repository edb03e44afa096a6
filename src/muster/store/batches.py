"""Batches in the database: planned with their members and money, moved on, settled page by page."""

import asyncio
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence

from muster.domain.batch import Batch, BatchMember, BatchShare, BatchState, Member, Plan, Saving
from muster.domain.budget import Decision, Granted
from muster.domain.canonical import Json
from muster.domain.entry import AttemptState, EntryState, Opening, Settlement
from muster.domain.errors import BadArgument, KeyTaken, MusterError
from muster.domain.ids import BatchId, RunId
from muster.domain.money import Lane
from muster.store.base import Advance, BatchClaim, Dismissal, ResultPage
from muster.store.batch_codec import (
    MemberRow,
    batch_of,
    batch_parameters,
    member_of,
    plan_parameters,
    restored_parameters,
    saving_of,
    share_of,
)
from muster.store.codec import Codec
from muster.store.events import Fact, Telling
from muster.store.journal import Fences, Settling, bookings, call_parameters, end_calls, write_calls
from muster.store.ledger import Reservations, book, total
from muster.store.queries import DatabaseConnection, first
from muster.store.writer import Writer

NONCE = "nonce"
PAGE = 1000
PACKING = 1  # of zlib: the next step saves little and costs much


def plan_batch(database: DatabaseConnection, codec: Codec, plan: Plan) -> Sequence[Decision | MusterError]:
    """Store a batch with its members and their money; when one of them is not granted, nothing is written."""
    decisions = _decide(database, plan.members)
    if all(isinstance(decision, Granted) for decision in decisions):
        _write_members(database, codec, plan)
        _write_batch(database, codec, plan)
    return decisions


def _decide(database: DatabaseConnection, members: Sequence[Member]) -> Sequence[Decision | MusterError]:
    fences = Fences(database)
    openings = [member.opening for member in members]
    reservations = Reservations(database, (level for opening in openings for level in opening.levels))
    decisions: list[Decision | MusterError] = []
    for opening in openings:
        stale = fences.stale(opening.attempt.run, opening.attempt.epoch) or _answered(database, opening)
        decisions.append(stale or reservations.request(opening.levels, opening.most))
    if all(isinstance(decision, Granted) for decision in decisions):
        reservations.write()
    return decisions


def _answered(database: DatabaseConnection, opening: Opening) -> KeyTaken | None:
    """Refuse a call that was answered since its caller looked: another process may have collected it meanwhile."""
    if opening.first:
        return None
    row = first(database.rows("select_entry", {"run_id": opening.attempt.run, "key": opening.attempt.key}))
    return KeyTaken("the call has its reply by now") if row and row["state"] == EntryState.DONE else None


def _write_members(database: DatabaseConnection, codec: Codec, plan: Plan) -> None:
    calls = [
        call_parameters(member.opening, codec)
        | {"batch_id": plan.id, "place": member.place, "size": member.size, "max_tokens": member.max_tokens}
        for member in plan.members
    ]
    write_calls(database, calls)
    database.execute_many("park_attempt", calls)


def _write_batch(database: DatabaseConnection, codec: Codec, plan: Plan) -> None:
    database.execute("insert_batch", plan_parameters(plan, codec))
    bodies = [{"batch_id": plan.id, "part": part, "data": data} for part, data in enumerate(plan.bodies)]
    for body in bodies:
        database.execute("insert_batch_body", body)
    members = Counter(member.opening.attempt.run for member in plan.members)
    runs = [{"batch_id": plan.id, "run_id": run, "members": count} for run, count in members.items()]
    database.execute_many("insert_batch_run", runs)
    telling = Telling(database, codec)
    for member in plan.members:
        tally = telling.tally(member.opening.attempt.run)
        tally.total += member.opening.first
        tally.failed -= member.opening.reopens
    for run, count in members.items():
        data = {"batch": plan.id, "members": count, "requests": len(plan.members), "bytes": plan.bytes}
        telling.tell(Fact(run=run, kind="batch.planned", data=data, at=plan.at))
    telling.write()


def claim(database: DatabaseConnection, request: BatchClaim) -> Batch | None:
    """Claim a planned or sent batch if nobody has since it was read."""
    batch, driver = request.batch, request.driver
    who = {"host": driver.host, "pid": driver.pid, "started": driver.started}
    parameters = {"id": batch.id, "epoch": batch.epoch, "at": request.at, "until": request.until, **who}
    if batch.state is BatchState.PLANNED:
        account = {"account": batch.desk.account, "alone": int(request.alone)}
        claimed = database.execute("claim_planned_batch", parameters | account)
    else:
        # One whose holder has renewed it since it was read is not free.
        claimed = database.execute("claim_sent_batch", parameters | {"seen": batch.lease_until})
    row = first(database.rows("select_batch", {"id": batch.id})) if claimed else None
    return batch_of(row) if row else None


def advance(database: DatabaseConnection, codec: Codec, step: Advance) -> bool:
    """Write a batch's next state and tell it to its runs."""
    if database.execute("update_batch", batch_parameters(step.batch, codec) | {"was": str(step.was)}) == 0:
        return False
    data: dict[str, Json] = {"batch": step.batch.id, "provider_id": step.batch.provider_id}
    if step.kind == "batch.progress":
        data |= {"word": step.batch.word, "done": step.batch.done}
    else:
        data["why"] = step.batch.note
    if step.batch.error is not None:
        data["error"] = step.batch.error
    _tell_runs(database, codec, step.batch.id, step.kind, data, step.at)
    return True


def dismiss(database: DatabaseConnection, codec: Codec, dismissal: Dismissal) -> bool:
    """End a batch and give all members that have no outcome the same one."""
    batch, at = dismissal.advance.batch.id, dismissal.advance.at
    if not advance(database, codec, dismissal.advance):
        return False
    while rows := database.named_rows("select_parked", {"batch_id": batch, "after": -1, "limit": PAGE}, MemberRow):
        members = [member_of(row) for row in rows]
        settlements = [
            Settlement(
                attempt=member.attempt,
                outcome=dismissal.outcome,
                reserved=member.reserved,
                levels=member.levels,
                at=at,
            )
            for member in members
        ]
        page = ResultPage(batch=batch, settlements=settlements, at=at)
        settle_page(database, codec, page, settlings(codec, page))
    return True


def _tell_runs(
    database: DatabaseConnection, codec: Codec, batch: BatchId, kind: str, data: Mapping[str, Json], at: float
) -> None:
    telling = Telling(database, codec)
    for row in database.rows("select_runs_of_batch", {"batch_id": batch}):
        telling.tell(Fact(run=RunId(row["run_id"]), kind=kind, data=data, at=at))
    telling.write()


class NotAllParked(Exception):
    """A member of a page, or its call, has its outcome already; the page must be gone through one by one."""


def settlings(codec: Codec, page: ResultPage) -> list[Settling]:
    """Spell the settlements of a page, each as it comes."""
    return [Settling(settlement, codec) for settlement in page.settlements]


def settle_page(database: DatabaseConnection, codec: Codec, page: ResultPage, rows: Sequence[Settling]) -> int:
    """Settle the members of a page that are still parked, and keep the lines they were read from."""
    settled = _settle_parked(database, rows)
    if page.lines and (settled or not rows):  # else whoever settled them has kept them
        data = zlib.compress(codec.clean_bytes(b"".join(page.lines)), PACKING)
        database.execute("insert_batch_lines", {"batch_id": page.batch, "data": data})
    _write_outcomes(database, codec, page, settled)
    return len(settled)


def _settle_parked(database: DatabaseConnection, rows: Sequence[Settling]) -> Sequence[Settling]:
    """Settle attempts and give those that were still parked."""
    try:
        with database.savepoint():
            if database.execute_many("settle_parked", [row.columns for row in rows]) != len(rows):
                raise NotAllParked
    except NotAllParked:
        return [row for row in rows if database.execute_many("settle_parked", [row.columns])]
    return rows


def _write_outcomes(database: DatabaseConnection, codec: Codec, page: ResultPage, rows: Sequence[Settling]) -> None:
    telling = Telling(database, codec)
    for row in rows:
        if row.reply is None:
            row.count(telling)
        if row.reply is None or row.cost > row.reserved or row.lane is Lane.UNCERTAIN:
            row.tell(telling)
    for run, done in _end_calls(database, rows).items():
        telling.tally(run).done += done
        # One fact for all replies of a page: who follows a run of a hundred thousand calls wants to know how far it is.
        telling.tell(Fact(run=run, kind="batch.settled", data={"batch": page.batch, "done": done}, at=page.at))
    book(database, bookings(rows))
    telling.write()
    database.execute("count_batch", {"id": page.batch} | _counts(rows))


def _end_calls(database: DatabaseConnection, rows: Sequence[Settling]) -> Counter[RunId]:
    """Write the outcomes of calls and return how many replies each run got by that.

    A late reply of a driver before may have been faster than the batch: then the call has its reply already.
    """
    answered = [row for row in rows if row.reply is not None]
    try:
        with database.savepoint():
            if end_calls(database, rows) != len(answered):
                raise NotAllParked
    except NotAllParked:
        return Counter([row.run for row in rows if end_calls(database, [row])])
    return Counter([row.run for row in answered])


def _counts(rows: Sequence[Settling]) -> dict[str, int]:
    states = Counter([row.state for row in rows])
    usages = [row.reply.usage for row in rows if row.reply is not None]
    return {
        "succeeded": states[AttemptState.SUCCEEDED],
        "errored": states[AttemptState.FAILED],
        "canceled": states[AttemptState.CANCELED],
        "expired": states[AttemptState.EXPIRED],
        "uncertain": states[AttemptState.UNCERTAIN],
        "cost": total([row.cost for row in rows if row.reply is not None and row.lane is not Lane.UNCERTAIN]),
        "live_cost": total([row.live_cost for row in rows]),
        "input_tokens": total([usage.all_input for usage in usages]),
        "output_tokens": total([usage.output for usage in usages]),
    }


def give_up(
    database: DatabaseConnection, codec: Codec, run: RunId, epoch: int, key: str, error: Mapping[str, Json], at: float
) -> None:
    """Note that a call has failed in enough batches."""
    Fences(database).check(run, epoch)
    parameters = {"run_id": run, "key": key, "error": codec.text(error), "at": at}
    if database.execute_many("fail_call", [parameters]):
        telling = Telling(database, codec)
        telling.tally(run).failed += 1
        telling.tell(Fact(run=run, kind="call.failed", data={"key": key, "error": error}, at=at))
        telling.write()


def restore_batch(
    database: DatabaseConnection, codec: Codec, batch: Batch, members: Sequence[BatchMember], levels: Sequence[str]
) -> None:
    """Store a batch from elsewhere with the members of one run; their money is reserved under its budgets."""
    database.execute("restore_batch", restored_parameters(batch, codec))
    for member in members:
        row = member.attempt._asdict() | {
            "run_id": member.attempt.run,
            "reserved": member.reserved,
            "levels": " ".join(levels),
            "at": batch.created_at,
            "agent": member.agent,
            "batch_id": batch.id,
            "place": member.place,
            "size": member.size,
            "max_tokens": member.max_tokens,
        }
        if database.execute("restore_attempt", row):
            for level in levels:
                database.execute("reserve_again", {"id": level, "amount": member.reserved})
            database.execute("hold_more", {"id": batch.id, "reserved": member.reserved})
    for run, count in Counter(member.attempt.run for member in members).items():
        database.execute("count_batch_run", {"batch_id": batch.id, "run_id": run, "members": count})


class DatabaseBatches:
    """The batches behind the door, read on one connection and written on another."""

    def __init__(self, reader: DatabaseConnection, writer: Writer, codec: Codec) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec

    async def get(self, batch: BatchId) -> Batch | None:
        """Give a batch as it stands."""
        row = first(self._reader.rows("select_batch", {"id": batch}))
        return batch_of(row) if row else None

    async def select(self, states: Iterable[BatchState] = (), limit: int = 100) -> Sequence[Batch]:
        """Give the newest batches, of these states if any are named."""
        wanted = tuple(states)
        if not wanted:
            return [batch_of(row) for row in self._reader.rows("select_batches", {"limit": limit})]
        found = [
            batch_of(row)
            for state in wanted
            for row in self._reader.rows("select_batches_in_state", {"state": str(state), "limit": limit})
        ]
        return sorted(found, key=lambda batch: (batch.created_at, batch.id), reverse=True)[:limit]

    async def since(self, at: float) -> Sequence[Batch]:
        """Give the batches that were planned since then, the oldest first."""
        return [batch_of(row) for row in self._reader.rows("select_batches_since", {"since": at})]

    async def match(self, reference: str) -> Sequence[Batch]:
        """Give the batches that an id, the beginning of one, or the provider's id stands for."""
        parameters = {"reference": reference, "after": reference + "{"}
        return [batch_of(row) for row in self._reader.rows("match_batches", parameters)]

    async def of_run(self, run: RunId) -> Sequence[Batch]:
        """Give the batches that hold calls of a run, the oldest first."""
        return [batch_of(row) for row in self._reader.rows("select_batches_of_run", {"run_id": run})]

    async def runs(self, batch: BatchId) -> Mapping[RunId, int]:
        """Give the runs that have calls in a batch, and how many."""
        rows = self._reader.rows("select_runs_of_batch", {"batch_id": batch})
        return {RunId(row["run_id"]): row["members"] for row in rows}

    async def known(self, account: str) -> frozenset[str]:
        """Give the provider's ids of all batches of an account."""
        return frozenset(row["provider_id"] for row in self._reader.rows("select_known_batches", {"account": account}))

    async def parked(self, run: RunId, key: str) -> tuple[BatchId, int] | None:
        """Give the batch in which a call waits, and its place there."""
        row = first(self._reader.rows("select_parked_call", {"run_id": run, "key": key}))
        return (BatchId(row["batch_id"]), row["place"]) if row else None

    async def members(self, batch: BatchId, first: int, after: int) -> Sequence[BatchMember]:
        """Give the members from one place up to, and without, another."""
        parameters = {"batch_id": batch, "first": first, "after": after}
        return [member_of(row) for row in self._reader.named_rows("select_members", parameters, MemberRow)]

    async def waiting(self, batch: BatchId, after: int, limit: int) -> Sequence[BatchMember]:
        """Give the members that have no outcome, by place."""
        parameters = {"batch_id": batch, "after": after, "limit": limit}
        return [member_of(row) for row in self._reader.named_rows("select_parked", parameters, MemberRow)]

    async def max_tokens(self, batch: BatchId) -> int:
        """Return the most tokens that all answers of a batch together may have."""
        row = first(self._reader.rows("sum_max_tokens", {"batch_id": batch}))
        return int(row["tokens"]) if row else 0

    async def orphans(self) -> Sequence[BatchId]:
        """Return the batches of canceled runs that nobody has canceled yet."""
        return [BatchId(row["id"]) for row in self._reader.rows("select_orphans", {})]

    async def abandoned(self, run: RunId, key: str, after: int) -> int:
        """Return how many attempts of a call, after the one of this number, were in batches that were given up."""
        row = first(self._reader.rows("count_abandoned", {"run_id": run, "key": key, "after": after}))
        return int(row["tries"]) if row else 0

    def bodies(self, batch: BatchId) -> AsyncIterator[bytes]:
        """Give the pieces of the body."""
        return self._pieces("select_batch_bodies", batch)

    def lines(self, batch: BatchId) -> AsyncIterator[bytes]:
        """Give the lines of results that were read, in pieces."""
        return self._pieces("select_batch_lines", batch)

    async def saving(self, run: RunId) -> Saving:
        """Say what a run's batches cost."""
        return saving_of(first(self._reader.rows("sum_batches_of_run", {"run_id": run})))

    async def shares(self, run: RunId, prefix: str) -> Sequence[BatchShare]:
        """Return what the calls of a run whose keys begin so had in each of its batches."""
        parameters = {"run_id": run, "prefix": prefix, "length": len(prefix)}
        return [share_of(row) for row in self._reader.rows("sum_batches_of_keys", parameters)]

    def nonce(self, fresh: str) -> Awaitable[str]:
        """Give the nonce of this store; the first call makes it."""

        def work(database: DatabaseConnection) -> str:
            database.execute("put_trait", {"name": NONCE, "value": fresh})
            row = first(database.rows("select_trait", {"name": NONCE}))
            return str(row["value"]) if row else fresh

        return self._writer.run(work)

    def check(self, key: str, text: str) -> None:
        """Refuse a call whose key or request holds a configured secret."""
        self._codec.checked(key)
        if self._codec.clean(text) != text:
            raise BadArgument(
                "a request holds a configured secret, and the bodies of a batch are stored as they are sent",
                suggestions=("take the secret out of the prompt", "or send the call live"),
            )

    async def pack(self, piece: bytes) -> bytes:
        """Make a piece of a body ready to be stored."""
        return await asyncio.to_thread(zlib.compress, piece, PACKING)

    def plan(self, plan: Plan) -> Awaitable[Sequence[Decision | MusterError]]:
        """Reserve the money of all members and store the batch, or neither."""
        return self._writer.run(lambda db: plan_batch(db, self._codec, plan))

    def claim(self, claim_: BatchClaim) -> Awaitable[Batch | None]:
        """Claim a planned or sent batch, and return it as it then is."""
        return self._writer.run(lambda db: claim(db, claim_))

    def renew(self, batch: Batch, until: float) -> Awaitable[bool]:
        """Extend the claim on a batch; False when it is lost."""
        parameters = {"id": batch.id, "epoch": batch.epoch, "until": until}
        return self._writer.run(lambda db: db.execute("renew_batch", parameters) == 1)

    def release(self, batch: Batch) -> Awaitable[bool]:
        """Give up the claim on a batch; False when it is lost, or not needed any more."""
        parameters = {"id": batch.id, "epoch": batch.epoch}
        return self._writer.run(lambda db: db.execute("release_batch", parameters) == 1)

    def advance(self, advance_: Advance) -> Awaitable[bool]:
        """Write a batch's next state; False when it is not any more where it was."""
        return self._writer.run(lambda db: advance(db, self._codec, advance_))

    def dismiss(self, dismissal: Dismissal) -> Awaitable[bool]:
        """End a batch and settle its members in one go."""
        return self._writer.run(lambda db: dismiss(db, self._codec, dismissal))

    def settle(self, page: ResultPage) -> Awaitable[int]:
        """Settle members that are still parked and say how many."""
        rows = settlings(self._codec, page)  # here and not in the writer's thread: what is read was just made
        return self._writer.run(lambda db: settle_page(db, self._codec, page, rows))

    def ask_cancel(self, batch: BatchId) -> Awaitable[bool]:
        """Note that a batch is to be canceled; False when it is over."""
        return self._writer.run(lambda db: db.execute("ask_batch_cancel", {"id": batch}) == 1)

    def give_up(self, run: RunId, epoch: int, key: str, error: Mapping[str, Json], at: float) -> Awaitable[None]:
        """Note that a call has failed in enough batches."""
        return self._writer.run(lambda db: give_up(db, self._codec, run, epoch, key, error, at))

    async def _pieces(self, query: str, batch: BatchId) -> AsyncIterator[bytes]:
        part = 0
        while (row := first(self._reader.rows(query, {"batch_id": batch, "part": part}))) is not None:
            yield zlib.decompress(row["data"])
            part += 1

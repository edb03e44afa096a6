"""What changes in a batch: planned with the money of its members, claimed, moved on, restored, settled, ended.

Outcomes of members are settled page by page, or all at once when the batch ends without results.
"""

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from muster.domain.batch import Batch, BatchMember, BatchState, Member, Plan
from muster.domain.budget import Decision, Granted
from muster.domain.canonical import Json
from muster.domain.entry import AttemptState, EntryState, Opening, Settlement
from muster.domain.errors import KeyTaken, MusterError
from muster.domain.ids import BatchId, RunId
from muster.domain.money import Lane
from muster.store.base import Advance, BatchClaim, Dismissal, ResultPage
from muster.store.codec import Codec
from muster.store.database.batches.codec import (
    PACKING,
    MemberRow,
    batch_of,
    batch_parameters,
    member_of,
    plan_parameters,
    restored_parameters,
)
from muster.store.database.calls.events import EventBuffer, NewEvent
from muster.store.database.calls.journal import Fences, call_parameters, check_fence, write_calls
from muster.store.database.calls.ledger import Reservations, book, total
from muster.store.database.calls.settlements import SettlementRow, bookings, count_attempts, end_call, end_calls
from muster.store.queries import DatabaseConnection, Locks, first


def plan_locks(plan: Plan) -> Locks:
    """Return what a plan keeps other writers from: its runs and their budgets."""
    openings = [member.opening for member in plan.members]
    return Locks(
        runs=tuple({opening.attempt.run for opening in openings}),
        levels=tuple({level.id for opening in openings for level in opening.levels}),
    )


def page_locks(page: ResultPage) -> Locks:
    """Return what a page of results keeps other writers from: its runs and their budgets, and whoever reads it too."""
    return Locks(
        names=(f"batch:{page.batch}",),
        runs=tuple({settlement.attempt.run for settlement in page.settlements}),
        levels=tuple({level.id for settlement in page.settlements for level in settlement.levels}),
    )


def plan_batch(database: DatabaseConnection, codec: Codec, plan: Plan) -> Sequence[Decision | MusterError]:
    """Store a batch with its members and their money; when one of them is not granted, nothing is written."""
    decisions = _decide(database, plan.members)
    if all(isinstance(decision, Granted) for decision in decisions):
        _write_members(database, codec, plan)
        _write_batch(database, codec, plan)
    return decisions


def _decide(database: DatabaseConnection, members: Sequence[Member]) -> Sequence[Decision | MusterError]:
    openings = [member.opening for member in members]
    fences = Fences(database, (opening.attempt.run for opening in openings))
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
    buffer = EventBuffer(database, codec)
    for member in plan.members:
        tally = buffer.tally(member.opening.attempt.run)
        tally.total += member.opening.first
        tally.failed -= member.opening.reopens
    for run, count in members.items():
        data = {"batch": plan.id, "members": count, "requests": len(plan.members), "bytes": plan.bytes}
        buffer.add(NewEvent(run=run, kind="batch.planned", data=data, at=plan.at))
    buffer.write()


def claim(database: DatabaseConnection, request: BatchClaim) -> Batch | None:
    """Claim a planned or sent batch if nobody has since it was read."""
    batch, driver = request.batch, request.driver
    who = {"host": driver.host, "pid": driver.pid, "started": driver.started}
    when = {"at": request.at, "until": request.until, "by_hand": int(request.by_hand)}
    parameters = {"id": batch.id, "epoch": batch.epoch, **when, **who}
    if batch.state is BatchState.PLANNED:
        account = {"account": batch.endpoint.provider_account, "alone": int(request.alone)}
        claimed = database.execute("claim_planned_batch", parameters | account)
    else:
        # One whose holder has renewed it since it was read is not free.
        claimed = database.execute("claim_sent_batch", parameters | {"seen": batch.lease_until})
    row = first(database.rows("select_batch", {"id": batch.id})) if claimed else None
    return batch_of(row) if row else None


def advance(database: DatabaseConnection, codec: Codec, step: Advance) -> bool:
    """Write a batch's next state and tell it to its runs."""
    database.lock(lambda: Locks(runs=_runs_of(database, step.batch.id)))  # runs come before batches, here as elsewhere
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


def _runs_of(database: DatabaseConnection, batch: BatchId) -> tuple[RunId, ...]:
    return tuple(RunId(row["run_id"]) for row in database.rows("select_runs_of_batch", {"batch_id": batch}))


def _tell_runs(
    database: DatabaseConnection, codec: Codec, batch: BatchId, kind: str, data: Mapping[str, Json], at: float
) -> None:
    buffer = EventBuffer(database, codec)
    for run in _runs_of(database, batch):
        buffer.add(NewEvent(run=run, kind=kind, data=data, at=at))
    buffer.write()


def give_up(
    database: DatabaseConnection, codec: Codec, run: RunId, epoch: int, key: str, error: Mapping[str, Json], at: float
) -> None:
    """Note that a call has failed in enough batches."""
    check_fence(database, run, epoch)
    parameters = {"run_id": run, "key": key, "error": codec.text(error), "at": at}
    if database.execute_many("fail_call", [parameters]):
        buffer = EventBuffer(database, codec)
        buffer.tally(run).failed += 1
        buffer.add(NewEvent(run=run, kind="call.failed", data={"key": key, "error": error}, at=at))
        buffer.write()


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


PAGE = 1000


class NotAllParked(MusterError):
    """A member of a page, or its call, has its outcome already; the page must be gone through one by one."""

    def __init__(self) -> None:
        super().__init__("a member of this page was settled before, or its call has a reply")


def settlement_rows(codec: Codec, page: ResultPage) -> list[SettlementRow]:
    """Spell the settlements of a page, each as it comes."""
    return [SettlementRow(settlement, codec) for settlement in page.settlements]


def settle_page(database: DatabaseConnection, codec: Codec, page: ResultPage, rows: Sequence[SettlementRow]) -> int:
    """Settle the members of a page that are still parked, and keep the lines they were read from."""
    settled = _settle_parked(database, rows)
    count_attempts(database, settled)
    if page.lines and (settled or not rows):  # else whoever settled them has kept them
        data = zlib.compress(codec.clean_bytes(b"".join(page.lines)), PACKING)
        database.execute("insert_batch_lines", {"batch_id": page.batch, "data": data})
    _write_outcomes(database, codec, page, settled)
    return len(settled)


def _settle_parked(database: DatabaseConnection, rows: Sequence[SettlementRow]) -> Sequence[SettlementRow]:
    """Settle attempts and return those that were still parked."""
    try:
        with database.savepoint():
            database.send_many("settle_parked", [row.columns for row in rows], NotAllParked)
    except NotAllParked:
        return [row for row in rows if database.execute_many("settle_parked", [row.columns])]
    return rows


def _write_outcomes(
    database: DatabaseConnection, codec: Codec, page: ResultPage, rows: Sequence[SettlementRow]
) -> None:
    buffer = EventBuffer(database, codec)
    for row in rows:
        if row.reply is None:
            row.count(buffer)
        if row.reply is None or row.cost > row.reserved or row.lane is Lane.UNCERTAIN:
            row.add_events(buffer)
    for run, done in _end_calls(database, rows).items():
        buffer.tally(run).done += done
        # One event for all replies of a page: who follows a run of many thousand calls wants to know how far it is.
        buffer.add(NewEvent(run=run, kind="batch.settled", data={"batch": page.batch, "done": done}, at=page.at))
    book(database, bookings(rows))
    buffer.write()
    database.execute("count_batch", {"id": page.batch} | _counts(rows))


def _end_calls(database: DatabaseConnection, rows: Sequence[SettlementRow]) -> Counter[RunId]:
    """Write the outcomes of calls and return how many replies each run got by that.

    A late reply of a driver before may have been faster than the batch: then the call has its reply already.
    """
    answered = [row for row in rows if row.reply is not None]
    try:
        with database.savepoint():
            end_calls(database, rows, NotAllParked)
    except NotAllParked:
        return Counter([row.run for row in rows if end_call(database, row)])
    return Counter([row.run for row in answered])


def _counts(rows: Sequence[SettlementRow]) -> dict[str, int]:
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
        database.lock(partial(page_locks, page))
        settle_page(database, codec, page, settlement_rows(codec, page))
    return True

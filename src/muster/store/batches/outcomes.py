"""The outcomes of the members of a batch: settled page by page, or all at once when it ends without results."""

import zlib
from collections import Counter
from collections.abc import Sequence

from muster.domain.entry import AttemptState, Settlement
from muster.domain.ids import RunId
from muster.domain.money import Lane
from muster.store.base import Dismissal, ResultPage
from muster.store.batches.changes import advance
from muster.store.batches.codec import PACKING, MemberRow, member_of
from muster.store.codec import Codec
from muster.store.events import Fact, Telling
from muster.store.ledger import book, total
from muster.store.queries import DatabaseConnection
from muster.store.settlements import SettlementRow, bookings, end_calls

PAGE = 1000


class NotAllParked(Exception):
    """A member of a page, or its call, has its outcome already; the page must be gone through one by one."""


def settlement_rows(codec: Codec, page: ResultPage) -> list[SettlementRow]:
    """Spell the settlements of a page, each as it comes."""
    return [SettlementRow(settlement, codec) for settlement in page.settlements]


def settle_page(database: DatabaseConnection, codec: Codec, page: ResultPage, rows: Sequence[SettlementRow]) -> int:
    """Settle the members of a page that are still parked, and keep the lines they were read from."""
    settled = _settle_parked(database, rows)
    if page.lines and (settled or not rows):  # else whoever settled them has kept them
        data = zlib.compress(codec.clean_bytes(b"".join(page.lines)), PACKING)
        database.execute("insert_batch_lines", {"batch_id": page.batch, "data": data})
    _write_outcomes(database, codec, page, settled)
    return len(settled)


def _settle_parked(database: DatabaseConnection, rows: Sequence[SettlementRow]) -> Sequence[SettlementRow]:
    """Settle attempts and return those that were still parked."""
    try:
        with database.savepoint():
            if database.execute_many("settle_parked", [row.columns for row in rows]) != len(rows):
                raise NotAllParked
    except NotAllParked:
        return [row for row in rows if database.execute_many("settle_parked", [row.columns])]
    return rows


def _write_outcomes(
    database: DatabaseConnection, codec: Codec, page: ResultPage, rows: Sequence[SettlementRow]
) -> None:
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


def _end_calls(database: DatabaseConnection, rows: Sequence[SettlementRow]) -> Counter[RunId]:
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
        settle_page(database, codec, page, settlement_rows(codec, page))
    return True

"""What people say about verdicts, in the database."""

from collections.abc import Awaitable, Sequence
from dataclasses import replace

from muster.domain.ids import RunId
from muster.domain.review import Opinion, Review
from muster.store import leases
from muster.store.codec import Codec
from muster.store.connection import Connection, Parameters, Row
from muster.store.writer import Writer


class DatabaseReviews:
    """The reviews of all runs."""

    def __init__(self, reader: Connection, writer: Writer, codec: Codec) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec

    def add(self, review: Review) -> Awaitable[None]:
        """Remember a review in place of an older one of the same person."""
        parameters = _parameters(replace(review, note=self._codec.clean(review.note), by=self._codec.clean(review.by)))

        def work(database: Connection) -> None:
            leases.get(database, review.run)
            database.execute("put_review", parameters)

        return self._writer.run(work)

    async def of_run(self, run: RunId) -> Sequence[Review]:
        """Give the reviews of a run, by case."""
        return [_review_of(row) for row in self._reader.rows("select_reviews", {"run_id": run})]


def _parameters(review: Review) -> Parameters:
    return {
        "run_id": review.run,
        "case_id": review.case,
        "subject": review.subject,
        "epoch": review.epoch,
        "reviewer": review.by,
        "opinion": str(review.opinion),
        "note": review.note,
        "reviewed_at": review.at,
    }


def _review_of(row: Row) -> Review:
    return Review(
        run=RunId(row["run_id"]),
        case=row["case_id"],
        subject=row["subject"],
        epoch=row["epoch"],
        opinion=Opinion(row["opinion"]),
        at=row["reviewed_at"],
        note=row["note"],
        by=row["reviewer"],
    )

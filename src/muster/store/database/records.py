"""What people say about runs, and what users did through servers: baselines, reviews, and the audit log."""

from collections.abc import Awaitable, Sequence
from dataclasses import replace

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, NotFound
from muster.domain.ids import RunId
from muster.domain.review import Opinion, Review
from muster.store.base import AuditRecord, Baseline
from muster.store.codec import Codec, read
from muster.store.database import runs
from muster.store.queries import DatabaseConnection, DatabaseReader, Locks, Parameters, Row, first
from muster.store.writer import Writer


class DatabaseRecords:
    """The reviews, the figures and the baselines of this store."""

    def __init__(self, reader: DatabaseReader, writer: Writer, codec: Codec) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec

    def add_review(self, review: Review) -> Awaitable[None]:
        """Remember a review in place of an older one of the same person."""
        parameters = _parameters(replace(review, note=self._codec.clean(review.note), by=self._codec.clean(review.by)))

        def work(database: DatabaseConnection) -> None:
            runs.get(database, review.run)
            database.execute("put_review", parameters)

        return self._writer.run(work, Locks(runs=(review.run,)))

    async def reviews_of(self, run: RunId) -> Sequence[Review]:
        """Return the reviews of a run, by case."""
        return [_review_of(row) for row in await self._reader.rows("select_reviews", {"run_id": run})]

    async def figures_version(self, run: RunId) -> str:
        """Return what differs whenever a run that has ended was changed."""
        row = first(await self._reader.rows("select_run_version", {"run_id": run}))
        return "" if row is None else f"{row['state']} {row['last_seq']} {row['position']}"

    async def find_figures(self, run: RunId, made_from: str) -> Json:
        """Return the figures of a run, if they were made from this."""
        row = first(await self._reader.rows("select_figures", {"run_id": run, "made_from": made_from}))
        return None if row is None else read(row["data"])

    def keep_figures(self, run: RunId, made_from: str, figures: object) -> Awaitable[None]:
        """Keep the figures of a run in place of older ones."""
        parameters = {"run_id": run, "made_from": made_from, "data": self._codec.text(figures)}

        def work(database: DatabaseConnection) -> None:
            database.execute("put_figures", parameters)

        return self._writer.run(work, Locks(runs=(run,)))

    def set_baseline(self, name: str, run: RunId, at: float) -> Awaitable[None]:
        """Let a name stand for a run, whatever it stood for before."""
        if self._codec.clean(name) != name:
            raise BadArgument("the name of the baseline contains a configured secret; use another name")

        def work(database: DatabaseConnection) -> None:
            runs.get(database, run)
            database.execute("put_baseline", {"name": name, "run_id": run, "set_at": at})

        return self._writer.run(work, Locks(runs=(run,)))

    async def find_baseline(self, name: str) -> Baseline | None:
        """Return the baseline of this name."""
        row = first(await self._reader.rows("select_baseline", {"name": name}))
        return _baseline_of(row) if row else None

    async def baselines(self) -> Sequence[Baseline]:
        """Return all baselines, by name."""
        return [_baseline_of(row) for row in await self._reader.rows("select_baselines", {})]

    def remove_baseline(self, name: str) -> Awaitable[None]:
        """Forget a name; the run stays."""

        def work(database: DatabaseConnection) -> None:
            if database.execute("delete_baseline", {"name": name}) == 0:
                raise NotFound(f"baseline {name!r} not found", suggestions=("muster baseline list",))

        return self._writer.run(work)


def _baseline_of(row: Row) -> Baseline:
    return Baseline(name=row["name"], run=RunId(row["run_id"]), at=row["set_at"])


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


class DatabaseAudit:
    """What users did through servers."""

    def __init__(self, reader: DatabaseReader, writer: Writer, codec: Codec) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec

    def begin(self, record: AuditRecord) -> Awaitable[int]:
        """Remember what somebody is about to do."""
        parameters = {
            "at": record.at,
            "user_name": record.user,
            "client": record.client,
            "action": record.action,
            "subject": self._codec.clean(record.subject),
            "request_id": self._codec.clean(record.request_id),
        }
        return self._writer.run(lambda db: int(db.rows("begin_audit", parameters)[0]["seq"]), begins=True)

    def end(self, seq: int, subject: str, outcome: str) -> Awaitable[None]:
        """Remember to what it was done in the end, and what came of it."""
        return self._write("end_audit", {"seq": seq, "subject": self._codec.clean(subject), "outcome": outcome})

    def withdraw(self, seq: int) -> Awaitable[None]:
        """Forget what was refused before anything was done."""
        return self._write("withdraw_audit", {"seq": seq})

    def _write(self, query: str, parameters: Parameters) -> Awaitable[None]:
        def work(database: DatabaseConnection) -> None:
            database.execute(query, parameters)

        return self._writer.run(work)

    async def newest(self, before: int | None = None, limit: int = 100) -> Sequence[AuditRecord]:
        """Return records, the newest first."""
        return [_audit_of(row) for row in await self._reader.rows("select_audit", {"before": before, "limit": limit})]


def _audit_of(row: Row) -> AuditRecord:
    return AuditRecord(
        seq=row["seq"],
        at=row["at"],
        user=row["user_name"],
        client=row["client"],
        action=row["action"],
        subject=row["subject"],
        request_id=row["request_id"],
        outcome=row["outcome"],
    )

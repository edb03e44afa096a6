"""The batches of a store over any database, read and written."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from functools import partial

from muster.domain.batch import Batch, BatchEndpoint, BatchMember, BatchShare, BatchState, KnownIds, Plan, Saving
from muster.domain.budget import Decision
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, MusterError
from muster.domain.ids import BatchId, RunId
from muster.domain.run import Driver
from muster.store.base import Advance, BatchClaim, Dismissal, ResultPage
from muster.store.codec import Codec
from muster.store.database.batches.changes import (
    advance,
    claim,
    dismiss,
    give_up,
    page_locks,
    plan_batch,
    plan_locks,
    settle_page,
    settlement_rows,
)
from muster.store.database.batches.codec import PACKING, MemberRow, batch_of, member_of, saving_of, share_of
from muster.store.queries import DatabaseConnection, DatabaseReader, Locks, first
from muster.store.writer import Writer

NONCE = "nonce"


class DatabaseBatches:
    """The batches of a database."""

    def __init__(self, reader: DatabaseReader, writer: Writer, codec: Codec) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec

    async def get(self, batch: BatchId) -> Batch | None:
        """Return a batch as it stands."""
        row = first(await self._reader.rows("select_batch", {"id": batch}))
        return batch_of(row) if row else None

    async def select(
        self, states: Iterable[BatchState] = (), limit: int = 100, before: tuple[float, str] | None = None
    ) -> Sequence[Batch]:
        """Return the newest batches, of these states if any are named, older than a batch if one is."""
        wanted, (at, last) = tuple(states), (None, None) if before is None else before
        asked = {"before_at": at, "before_id": last, "limit": limit}
        if not wanted:
            return [batch_of(row) for row in await self._reader.rows("select_batches", asked)]
        found = [
            batch_of(row)
            for state in wanted
            for row in await self._reader.rows("select_batches_in_state", asked | {"state": str(state)})
        ]
        return sorted(found, key=lambda batch: (batch.created_at, batch.id), reverse=True)[:limit]

    async def since(self, at: float) -> Sequence[Batch]:
        """Return the batches that were planned since then, the oldest first."""
        return [batch_of(row) for row in await self._reader.rows("select_batches_since", {"since": at})]

    async def match(self, reference: str) -> Sequence[Batch]:
        """Return the batches that an id, the beginning of one, or the provider's id stands for."""
        parameters = {"reference": reference, "after": reference + "{"}
        return [batch_of(row) for row in await self._reader.rows("match_batches", parameters)]

    async def of_run(self, run: RunId) -> Sequence[Batch]:
        """Return the batches that hold calls of a run, the oldest first."""
        return [batch_of(row) for row in await self._reader.rows("select_batches_of_run", {"run_id": run})]

    async def runs(self, batch: BatchId) -> Mapping[RunId, int]:
        """Return the runs that have calls in a batch, and how many."""
        rows = await self._reader.rows("select_runs_of_batch", {"batch_id": batch})
        return {RunId(row["run_id"]): row["members"] for row in rows}

    async def known(self, endpoint: BatchEndpoint) -> KnownIds:
        """Return the provider's ids of all batches of the same provider and account."""
        rows = await self._reader.rows("select_known_batches", {"account": endpoint.provider_account})
        return KnownIds(
            sure=frozenset(row["provider_id"] for row in rows if not row["adopted"]),
            assumed=frozenset(row["provider_id"] for row in rows if row["adopted"]),
        )

    async def stalled(self, limit: int) -> Sequence[Batch]:
        """Return the batches that do not get on, the oldest first."""
        return [batch_of(row) for row in await self._reader.rows("select_stalled_batches", {"limit": limit})]

    async def parked(self, run: RunId, key: str) -> tuple[BatchId, int] | None:
        """Return the batch in which a call waits, and its place there."""
        row = first(await self._reader.rows("select_parked_call", {"run_id": run, "key": key}))
        return (BatchId(row["batch_id"]), row["place"]) if row else None

    async def members(self, batch: BatchId, first: int, after: int) -> Sequence[BatchMember]:
        """Return the members from one place up to, and without, another."""
        parameters = {"batch_id": batch, "first": first, "after": after}
        return [member_of(row) for row in await self._reader.named_rows("select_members", parameters, MemberRow)]

    async def waiting(self, batch: BatchId, after: int, limit: int) -> Sequence[BatchMember]:
        """Return the members that have no outcome, by place."""
        parameters = {"batch_id": batch, "after": after, "limit": limit}
        return [member_of(row) for row in await self._reader.named_rows("select_parked", parameters, MemberRow)]

    async def max_tokens(self, batch: BatchId) -> int:
        """Return the most tokens that all answers of a batch together may have."""
        row = first(await self._reader.rows("sum_max_tokens", {"batch_id": batch}))
        return int(row["tokens"]) if row else 0

    async def abandoned(self, run: RunId, key: str, after: int) -> int:
        """Return how many attempts of a call, after the one of this number, were in batches that were given up."""
        row = first(await self._reader.rows("count_abandoned", {"run_id": run, "key": key, "after": after}))
        return int(row["tries"]) if row else 0

    def bodies(self, batch: BatchId) -> AsyncIterator[bytes]:
        """Return the pieces of the body."""
        return self._pieces("select_batch_bodies", batch)

    def lines(self, batch: BatchId) -> AsyncIterator[bytes]:
        """Return the lines of results that were read, in pieces."""
        return self._pieces("select_batch_lines", batch)

    async def saving(self, run: RunId) -> Saving:
        """Return what a run's batches and the tier flex cost, and what they saved."""
        return saving_of(first(await self._reader.rows("sum_savings_of_run", {"run_id": run})))

    async def shares(self, run: RunId, prefix: str) -> Sequence[BatchShare]:
        """Return what the calls of a run whose keys begin so had in each of its batches."""
        parameters = {"run_id": run, "prefix": prefix, "length": len(prefix)}
        return [share_of(row) for row in await self._reader.rows("sum_batches_of_keys", parameters)]

    def nonce(self, fresh: str) -> Awaitable[str]:
        """Return the nonce of this store; the first call makes it."""

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
                "a request contains a configured secret, and the bodies of a batch are stored as they are sent",
                suggestions=("remove the secret from the prompt", "or send the call live"),
            )

    async def pack(self, piece: bytes) -> bytes:
        """Make a piece of a body ready to be stored."""
        return await asyncio.to_thread(zlib.compress, piece, PACKING)

    def plan(self, plan: Plan) -> Awaitable[Sequence[Decision | MusterError]]:
        """Reserve the money of all members and store the batch, or neither."""
        return self._writer.run(lambda db: plan_batch(db, self._codec, plan), plan_locks(plan))

    def claim(self, claim_: BatchClaim) -> Awaitable[Batch | None]:
        """Claim a planned or sent batch, and return it as it then is."""
        # Of batches of one account that are sent alone, no two may be claimed at once.
        return self._writer.run(lambda db: claim(db, claim_), _account_lock(claim_.batch))

    def renew(self, batch: Batch, until: float) -> Awaitable[bool]:
        """Extend the claim on a batch; False when it is lost."""
        parameters = {"id": batch.id, "epoch": batch.epoch, "until": until}
        return self._writer.run(lambda db: db.execute("renew_batch", parameters) == 1)

    def release(self, batch: Batch) -> Awaitable[bool]:
        """Release the claim on a batch; False when it is lost, or not needed any more."""
        parameters = {"id": batch.id, "epoch": batch.epoch}
        return self._writer.run(lambda db: db.execute("release_batch", parameters) == 1)

    def take_turn(self, claim_: BatchClaim) -> Awaitable[bool]:
        """Take a turn at a batch whose lease nobody has changed since it was read."""
        batch = claim_.batch
        seen = {"id": batch.id, "state": str(batch.state), "seen": batch.lease_until, "by_hand": int(claim_.by_hand)}
        parameters = {**seen, "at": claim_.at, "until": claim_.until, **_driver_parameters(claim_.driver)}
        return self._writer.run(lambda db: db.execute("take_batch_turn", parameters) == 1)

    def keep_turn(self, batch: BatchId, driver: Driver, until: float) -> Awaitable[bool]:
        """Extend a turn; False when it is another's, or the batch is over."""
        parameters = {"id": batch, "until": until, **_driver_parameters(driver)}
        return self._writer.run(lambda db: db.execute("keep_batch_turn", parameters) == 1)

    def end_turn(self, batch: BatchId, driver: Driver) -> Awaitable[bool]:
        """End a turn; False when it is another's."""
        parameters = {"id": batch, **_driver_parameters(driver)}
        return self._writer.run(lambda db: db.execute("end_batch_turn", parameters) == 1)

    def advance(self, advance_: Advance) -> Awaitable[bool]:
        """Write a batch's next state; False when it is not any more where it was."""
        # Nor may two be given the same id of the provider.
        locks = _account_lock(advance_.batch) if advance_.was is BatchState.SENT else Locks()
        return self._writer.run(lambda db: advance(db, self._codec, advance_), locks)

    def dismiss(self, dismissal: Dismissal) -> Awaitable[bool]:
        """End a batch and settle its members in one go."""
        return self._writer.run(lambda db: dismiss(db, self._codec, dismissal))

    def settle(self, page: ResultPage) -> Awaitable[int]:
        """Settle members that are still parked and return how many."""
        rows = settlement_rows(self._codec, page)  # here and not in the writer's thread: what is read was just made
        return self._writer.run(lambda db: settle_page(db, self._codec, page, rows), page_locks(page))

    def ask_cancel(self, batch: BatchId) -> Awaitable[bool]:
        """Note that a batch is to be canceled; False when it is over."""
        return self._writer.run(lambda db: db.execute("ask_batch_cancel", {"id": batch}) == 1)

    def give_up(self, run: RunId, epoch: int, key: str, error: Mapping[str, Json], at: float) -> Awaitable[None]:
        """Note that a call has failed in enough batches."""
        work = partial(give_up, codec=self._codec, run=run, epoch=epoch, key=key, error=error, at=at)
        return self._writer.run(work, Locks(runs=(run,)))

    async def _pieces(self, query: str, batch: BatchId) -> AsyncIterator[bytes]:
        part = 0
        while (row := first(await self._reader.rows(query, {"batch_id": batch, "part": part}))) is not None:
            yield zlib.decompress(row["data"])
            part += 1


def _account_lock(batch: Batch) -> Locks:
    return Locks(names=(f"account:{batch.endpoint.provider_account}",))


def _driver_parameters(driver: Driver) -> Mapping[str, object]:
    return {"host": driver.host, "pid": driver.pid, "started": driver.started}

"""Leases on PostgreSQL: a driver whom the server does not answer stops before another may take its run over."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from muster.domain.errors import LeaseLost
from muster.domain.ids import RunId
from muster.domain.run import Run, RunState
from muster.store import claims
from muster.store.base import Claim, RunRelease
from muster.store.codec import Codec
from muster.store.database import runs
from muster.store.database.parts import DatabaseLeases
from muster.store.postgres.versions import require_known_tables
from muster.store.queries import DatabaseConnection, Locks
from muster.store.writer import WriteGroup, Writer

PATIENT_PART = 2 / 3  # of a lease, for which a driver goes on without an answer; the rest is for stopping
MIN_ANSWER_SECONDS = 0.5  # seconds that a beat may take in any case: its process may have stood still
LEASE_SECONDS = 12.0  # of a run that was not claimed here


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedLease:
    """A lease as the server last confirmed it, by the monotonic clock of this machine."""

    since: float  # when it was asked for: its end was computed just before
    seconds: float

    def patience(self, now: float) -> float:
        """Return for how many seconds a beat that begins now may go without an answer."""
        return max(self.since + PATIENT_PART * self.seconds - now, MIN_ANSWER_SECONDS)


class PostgresLeases(DatabaseLeases):
    """Who drives which run.

    What counts is the end of the lease that the server knows: a beat that was answered late leaves less time for the
    next one.
    """

    stops_drivers = True

    def __init__(
        self,
        writer: Writer,
        codec: Codec,
        beats: WriteGroup[runs.Heartbeat, bool],
        on_wait: Callable[[str], None],
        monotonic: Callable[[], float],
    ) -> None:
        super().__init__(writer, codec, beats, on_wait)
        self._monotonic = monotonic
        self._confirmed: dict[tuple[RunId, int], ConfirmedLease] = {}  # by run and epoch

    async def _claim(self, taking: runs.Taking) -> Claim:
        def work(database: DatabaseConnection) -> Claim:
            database.rows("share_name", {"name": claims.CLAIMS})
            require_known_tables(database)  # once it is claimed, nobody changes them
            return runs.claim(database, self._codec, taking)

        lease = ConfirmedLease(since=self._monotonic(), seconds=taking.until - taking.at)
        claim = await self._writer.run(work, Locks(runs=(taking.run,)))
        self._confirmed[taking.run, claim.epoch] = lease
        return claim

    async def beat(self, run: RunId, epoch: int, until: float, active: float, state: RunState) -> bool:
        """Keep the lease; return whether somebody asked to cancel; raises LeaseLost without an answer in time."""
        now = self._monotonic()
        lease = self._confirmed.get((run, epoch), ConfirmedLease(since=now, seconds=LEASE_SECONDS))
        beating = asyncio.ensure_future(super().beat(run, epoch, until, active, state))
        answered, _ = await asyncio.wait({beating}, timeout=lease.patience(now))
        if not answered:
            beating.add_done_callback(lambda late: late.cancelled() or late.exception())  # nobody waits for it
            raise LeaseLost(
                f"the store has not answered for {self._monotonic() - lease.since:.0f} s; "
                f"run {run} is left to another worker",
                suggestions=(f"muster runs resume {run}",),
            )
        canceled = beating.result()
        self._confirmed[run, epoch] = replace(lease, since=now)
        return canceled

    def release(self, run: RunId, epoch: int, ending: RunRelease) -> Awaitable[Run]:
        """Let go of the run in its new state."""
        self._confirmed.pop((run, epoch), None)
        return super().release(run, epoch, ending)

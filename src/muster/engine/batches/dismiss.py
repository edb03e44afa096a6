"""Ending a batch without results: every member gets the same outcome, page by page, and its money is sorted out."""

from collections.abc import Callable
from dataclasses import replace

from muster.domain.batch import Batch, BatchMember, BatchState
from muster.domain.entry import AttemptState, Failed, Settlement
from muster.domain.errors import BatchCanceled, OutcomeUnknown, Paid, TryLater, WireError
from muster.engine.base.clock import Clock
from muster.engine.batches.parked_calls import Waiters
from muster.store.base import Advance, Dismissal, ResultPage, Store

PAGE = 1000

MemberFailure = Callable[[BatchMember], tuple[Failed, WireError]]


class Dismisser:
    """Gives the members that are left an outcome."""

    def __init__(self, *, store: Store, clock: Clock, waiters: Waiters) -> None:
        self._store, self._clock, self._waiters = store, clock, waiters

    async def refuse(self, batch: Batch, error: WireError, was: BatchState) -> None:
        """End a batch that the provider did not take; nothing was paid."""
        await self._dismiss(batch, was, BatchState.REFUSED, f"the provider refused it: {error.message}", error)

    async def cancel(self, batch: Batch, note: str) -> None:
        """End a batch that was canceled before it was sent, unless sending has begun."""
        error = BatchCanceled(f"batch {batch.id}: {note}")
        await self._dismiss(batch, BatchState.PLANNED, BatchState.REFUSED, note, error, AttemptState.CANCELED)

    async def abandon(self, batch: Batch, note: str) -> bool:
        """Return a batch up that may have been paid: its members are booked as uncertain and can be asked again."""
        error = OutcomeUnknown(f"batch {batch.id}: {note}")
        return await self._dismiss(batch, batch.state, BatchState.ABANDONED, note, error)

    async def settle(self, batch: Batch, failure_of_member: MemberFailure) -> int:
        """Return every member that has no outcome one, and say how many there were."""
        count, after = 0, -1
        while members := await self._store.batches.waiting(batch.id, after, PAGE):
            failures = [(member, *failure_of_member(member)) for member in members]
            settlements = [settlement_of(member, failed, self._clock.now()) for member, failed, _ in failures]
            page = ResultPage(batch=batch.id, settlements=settlements, at=self._clock.now())
            count += await self._store.batches.settle(page)
            for member, _, error in failures:
                self._waiters.answer(batch.id, member.place, error)
            after = members[-1].place
        return count

    async def _dismiss(
        self,
        batch: Batch,
        was: BatchState,
        state: BatchState,
        note: str,
        error: WireError,
        ended_as: AttemptState = AttemptState.FAILED,
    ) -> bool:
        now = self._clock.now()
        over = replace(
            batch, state=state, note=note, error=error.record(), collected_at=now, stalled=False, waits_for=None
        )
        advance = Advance(batch=over, was=was, kind=f"batch.{state}", at=now)
        outcome, _ = failure_of(error, ended_as)
        if not await self._store.batches.dismiss(Dismissal(advance=advance, outcome=outcome)):
            return False
        self._waiters.end(batch.id, error)
        return True


def failure_of(error: WireError, ended_as: AttemptState = AttemptState.FAILED) -> tuple[Failed, WireError]:
    """Return how a member ends with an error: a temporary one leaves the call open for the next batch."""
    again = isinstance(error, TryLater)
    uncertain = error.paid is Paid.UNKNOWN
    failed = Failed(
        error=error.record(),
        uncertain=uncertain,
        again_in=0.0 if again else None,
        gives_up=not again,
        ended_as=ended_as,
    )
    return failed, error


def settlement_of(member: BatchMember, outcome: Failed, at: float) -> Settlement:
    """Make the settlement of a member that brought no reply."""
    return Settlement(attempt=member.attempt, outcome=outcome, reserved=member.reserved, levels=member.levels, at=at)

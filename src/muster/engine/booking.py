"""Booking: the outcome of an attempt queued for the store, and a failure written down with what it cost."""

import asyncio

from muster.domain.entry import Failed, Outcome, Settled, Settlement
from muster.domain.errors import Paid, WireError
from muster.domain.money import Lane, Microdollars
from muster.engine.asking import Asking, Equipment, Started


class Booking:
    """Books attempts of live calls."""

    def __init__(self, equipment: Equipment) -> None:
        self._with = equipment

    def book(self, started: Started, outcome: Outcome, asking: Asking | None = None) -> "asyncio.Future[Settled]":
        """Queue the settlement of an attempt; it is written whether or not anybody waits for it."""
        return asyncio.ensure_future(
            self._with.store.journal.settle(
                Settlement(
                    attempt=started.id,
                    outcome=outcome,
                    reserved=started.most,
                    levels=started.levels,
                    at=self._with.clock.now(),
                    streamed=asking is not None and asking.streams,
                )
            )
        )


def failed_of(error: WireError) -> Failed:
    """Write down a failure with what it cost, as far as anybody knows."""
    return Failed(
        error=error.record(),
        uncertain=error.paid is Paid.UNKNOWN,
        cost=Microdollars(error.cost),
        lane=Lane.IMPUTED if error.imputed else Lane.BILLED,
    )

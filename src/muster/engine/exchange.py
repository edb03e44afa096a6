"""The exchange with an agent: on the wire and back, whoever cancels meanwhile. Step 4 of the call path."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from muster.domain.agent import Timeouts
from muster.domain.call import Reply
from muster.domain.entry import Replied, Unsent
from muster.domain.errors import Interrupted, WireError
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.engine.asking import Asking, Equipment, Started
from muster.engine.booking import Booking, failed_of
from muster.engine.partial import Partial
from muster.engine.seat import Seat
from muster.engine.wires import Landed, Wire, Wires, close, read_answer


class Exchange:
    """What a run has on the wire; `check` raises once the run may not make another call."""

    def __init__(
        self,
        equipment: Equipment,
        *,
        run: RunId,
        check: Callable[[], None],
        on_overdraft: Callable[[str, Microdollars, Microdollars], None],
    ) -> None:
        self._with, self._run, self._check, self._on_overdraft = equipment, run, check, on_overdraft
        self._book = Booking(equipment).book
        self._wires = Wires()

    @property
    def on_wire(self) -> int:
        """How many calls are on the wire."""
        return len(self._wires)

    def cut(self) -> None:
        """Close what is on the wire; its outcome becomes uncertain."""
        self._wires.cut()

    async def quiet(self) -> None:
        """Wait until nothing is on the wire."""
        await self._wires.quiet()

    async def send(self, asking: Asking, started: Started, seat: Seat) -> Reply | WireError:
        """Send and wait; canceled here, the outcome is settled before the cancellation is passed on."""
        timeouts = asking.timeouts
        if asking.wire:
            timeouts = replace(timeouts, call=max(timeouts.call - asking.wire, 0.001))
        landed: Landed = asyncio.get_running_loop().create_future()
        wire = self._wires.launch(self._ride(asking, started.most, seat, timeouts, landed), landed)
        try:
            await landed
            if not wire.done():
                await close(wire, timeouts.grace)
            answer = self._read(asking, started, wire)
        except asyncio.CancelledError:
            await close(wire, timeouts.grace)
            self._settle_canceled(asking, started, self._read(asking, started, wire))
            raise
        finally:
            self._wires.forget(wire)
        if answer is None:
            self._check()
            raise Interrupted("the call was cut before it was sent")
        return answer

    async def _ride(self, asking: Asking, most: Microdollars, seat: Seat, timeouts: Timeouts, landed: Landed) -> Reply:
        """Go on the wire as soon as there is a place, and give it back the moment the answer is there.

        Nothing stands between one answer and the next request: whatever else there is to do is done after it.
        """
        outcome: object = None
        try:
            await seat.board()
            self._check()
            asking.sent_at = self._with.clock.monotonic()
            # The agent minds the time itself; the seconds are for one that does not.
            self._wires.send(cast(Wire, asyncio.current_task()), landed, timeouts.call, timeouts.grace)
            reply = await asking.agent.call(asking.request, timeouts, self._partial(asking))
            outcome = reply
            self._mind_cost(asking.key, reply, most)  # before the place is given to the next call
            return reply
        except WireError as error:
            outcome = error
            raise
        finally:
            seat.leave(outcome)

    def _mind_cost(self, key: str, reply: Reply, most: Microdollars) -> None:
        cost = reply.booked(most).cost
        if cost > most:
            self._on_overdraft(key, cost, most)

    def _partial(self, asking: Asking) -> Partial | None:
        if not asking.streams:
            return None
        return Partial(self._with.store.events, self._run, asking.key, self._with.clock, asking.on_delta)

    def _read(self, asking: Asking, started: Started, wire: Wire) -> Reply | WireError | None:
        """Read what an exchange came to; one that never left gets its money back."""
        if not self._wires.sent(wire):
            if wire.done() and not wire.cancelled():
                wire.exception()  # the run was told to stop; that is raised again by whoever waits
            self._book(started, Unsent())
            return None
        asking.wire += self._with.clock.monotonic() - asking.sent_at
        return read_answer(wire, asking.agent.profile.name, asking.wire, asking.timeouts.call)

    def _settle_canceled(self, asking: Asking, started: Started, answer: Reply | WireError | None) -> None:
        """Settle an exchange that was canceled: an answer that arrived counts, else the outcome is unknown."""
        if isinstance(answer, Reply):
            reply = answer.booked(started.most).finished(started.id.n, started.waited, asking.wire)
            self._book(started, Replied(reply=reply), asking)
        elif answer is not None:
            self._book(started, failed_of(answer), asking)

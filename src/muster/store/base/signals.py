"""The signals of a store: sent once, taken once and in order, and the runs that wait for them."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.domain.entry import NewSignal, Signal
from muster.domain.ids import RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalTaking:
    """A driver takes the next signals of a channel, and remembers them under a key of its run."""

    run: RunId
    epoch: int
    key: str
    digest: str
    address: str
    channel: str
    at: float
    most: int = 1
    even_none: bool = False  # remember also that there was none
    only: tuple[int, ...] = ()  # the numbers of those that are taken; empty: whichever come next


class SignalTable(Protocol):
    """The signals of this store: sent from outside by the use cases, received by the driver of a run.

    Sending the same client id again changes nothing. `take` is idempotent; a driver whose epoch is not the stored
    one gets LeaseLost.
    """

    def send(self, signal: NewSignal) -> Awaitable[Signal]:
        """Store a signal and queue the runs that wait for it.

        Raises Conflict for a client id of another signal, and for a number that another signal has.
        """

    def wake(self, at: float) -> Awaitable[int]:
        """Queue the runs that have waited for a signal until the end of their time; return how many."""

    def mark_read(self, address: str, channel: str, limit: int) -> Awaitable[Sequence[Signal]]:
        """Return what is there, in order, to a reader outside of any run; no run receives it any more."""

    def take(self, taking: SignalTaking) -> Awaitable[Sequence[Signal] | None]:
        """Take what is there and remember it under the key, both or neither; None, and nothing, when none is there."""

    async def untaken(self, address: str, channel: str, limit: int = 1) -> Sequence[Signal]:
        """Return the signals of a channel that nobody has taken, in order."""

    async def read(self, address: str, channel: str, after: int = 0, limit: int = 100) -> Sequence[Signal]:
        """Return the signals of a channel after a number, taken or not, in order."""

"""The exchanges of one run: begun, watched, waited for, and closed."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from muster.domain.agent import LATE
from muster.domain.call import Reply
from muster.domain.errors import CallFailed, OutcomeUnknown, OutOfTime, Paid, WireError

Wire = asyncio.Task[Reply]
Landed = asyncio.Future[None]  # ends with its wire, but can be canceled without it


@dataclass(slots=True)
class _Sent:
    """An exchange on the wire, with when it is looked at; the first look only gives it its grace."""

    at: float
    grace: float
    landed: Landed
    warned: bool = False


class Wires:
    """Runs each exchange as a task of its own, so that an answer that arrived survives whoever waited for it."""

    def __init__(self) -> None:
        self._open: set[Wire] = set()
        self._sent: dict[Wire, _Sent] = {}
        self._alarm: asyncio.TimerHandle | None = None  # one for all: the earliest of them
        self._quiet = asyncio.Event()
        self._quiet.set()

    def __len__(self) -> int:
        return len(self._sent)

    def launch(self, exchange: Coroutine[Any, Any, Reply], landed: Landed) -> Wire:
        """Begin an exchange; it may still wait for a place."""
        wire = asyncio.get_running_loop().create_task(exchange)
        wire.add_done_callback(lambda _: land(landed))
        self._open.add(wire)
        return wire

    def send(self, wire: Wire, landed: Landed, seconds: float, grace: float) -> None:
        """Note that an exchange goes on the wire now; whoever waits for it goes on after so long and its grace.

        The grace begins when the loop notices that the time is over: after a pause of the process the agent first
        reads what arrived meanwhile.
        """
        at = asyncio.get_running_loop().time() + seconds
        self._sent[wire] = _Sent(at, grace, landed)
        self._quiet.clear()
        if self._alarm is None or at < self._alarm.when():
            self._set_alarm(at)

    def sent(self, wire: Wire) -> bool:
        """Whether anything of an exchange may have left."""
        return wire in self._sent

    def forget(self, wire: Wire) -> None:
        """Take an exchange off the wire."""
        self._open.discard(wire)
        self._sent.pop(wire, None)
        if not self._sent:
            self._set_alarm(None)
            self._quiet.set()

    def cut(self) -> None:
        """Close all exchanges."""
        for wire in self._open:
            wire.cancel()

    async def quiet(self) -> None:
        """Wait until nothing is on the wire."""
        await self._quiet.wait()

    def _set_alarm(self, at: float | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None if at is None else asyncio.get_running_loop().call_at(at, self._ring)

    def _ring(self) -> None:
        """Let those go on whose time and grace are over."""
        now = asyncio.get_running_loop().time()
        for sent in self._sent.values():
            if sent.at > now:
                continue
            if sent.warned and now - sent.at <= LATE:
                land(sent.landed)
            else:
                sent.at, sent.warned = now + sent.grace, True
        self._alarm = None
        self._set_alarm(min((sent.at for sent in self._sent.values() if sent.at > now), default=None))


def land(landed: Landed) -> None:
    """Let whoever waits go on."""
    if not landed.done():
        landed.set_result(None)


async def close(wire: Wire, grace: float) -> None:
    """Cancel an exchange and give it a moment to close; canceled again, do not wait any longer."""
    wire.cancel()
    try:
        await asyncio.wait({wire}, timeout=grace)
    except asyncio.CancelledError:
        return


def read_answer(wire: Wire, agent: str, seconds: float, allowed: float) -> Reply | WireError:
    """Read what an exchange came to; whatever it is, it becomes a reply or an error of ours."""
    if not wire.done() or wire.cancelled():
        kind = OutOfTime if seconds >= allowed else OutcomeUnknown
        return kind(f"{agent} was cut off after {seconds:.1f} s")
    error = wire.exception()
    if error is None:
        return wire.result()
    if isinstance(error, WireError):
        return error
    return CallFailed(f"{agent} broke: {error!r}", paid=Paid.UNKNOWN)

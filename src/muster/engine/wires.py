"""The exchanges of one run: begun, watched, waited for, and closed."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from muster.domain.call import Reply
from muster.domain.errors import CallFailed, OutcomeUnknown, Paid, WireError

Wire = asyncio.Task[Reply]
Landed = asyncio.Future[None]  # ends with its wire, but can be canceled without it


class Wires:
    """Runs each exchange as a task of its own, so that an answer that arrived survives whoever waited for it."""

    def __init__(self) -> None:
        self._open: set[Wire] = set()
        self._sent: set[Wire] = set()
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

    def send(self, wire: Wire) -> None:
        """Note that an exchange goes on the wire now."""
        self._sent.add(wire)
        self._quiet.clear()

    def sent(self, wire: Wire) -> bool:
        """Whether anything of an exchange may have left."""
        return wire in self._sent

    def forget(self, wire: Wire) -> None:
        """Take an exchange off the wire."""
        self._open.discard(wire)
        self._sent.discard(wire)
        if not self._sent:
            self._quiet.set()

    def cut(self) -> None:
        """Close all exchanges."""
        for wire in self._open:
            wire.cancel()

    async def quiet(self) -> None:
        """Wait until nothing is on the wire."""
        await self._quiet.wait()


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


def read_answer(wire: Wire, agent: str, seconds: float) -> Reply | WireError:
    """Read what an exchange came to; whatever it is, it becomes a reply or an error of ours."""
    if not wire.done() or wire.cancelled():
        return OutcomeUnknown(f"{agent} was cut off after {seconds:.1f} s")
    error = wire.exception()
    if error is None:
        return wire.result()
    if isinstance(error, WireError):
        return error
    return CallFailed(f"{agent} broke: {error!r}", paid=Paid.UNKNOWN)

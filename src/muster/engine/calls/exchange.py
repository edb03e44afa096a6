"""The exchange with an agent: on the wire and back, whoever cancels meanwhile. Step 4 of the call path."""

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, cast

from muster.agents.base import InteractiveAgent, OnDelta, UpstreamAgent
from muster.domain.agent import LATE, Timeouts
from muster.domain.call import Reply
from muster.domain.entry import AttemptId, Replied, Unsent
from muster.domain.errors import CallFailed, Interrupted, InvalidRequest, OutcomeUnknown, OutOfTime, Paid, WireError
from muster.domain.exchange import WireAnswer
from muster.domain.money import Microdollars
from muster.engine.base.clock import Clock
from muster.engine.base.driven_run import CallGuard
from muster.engine.calls.admission import Admission
from muster.engine.calls.flow import Passage
from muster.engine.calls.state import AttemptBooking, CallServices, CallState, Started, WireCount, failed_of
from muster.store.base import Events

Wire = asyncio.Task[Reply]
EndSignal = asyncio.Future[None]  # ends with its wire, but can be canceled without it


@dataclass(slots=True)
class _Sent:
    """An exchange on the wire, with when it is looked at; the first look only gives it its grace."""

    at: float
    grace: float
    ended: EndSignal
    warned: bool = False


class RunExchanges:
    """Runs each exchange as a task of its own, so that an answer that arrived survives whoever waited for it."""

    def __init__(self, count: WireCount) -> None:
        self._count = count
        self._open: set[Wire] = set()
        self._sent: dict[Wire, _Sent] = {}
        self._timer: asyncio.TimerHandle | None = None  # one for all: the earliest of them
        self._quiet = asyncio.Event()
        self._quiet.set()

    def launch(self, exchange: Coroutine[Any, Any, Reply], ended: EndSignal) -> Wire:
        """Begin an exchange; it may still wait for a place."""
        wire = asyncio.get_running_loop().create_task(exchange)
        wire.add_done_callback(lambda _: signal_end(ended))
        self._open.add(wire)
        return wire

    def send(self, wire: Wire, ended: EndSignal, seconds: float, grace: float) -> None:
        """Note that an exchange goes on the wire now; whoever waits for it goes on after so long and its grace.

        The grace begins when the loop notices that the time is over: after a pause of the process the agent first
        reads what arrived meanwhile.
        """
        at = asyncio.get_running_loop().time() + seconds
        self._sent[wire] = _Sent(at, grace, ended)
        self._count.open += 1
        self._quiet.clear()
        if self._timer is None or at < self._timer.when():
            self._set_timer(at)

    def sent(self, wire: Wire) -> bool:
        """Return whether anything of an exchange may have left."""
        return wire in self._sent

    def forget(self, wire: Wire) -> None:
        """Take an exchange off the wire."""
        self._open.discard(wire)
        if self._sent.pop(wire, None) is not None:
            self._count.open -= 1
        if not self._sent:
            self._set_timer(None)
            self._quiet.set()

    def cut(self) -> None:
        """Close all exchanges; the outcome of what was sent becomes uncertain."""
        for wire in self._open:
            wire.cancel()

    async def quiet(self) -> None:
        """Wait until nothing is on the wire."""
        await self._quiet.wait()

    def _set_timer(self, at: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if at is None else asyncio.get_running_loop().call_at(at, self._on_timer)

    def _on_timer(self) -> None:
        """Let those go on whose time and grace are over."""
        now = asyncio.get_running_loop().time()
        for sent in self._sent.values():
            if sent.at > now:
                continue
            if sent.warned and now - sent.at <= LATE:
                signal_end(sent.ended)
            else:
                sent.at, sent.warned = now + sent.grace, True
        self._timer = None
        self._set_timer(min((sent.at for sent in self._sent.values() if sent.at > now), default=None))


def signal_end(ended: EndSignal) -> None:
    """Let whoever waits go on."""
    if not ended.done():
        ended.set_result(None)


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
    return CallFailed(f"{agent} failed unexpectedly: {error!r}", paid=Paid.UNKNOWN)


SECONDS_BETWEEN = 1.0
Shown = Callable[[str], str]  # what is told of the text so far


class DeltaListener:
    """A listener that cannot disturb what it listens to: the first time that it raises it is dropped."""

    def __init__(self, listen: Callable[..., None], of: str) -> None:
        self._listen: Callable[..., None] | None = listen
        self._of = of

    def __call__(self, *told: str) -> None:
        """Tell the listener, if it is still there."""
        if self._listen is None:
            return
        try:
            returned: object = self._listen(*told)
            if inspect.iscoroutine(returned):
                returned.close()
                raise TypeError("a listener must not be async")
        except (Exception, asyncio.CancelledError) as error:  # of a future that the listener looked at
            self._listen = None
            # Only the kind: the message of an error may quote what was told.
            logging.getLogger("muster").error(
                "the listener of the deltas of %s raised %s and is not called again", self._of, type(error).__name__
            )


class Partial:
    """Collects the text of one attempt and stores it at most once a second, also when nothing follows for a while."""

    def __init__(
        self, events: Events, attempt: AttemptId, clock: Clock, on_delta: OnDelta | None, shown: Shown | None = None
    ) -> None:
        self._events, self._attempt = events, attempt
        self._clock, self._on_delta, self._shown = clock, on_delta, shown
        self._parts: list[str] = []
        self._told = ""  # to the listener, where not everything is shown
        self._timer: asyncio.Task[None] | None = None

    def __call__(self, delta: str) -> None:
        """Take over some text."""
        self._parts.append(delta)
        if self._on_delta is not None:
            self._on_delta(delta if self._shown is None else self._added())
        if self._timer is None:
            self._timer = asyncio.get_running_loop().create_task(self._store_soon())

    def close(self) -> None:
        """Store nothing more: the answer is there, and what was stored is removed with it."""
        if self._timer is not None:
            self._timer.cancel()

    async def _store_soon(self) -> None:
        await self._clock.sleep(SECONDS_BETWEEN)
        self._timer = None
        # Not awaited: a lost partial is no loss, and the writer keeps the order.
        self._events.put_partial(self._attempt, self._text(), self._clock.now())

    def _text(self) -> str:
        text = "".join(self._parts)
        if self._shown is None:
            return text
        try:
            return self._shown(text)
        except Exception:  # what is shown of an answer never touches the answer
            return self._told

    def _added(self) -> str:
        """Return what a listener is told next; what is taken back it has heard already."""
        before, self._told = self._told, self._text()
        return self._told.removeprefix(before)


class Exchange:
    """Sends the calls of a run, each once."""

    def __init__(self, services: CallServices, wires: RunExchanges, guard: CallGuard) -> None:
        self._with, self._wires, self._guard = services, wires, guard
        self._book = AttemptBooking(services).book

    async def send(self, asking: CallState, started: Started, admission: Admission) -> Reply | WireError:
        """Send and wait; canceled here, the outcome is settled before the cancellation is passed on."""
        timeouts = asking.timeouts
        if asking.time_left != timeouts.call:
            timeouts = replace(timeouts, call=max(asking.time_left, 0.001))
        ended: EndSignal = asyncio.get_running_loop().create_future()
        wire = self._wires.launch(self._perform(asking, started, admission, timeouts, ended), ended)
        try:
            await ended
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
            self._guard.check()
            raise Interrupted("the call was cut before it was sent")
        return answer

    async def _perform(
        self, asking: CallState, started: Started, admission: Admission, timeouts: Timeouts, ended: EndSignal
    ) -> Reply:
        """Go on the wire as soon as there is a place, and give it back the moment the answer is there.

        Nothing stands between one answer and the next request: whatever else there is to do is done after it.
        """
        outcome: object = None
        partial = self._partial(asking, started.id)
        try:
            await admission.acquire_wire()
            self._guard.check()
            asking.sent_at, asking.on_wire = self._with.clock.monotonic(), True
            # The agent minds the time itself; the seconds are for one that does not.
            self._wires.send(cast(Wire, asyncio.current_task()), ended, timeouts.call, timeouts.grace)
            reply = await self._ask(asking, timeouts, partial)
            outcome = reply
            self._check_cost(asking.key, reply, started.most)  # before the place is given to the next call
            return reply
        except WireError as error:
            outcome = error
            raise
        finally:
            asking.on_wire = False
            if partial is not None:
                partial.close()
            admission.leave(outcome)

    async def _ask(self, asking: CallState, timeouts: Timeouts, listener: Partial | None) -> Reply:
        agent, inbox, request = asking.agent, asking.inbox, asking.request
        if asking.passage is not None:
            return await self._pass_on(asking, asking.passage, timeouts)
        if request.has_media:
            request = await self._with.media.attach(request)
        if inbox is None:
            return await agent.call(request, timeouts, listener)
        request = await inbox.open(request)
        try:
            if isinstance(agent, InteractiveAgent) and agent.takes_messages:
                return await agent.converse(request, timeouts, inbox, listener)
            return await agent.call(request, timeouts, listener)
        finally:
            inbox.close()

    async def _pass_on(self, asking: CallState, passage: Passage, timeouts: Timeouts) -> Reply:
        """Pass the request of a foreign program on, and store what it is given."""
        agent, wire, flow = asking.agent, asking.request.wire, passage.flow
        if not isinstance(agent, UpstreamAgent) or wire is None:
            raise InvalidRequest(f"{agent.profile.name} passes no requests on")
        reply = await agent.exchange(wire, timeouts, flow)
        pieces: tuple[str, ...] = ()
        with contextlib.suppress(asyncio.CancelledError):  # the answer is there, and is settled
            pieces = await passage.bodies.keep(flow.body)
        size = len(flow.body)
        return replace(reply, wire=WireAnswer(status=flow.status, headers=flow.headers, size=size, pieces=pieces))

    def _check_cost(self, key: str, reply: Reply, most: Microdollars) -> None:
        cost = reply.booked(most).cost
        if cost > most:
            self._guard.add_excess(key, cost, most)

    def _partial(self, asking: CallState, attempt: AttemptId) -> Partial | None:
        if not asking.streams:
            return None
        return Partial(self._with.store.events, attempt, self._with.clock, asking.on_delta, asking.shown)

    def _read(self, asking: CallState, started: Started, wire: Wire) -> Reply | WireError | None:
        """Read what an exchange came to; one that never left gets its money back."""
        if not self._wires.sent(wire):
            if wire.done() and not wire.cancelled():
                wire.exception()  # the run was told to stop; that is raised again by whoever waits
            self._book(started, Unsent())
            return None
        asking.wire += self._with.clock.monotonic() - asking.sent_at
        return read_answer(wire, asking.agent.profile.name, asking.wire, asking.timeouts.call)

    def _settle_canceled(self, asking: CallState, started: Started, answer: Reply | WireError | None) -> None:
        """Settle an exchange that was canceled: an answer that arrived counts, else the outcome is unknown."""
        if isinstance(answer, Reply):
            self._book(started, Replied(reply=started.finish(answer, asking.wire)), asking)
        elif answer is not None:
            self._book(started, failed_of(answer), asking)

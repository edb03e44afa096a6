"""Reading: the lines of a page of results become settlements, one member after the other.

What is made of one line is used and let go of before the next is read, so that it is still in the processor's cache.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from muster.agents.base import BatchAgent
from muster.domain.batch import Answered, Batch, Errored, MemberResult, Seated, Shortfall
from muster.domain.call import Reply, Timings
from muster.domain.entry import AttemptState, Failed, Replied, Settlement
from muster.domain.errors import BatchCanceled, Expired, OutcomeUnknown, WireError
from muster.domain.money import NOTHING, Lane, Microdollars
from muster.engine.dismissing import fate_of, settlement_of
from muster.engine.odd import Odd
from muster.store.base import Page

Ended = Reply | WireError

_BY_PLACE: Callable[[tuple[int, bytes]], int] = itemgetter(0)
_PARKED = AttemptState.PARKED
_ENDED_AS = {Expired: AttemptState.EXPIRED, BatchCanceled: AttemptState.CANCELED}


class Reading:
    """Reads one page: the lines that were used, and the outcomes that somebody waits for, are there afterwards."""

    def __init__(self, agent: BatchAgent, batch: Batch, *, wanted: Container[int], odd: Odd) -> None:
        self._spelling, self._batch, self._names = agent.spelling, batch, batch.names
        self._wanted, self._odd = wanted, odd
        self._timings = Timings(waited=batch.seconds)  # parked: no clock of a call or a case goes on
        self.lines: list[bytes] = []
        self.outcomes: list[tuple[int, Ended]] = []

    def page(self, lines: Sequence[tuple[int, bytes]], members: Iterable[Seated], at: float) -> Page:
        """Give the page, which is read when its settlements are gone through."""
        settlements = self._settlements(lines, {member.place: member for member in members}, at)
        return Page(batch=self._batch.id, settlements=settlements, lines=self.lines, at=at)

    def _settlements(
        self, lines: Sequence[tuple[int, bytes]], members: Mapping[int, Seated], at: float
    ) -> Iterator[Settlement]:
        """Settle the members that are still parked, about in their order; the first good line of each counts."""
        read: set[int] = set()
        for glanced, line in sorted(lines, key=_BY_PLACE):
            found = self._read(glanced, line, members)
            if found is None:
                continue
            place, result = found
            if place in read:
                self._odd.duplicates += 1
                continue
            member = members.get(place)
            parked = member is not None and member.state is _PARKED
            outcome = self._outcome(member, result) if member is not None and parked else None
            if isinstance(outcome, OutcomeUnknown):
                self._odd.keep(line)  # its member stays parked: the next download may have the answer
                continue
            read.add(place)
            self._odd.answered += isinstance(result, Answered)
            self._odd.failed += not isinstance(result, Answered)
            if member is not None and outcome is not None:
                self.lines.append(line)
                if place in self._wanted:
                    self.outcomes.append((place, outcome))
                yield self._settlement(member, outcome, at)

    def _read(self, glanced: int, line: bytes, members: Mapping[int, Seated]) -> tuple[int, MemberResult] | None:
        """Read a line; whose it is says its name, and not what was seen of it at a glance."""
        read = self._spelling.read(line)
        if read is None:
            self._odd.keep(line)
            return None
        name, result = read
        if name == self._names.name(glanced):
            return glanced, result
        place = self._names.place(name)
        if place is None or place not in members:
            self._odd.keep(line, name)
            return None
        return place, result

    def _outcome(self, member: Seated, result: MemberResult) -> Ended:
        if isinstance(result, Answered):
            return self._answer(member, result)
        if isinstance(result, Errored):
            return result.error
        return _dropped(self._batch, result.why)

    def _answer(self, member: Seated, result: Answered) -> Ended:
        tariff, n = self._batch.tariffs[member.agent], member.attempt.n
        try:
            reply = self._spelling.decode(result.answer, tariff, member.size, member.max_tokens, self._timings)
        except WireError as error:
            return error
        booked = reply.booked(member.reserved)
        return booked if n == 1 else booked.finished(n, self._timings.waited, 0.0)

    def _settlement(self, member: Seated, outcome: Ended, at: float) -> Settlement:
        if isinstance(outcome, WireError):
            failed, _ = fate_of(outcome, _ENDED_AS.get(type(outcome), AttemptState.FAILED))
            return settlement_of(member, failed, at)
        return Settlement(
            member.attempt,
            Replied(outcome),
            member.reserved,
            member.levels,
            at,
            live_cost=self._live_cost(member, outcome),
            position=member.position,
        )

    def _live_cost(self, member: Seated, reply: Reply) -> Microdollars:
        """Return what a live call would have cost; nothing where the cost is uncertain, as it is not compared."""
        live = self._batch.tariffs[member.agent].live
        return NOTHING if live is None or reply.lane is Lane.UNCERTAIN else live.cost(reply.usage)


def missing(batch: Batch, shortfall: Shortfall) -> tuple[Failed, WireError]:
    """Say how a member ends that has no line in the results."""
    if shortfall is not Shortfall.NONE:
        error = _dropped(batch, shortfall)
        return fate_of(error, _ENDED_AS[type(error)])
    return fate_of(OutcomeUnknown(f"batch {batch.id} ended and gave no result for this call"))


def _dropped(batch: Batch, why: Shortfall) -> WireError:
    """Say that a batch did not come to a member."""
    if why is Shortfall.EXPIRED:
        return Expired(f"batch {batch.id} ran out of time before it came to this call")
    return BatchCanceled(f"batch {batch.id} was canceled before it came to this call")

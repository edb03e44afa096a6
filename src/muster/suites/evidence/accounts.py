"""The money and the calls of a run, added up from what is recorded of each call. Pure.

An archive tells of each attempt how it ended and what it cost. One of an earlier version has the costs of replies only,
which are all that was spent where each call was made once, and the least of it elsewhere.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.domain.canonical import Json, canonical
from muster.domain.entry import AttemptState, EntryState
from muster.domain.money import Lane
from muster.suites.evidence.marks import is_marked

Call = Mapping[str, Any]
BOOKINGS = "bookings"  # of a call: its attempts, each with its number, its state, its cost and its lane


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureDifference:
    """A figure that does not follow from the results, or from the calls."""

    where: str
    was: Json  # None: it is not there
    now: Json


@dataclass(slots=True, kw_only=True)
class CallAccount:
    """What the calls of one run come to."""

    counts: Counter[str] = field(default_factory=Counter)
    lanes: Counter[str] = field(default_factory=Counter)  # of what the run paid for itself
    is_exact: bool = True  # nothing else was spent
    has_bookings: bool = True

    def add(self, call: Call) -> None:
        """Add one call."""
        is_reused, bookings = call.get("reused_from") is not None, call.get(BOOKINGS)
        state = str(call.get("state"))
        self.counts.update({"total": 1, "reused": int(is_reused)})
        self.counts.update({state: 1} if state in (EntryState.DONE, EntryState.FAILED) else {})
        self.has_bookings = self.has_bookings and isinstance(bookings, list)
        if isinstance(bookings, list):
            for one in _mappings(bookings):
                self.lanes[str(one.get("lane"))] += _number(one.get("cost"))
                self.counts["uncertain"] += one.get("state") == AttemptState.UNCERTAIN
            return
        reply = call.get("reply")
        if isinstance(reply, Mapping) and not is_reused:
            self.lanes[str(reply.get("lane", Lane.BILLED))] += _number(reply.get("cost"))
        self.is_exact = self.is_exact and (is_reused or (reply is not None and call.get("attempts") == 1))

    def add_run(self, other: "CallAccount") -> None:
        """Add the money of a child."""
        self.lanes.update(other.lanes)
        self.is_exact = self.is_exact and other.is_exact

    def differences(self, where: str, run: Mapping[str, Json]) -> Iterator[FigureDifference]:
        """Find the figures of a run that do not follow from its calls."""
        told, spent = _mapping(run.get("calls")), _mapping(run.get("spent"))
        for name in _COUNTS if self.has_bookings else _COUNTS[:-1]:
            if told.get(name) != self.counts[name]:
                yield FigureDifference(where=f"{where}/calls/{name}", was=told.get(name), now=self.counts[name])
        yield from self.money_differences(where, spent)

    def money_differences(self, where: str, spent: Mapping[str, Json]) -> Iterator[FigureDifference]:
        """Find the lanes in which less was spent than the calls cost, or more if nothing else can have cost."""
        for lane in map(str, Lane):
            was, now = _number(spent.get(lane)), self.lanes[lane]
            if was < now or (self.is_exact and was != now):
                yield FigureDifference(where=f"{where}/spent/{lane}", was=spent.get(lane), now=now)


_COUNTS = ("total", "done", "failed", "reused", "uncertain")


def account_of(calls: Sequence[Call]) -> CallAccount:
    """Return what some calls come to."""
    found = CallAccount()
    for call in calls:
        found.add(call)
    return found


def settled_of(run: Mapping[str, Json]) -> int:
    """Return what a run says that it spent, in all lanes."""
    spent = _mapping(run.get("spent"))
    return sum(_number(spent.get(lane)) for lane in map(str, Lane))


def call_differences(where: str, call: Call) -> Iterator[FigureDifference]:
    """Find what does not fit together in the record of one call: its digest, its state, its attempts, its cost."""
    place = f"{where}/{call.get('key')}"
    digest = call.get("digest")
    if not is_marked(call) or (digest is not None and not is_marked([call.get("request"), call.get("agent")])):
        now = _digest_of(call)
        if digest != now:
            yield FigureDifference(where=f"{place}/digest", was=digest, now=now)
    if call.get("reply") is not None and call.get("state") != EntryState.DONE:
        yield FigureDifference(where=f"{place}/state", was=call.get("state"), now=str(EntryState.DONE))
    if isinstance(call.get(BOOKINGS), list) and call.get("reused_from") is None:
        yield from _booking_differences(place, call, list(_mappings(call[BOOKINGS])))


def _booking_differences(place: str, call: Call, bookings: Sequence[Mapping[str, Json]]) -> Iterator[FigureDifference]:
    if call.get("attempts") != len(bookings):
        yield FigureDifference(where=f"{place}/attempts", was=call.get("attempts"), now=len(bookings))
    reply = _mapping(call.get("reply"))
    ended = [one for one in bookings if one.get("state") == AttemptState.SUCCEEDED]
    paid = [(one.get("cost"), one.get("lane")) for one in ended]
    if paid and (reply.get("cost"), reply.get("lane")) not in paid:
        yield FigureDifference(where=f"{place}/reply/cost", was=reply.get("cost"), now=paid[-1][0])
    if not paid and reply.get("cost"):
        yield FigureDifference(where=f"{place}/reply/cost", was=reply.get("cost"), now=0)


def _digest_of(call: Call) -> str:
    """Return the digest of what was asked of whom, as `identify` makes it."""
    return hashlib.sha256(str(call.get("agent")).encode() + b"\n" + canonical(call.get("request"))).hexdigest()


def _mappings(values: Sequence[Any]) -> Iterator[Mapping[str, Json]]:
    return (one for one in values if isinstance(one, Mapping))


def _mapping(value: Any) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0

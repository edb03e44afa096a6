"""The money and the calls of a run, added up from what is recorded of each call. Pure.

A run that goes on from another has only a part of its calls in its own figures, so that nothing can be said of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.domain.canonical import Json

Call = Mapping[str, Any]
_LANES = ("billed", "imputed", "uncertain")


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureDifference:
    """A figure that does not follow from the results, or from the calls."""

    where: str
    was: Json  # None: it is not there
    now: Json


@dataclass(slots=True, kw_only=True)
class CallAccount:
    """What the calls of one run come to."""

    calls: int = 0
    cost: int = 0  # of replies that the run paid for itself
    is_exact: bool = True  # each call was made once and answered: nothing else was spent

    def add(self, call: Call) -> None:
        """Add one call."""
        reply, reused = call.get("reply"), call.get("reused_from") is not None
        self.calls += 1
        if isinstance(reply, Mapping) and not reused:
            self.cost += _number(reply.get("cost"))
        self.is_exact = self.is_exact and (reused or (reply is not None and call.get("attempts") == 1))

    def add_run(self, other: "CallAccount") -> None:
        """Add the money of a child."""
        self.cost, self.is_exact = self.cost + other.cost, self.is_exact and other.is_exact

    def differences(self, where: str, run: Mapping[str, Any]) -> Iterator[FigureDifference]:
        """Find the figures of a run that do not follow from its calls."""
        if run.get("origin") is not None:
            return
        counts, spent = _mapping(run.get("calls")), _mapping(run.get("spent"))
        if counts.get("total") != self.calls:
            yield FigureDifference(where=f"{where}/calls/total", was=counts.get("total"), now=self.calls)
        settled = settled_of(run)
        exact = self.is_exact and not any(_number(spent.get(lane)) for lane in _LANES[1:])
        if settled < self.cost or (exact and settled != self.cost):
            yield FigureDifference(where=f"{where}/spent", was=settled, now=self.cost)


def account_of(calls: Sequence[Call]) -> CallAccount:
    """Return what some calls come to."""
    found = CallAccount()
    for call in calls:
        found.add(call)
    return found


def settled_of(run: Mapping[str, Any]) -> int:
    """Return what a run says that it spent, in all lanes."""
    spent = _mapping(run.get("spent"))
    return sum(_number(spent.get(lane)) for lane in _LANES)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0

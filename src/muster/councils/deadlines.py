"""Deadlines and quorums: how the time that is left is divided, and how many answers a phase needs. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, fsum, inf

from muster.councils.order import DEFAULT_QUORUM
from muster.councils.rules.values import CouncilPhase
from muster.domain.errors import BadArgument

MIN_QUORUM = 2  # one proposal has no rival, and one evaluator has nobody to agree with
# Of what the longer phase gets, for the shorter: a phase that was quick once would else have no time to be slow.
_MIN_PART = 0.25
_MAX_DENOMINATOR = 12  # whoever writes 0.67 means two thirds


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTime:
    """How long one phase took that is over."""

    phase: CouncilPhase
    seconds: float


def quorum_of(members: int, share: float = DEFAULT_QUORUM) -> int:
    """Return how many of so many members must answer for a phase to go on: a share of them, and at least two."""
    if not 0 < share <= 1:
        raise BadArgument(f"quorum must be above 0 and at most 1, not {share!r}")
    exact = Fraction(share).limit_denominator(_MAX_DENOMINATOR)
    return max(MIN_QUORUM, ceil(exact * members))


def phase_seconds(
    left: float | None, phase: CouncilPhase, rounds_left: int, observed: Iterable[PhaseTime] = ()
) -> float | None:
    """Return how long a phase may take: its part of the time left, by what phases took; None without a deadline.

    The round that the phase belongs to counts in `rounds_left`. What a phase leaves over goes to those after it.
    """
    if left is None:
        return None
    if rounds_left < 1:
        raise BadArgument(f"rounds_left must be 1 or more, not {rounds_left}")
    usual = _usual(list(observed))
    this_round = usual.values() if phase is CouncilPhase.PROPOSE else [usual[CouncilPhase.EVALUATE]]
    rest = fsum([*this_round, (rounds_left - 1) * fsum(usual.values())])
    return max(left, 0.0) * usual[phase] / rest


def call_seconds(own: float | None, left: float | None) -> float:
    """Return how long a call in a phase may take: infinity without a bound, 0 when it is not to be started."""
    return max(0.0, min(inf if own is None else own, inf if left is None else left))


def _usual(observed: list[PhaseTime]) -> dict[CouncilPhase, float]:
    """Return what each phase takes in the mean, of what the longer takes; one that was not seen takes as long."""
    seen = {phase: [one.seconds for one in observed if one.phase is phase] for phase in CouncilPhase}
    means = {phase: fsum(seconds) / len(seconds) for phase, seconds in seen.items() if seconds}
    longest = max(means.values(), default=0.0) or 1.0
    return {phase: max(means.get(phase, longest) / longest, _MIN_PART) for phase in CouncilPhase}

"""Whether a recorded council can have ended as it says: what follows from its rounds and calls is computed again. Pure.

What clocks, money and people decided stands in no reply. It must be possible, and its words must fit the rest.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose

from muster.councils.deadlines import quorum_of
from muster.councils.rules.outcome import CouncilRound
from muster.councils.rules.stopping import (
    MIN_MEMBERS,
    Conditions,
    StopDecision,
    StopReason,
    conviction_of,
    decide,
)
from muster.councils.rules.values import CouncilPhase
from muster.councils.spec import CouncilSpec
from muster.domain.money import Microdollars, to_usd
from muster.domain.rules import DefaultRules

# Whatever else ended a council, clocks, money and people did, which no reply shows: then a round may be incomplete.
BY_RULE = frozenset({StopReason.CONVINCED, StopReason.ROUNDS})
_TOLERANCE = 1e-9
_CENTS = 0.00005  # what the words about money are rounded by
_SECONDS = 0.1  # and those about time, together
_MONEY = re.compile(r"\$(\d+\.\d{4}) are left; the last round cost \$(\d+\.\d{4})")
_TIME = re.compile(r"(\d+\.\d) s are left; the last round took (\d+\.\d) s")
_MEMBERS = re.compile(rf"(\d+) of at least {MIN_MEMBERS} agents are left")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardRound:
    """What the calls of a round after the complete ones come to."""

    is_begun: bool  # somebody was asked
    proposals: int
    proposed: tuple[int, ...]  # how many members may have answered, from the least to the most
    evaluated: tuple[int, ...]

    def phase_flaw(self, spec: CouncilSpec) -> tuple[str, ...]:
        """Return how the words about the phase may begin that had no quorum; empty when each had one."""
        return (
            *_few(CouncilPhase.PROPOSE, self.proposed, spec),
            *((f"propose: there are {self.proposals} proposals, and",) if self.proposals < MIN_MEMBERS else ()),
            *_few(CouncilPhase.EVALUATE, self.evaluated, spec),
        )


def _few(phase: CouncilPhase, answers: Sequence[int], spec: CouncilSpec) -> Iterator[str]:
    members, needed = len(spec.members), quorum_of(len(spec.members), spec.quorum)
    yield from (
        f"{phase}: {one} of {members} members answered, and {needed} are needed" for one in answers if one < needed
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilEnd:
    """How a recorded council says that it ended, beside what its calls come to."""

    spec: CouncilSpec
    rounds: Sequence[CouncilRound]  # as they were read again
    stop: StopDecision
    open_round: int | None
    spent: Microdollars
    has_budget: bool | None  # whether any budget bounds it; None: nobody knows
    heard: HeardRound | None  # of the round after the complete ones; None: a rule ended it before

    def flaws(self, rules: DefaultRules) -> Iterator[str]:
        """Yield why a council cannot have ended as it is recorded."""
        if self.rounds:
            yield from self._evidence_flaws(rules)
        if self.heard is None:
            if rules.whole_councils and self.open_round is not None:
                yield f"it ended by {self.stop.reason}, which is no end in the middle of a round"
            return
        yield from self._reason_flaws(self.heard)
        if rules.whole_councils:
            yield from self._open_flaws(self.heard)
        if rules.orders_councils and not self._is_worded(self.heard):
            yield f"it says of its end what cannot be: {self.stop.detail[:_SHOWN]}"

    def _evidence_flaws(self, rules: DefaultRules) -> Iterator[str]:
        """Yield what does not follow from the convictions of its rounds."""
        convictions, stop = [conviction_of(one.score) for one in self.rounds], self.stop
        ends = [self._decided(place, convictions) for place in range(1, len(self.rounds) + 1)]
        last = ends[-1]
        if any(one.reason in BY_RULE for one in ends[:-1]):
            yield "it went on after it was convinced"
        if not isclose(last.evidence, stop.evidence, abs_tol=_TOLERANCE):
            yield f"its evidence is {last.evidence:.3f}, and {stop.evidence:.3f} is recorded"
        if not isclose(last.needed, stop.needed, abs_tol=_TOLERANCE):
            yield f"it needed evidence of {last.needed:.3f}, and {stop.needed:.3f} is recorded"
        if stop.reason in BY_RULE and last.reason is not stop.reason:
            yield f"after {len(self.rounds)} rounds it was not over by the reason {stop.reason}"
        elif stop.reason in BY_RULE and rules.orders_councils and last.detail != stop.detail:
            yield f"it ended with: {last.detail}"

    def _decided(self, rounds: int, convictions: Sequence[float]) -> StopDecision:
        candidates = len(self.rounds[rounds - 1].score.standings)
        conditions = Conditions(candidates=candidates, members=len(self.spec.members))
        return decide(self.spec.rule, convictions[:rounds], conditions)

    def _reason_flaws(self, heard: HeardRound) -> Iterator[str]:
        """Yield why nothing can have ended a council that nothing bounds."""
        reason = self.stop.reason
        if not self.rounds and reason is not StopReason.STOPPED:
            yield "it has no complete round, and did not fail"
        if reason is None or (reason is StopReason.TIME and self.spec.timeout_secs is None):
            yield f"it ended by {reason}, which does not bound it"
        if reason is StopReason.BUDGET and self.has_budget is False:
            yield "it ended by its budget, and has none"
        if reason is StopReason.MEMBERS and not heard.is_begun and self._members_left >= MIN_MEMBERS:
            yield "it ended for want of members, and nobody was asked who did not answer"

    @property
    def _members_left(self) -> int:
        """How many members no budget of their own can have ended."""
        return sum(member.budget_usd is None for member in self.spec.members)

    def _open_flaws(self, heard: HeardRound) -> Iterator[str]:
        """Yield why another round was begun than is told."""
        number = len(self.rounds) + 1
        if self.open_round is None and heard.is_begun:
            yield f"round {number} was begun by its calls, and the outcome does not tell it"
        if self.open_round not in (None, number):
            yield f"it was not in round {self.open_round} when it ended"

    def _is_worded(self, heard: HeardRound) -> bool:
        """Return whether its words are those of such an end; numbers that nothing gives must fit the others."""
        detail, number = self.stop.detail, len(self.rounds) + 1
        if self.stop.reason is StopReason.STOPPED:
            return detail in self._stopped_words(heard)
        if any(detail.startswith(f"round {number}, phase {flaw}") for flaw in heard.phase_flaw(self.spec)):
            return heard.is_begun or self.stop.reason is not StopReason.MEMBERS
        match self.stop.reason:
            case StopReason.BUDGET:
                return self._is_costly(_MONEY.fullmatch(detail))
            case StopReason.TIME:
                found = _TIME.fullmatch(detail)
                return found is not None and float(found[1]) <= float(found[2]) / 2 + _SECONDS
            case _:
                found = _MEMBERS.fullmatch(detail)
                return found is not None and self._members_left <= int(found[1]) < MIN_MEMBERS

    def _stopped_words(self, heard: HeardRound) -> Iterator[str]:
        number, members = len(self.rounds), len(self.spec.members)
        yield f"a stop signal came in round {number + 1}, before it was complete"
        if self.rounds and not heard.is_begun:
            yield f"a stop signal came after round {number}"
            counted = self.rounds[-1].score.counted
            yield f"decided by {counted} of {members} evaluations; the council was stopped"

    def _is_costly(self, found: re.Match[str] | None) -> bool:
        """Return whether less money was left than the last round cost, and that was no more than all rounds did."""
        if found is None or not self.rounds or not self.spent:
            return False
        left, cost = float(found[1]), float(found[2])
        return left <= cost <= to_usd(self.spent) + _CENTS


_SHOWN = 200  # characters of what is recorded

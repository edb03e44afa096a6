"""Retries that get the answer which was paid for: a client whose connection broke asks again, and is not charged again.

A request joins an exchange of the same question by the same client only if nobody has its answer: its client left
before the last byte, or the request says that it is a retry. What was delivered is never given again.
"""

from collections import OrderedDict
from dataclasses import dataclass

from muster.agents.upstream.dialects import AnswerForm
from muster.domain.exchange import WireRequest
from muster.engine.base.clock import Clock
from muster.engine.calls.flow import AnswerFlow

KEPT_SECONDS = 600.0  # for which an answer waits for its client
MAX_KEPT = 1_000  # exchanges that may be joined; their answers are in memory
MIN_LOOKED_AT = 50
Question = tuple[object, ...]  # whose, to whom, and what


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An exchange that may be joined."""

    flow: AnswerFlow
    streams: bool
    form: AnswerForm
    at: float


class RetryJoins:
    """The exchanges of a server of which a retry may take the answer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[Question, KeptAnswer] = OrderedDict()
        self._looks_at = MIN_LOOKED_AT  # exchanges, before those that are over are forgotten

    def find(self, question: Question, request: WireRequest, retries: int) -> KeptAnswer | None:
        """Return the exchange whose answer a request gets; None where it is to be asked."""
        self._forget()
        kept = self._kept.get(question)
        if kept is None or kept.flow.is_delivered or kept.flow.is_lost or not (kept.flow.is_left or retries > 0):
            return None
        if request.facts.stream and not kept.streams:
            return None  # a whole answer cannot be told apart into the events of a stream
        kept.flow.is_left = False
        return kept

    def keep(self, question: Question, kept: KeptAnswer) -> None:
        """Keep an exchange that has begun."""
        self._kept[question] = kept
        self._kept.move_to_end(question)

    def now(self) -> float:
        """Return the time of an exchange that begins."""
        return self._clock.monotonic()

    def _forget(self) -> None:
        if len(self._kept) < self._looks_at:
            return
        now = self._clock.monotonic()
        left = [(question, one) for question, one in self._kept.items() if self._may_be_joined(one, now)]
        self._kept = OrderedDict(left[-MAX_KEPT:])
        self._looks_at = 2 * len(self._kept) + MIN_LOOKED_AT

    def _may_be_joined(self, kept: KeptAnswer, now: float) -> bool:
        return not kept.flow.is_delivered and not kept.flow.is_lost and now - kept.at <= KEPT_SECONDS

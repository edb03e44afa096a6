"""What this process has done since it was started: attempts, tokens and times by agent, and no content."""

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.domain.call import Usage
from muster.domain.entry import AttemptState, Failed, Outcome, Replied
from muster.domain.ids import RunId
from muster.domain.observation import AttemptBegan, AttemptEnded, CallBegan, CallEnded, Observation

BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0)  # seconds


@dataclass(slots=True)
class SecondsHistogram:
    """Durations, counted by the first bound that they do not exceed."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    sum: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds


@dataclass(slots=True)
class _CountedCall:
    """A call under way: who is asked, and since when its attempt is live."""

    agent: str
    tried: bool = False  # an attempt has begun and not ended
    since: float | None = None


class CallTotals:
    """Counts attempts by agent and outcome, tokens by agent and kind, and how long attempts waited and took."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[tuple[RunId, str], _CountedCall] = {}
        self.attempts: Counter[tuple[str, str]] = Counter()
        self.tokens: Counter[tuple[str, str]] = Counter()
        self.waits: defaultdict[str, SecondsHistogram] = defaultdict(SecondsHistogram)
        self.durations: defaultdict[str, SecondsHistogram] = defaultdict(SecondsHistogram)

    def __call__(self, observation: Observation) -> None:
        """Count an observation."""
        match observation:
            case CallBegan(run, key, profile, _):
                self._open[run, key] = _CountedCall(profile.label)
            case CallEnded(run, key, _):
                self._open.pop((run, key), None)
            case AttemptBegan():
                self._begin(observation)
            case AttemptEnded(attempt, outcome) if outcome is not None:
                call = self._open.get((attempt.run, attempt.key))
                if call is not None and call.tried:
                    self._end(call, outcome)

    def _begin(self, began: AttemptBegan) -> None:
        call = self._open.get((began.attempt.run, began.attempt.key))
        if call is None:
            return
        call.tried = True
        if began.batch is None:  # hours in a batch say nothing about an agent
            self.waits[call.agent].add(began.waited)
            call.since = self._clock()

    def _end(self, call: _CountedCall, outcome: Outcome) -> None:
        call.tried = False
        self.attempts[call.agent, ending_of(outcome)] += 1
        if isinstance(outcome, Replied):
            self._count(call.agent, outcome.reply.usage)
        if call.since is not None:
            self.durations[call.agent].add(self._clock() - call.since)
            call.since = None

    def _count(self, agent: str, usage: Usage) -> None:
        self.tokens[agent, "input"] += usage.input
        self.tokens[agent, "output"] += usage.output
        self.tokens[agent, "cache_read"] += usage.cache_read
        self.tokens[agent, "cache_write"] += usage.cache_write + usage.cache_write_1h


def ending_of(outcome: Outcome) -> AttemptState:
    """Return how an attempt ended, as the store has it."""
    if isinstance(outcome, Replied):
        return AttemptState.SUCCEEDED
    if isinstance(outcome, Failed):
        return AttemptState.UNCERTAIN if outcome.uncertain else outcome.ended_as
    return AttemptState.UNSENT

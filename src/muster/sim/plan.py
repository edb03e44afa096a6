"""The plan that picks a fault for a request, a member or a batch."""

import hashlib
from collections import Counter

from muster.sim.faults import Fault, Faults, Op


class FaultPlan:
    """Picks faults; by rate, the pick depends only on the request and how often it was seen, not on others."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._requests = 0
        self._used = [0] * len(faults.script)
        self._seen: Counter[str] = Counter()
        self._met: Counter[str] = Counter()

    def pick(self, digest: str, model: str, text: str) -> Fault | None:
        """Pick the fault for a request, if any."""
        self._requests += 1
        return self._by_script(model, text) or self._by_rate(digest)

    @property
    def idle(self) -> bool:
        """Say that nothing will ever be picked."""
        return not self.faults.script and not self.faults.rates

    def _by_script(self, model: str, text: str) -> Fault | None:
        for index, cue in enumerate(self.faults.script):
            left = cue.times is None or self._used[index] < cue.times
            if left and cue.matches(self._requests, model, text):
                self._used[index] += 1
                return cue.fault
        return None

    def _by_rate(self, digest: str) -> Fault | None:
        if not self.faults.rates:
            return None
        self._seen[digest] += 1
        fault = self._drawn(_chance(self.faults.seed, digest, self._seen[digest]))
        most = self.faults.at_most_per_digest
        if fault is None or (most is not None and self._met[digest] >= most):
            return None
        self._met[digest] += 1
        return fault

    def _drawn(self, chance: float) -> Fault | None:
        for fault, rate in self.faults.rates:
            chance -= rate
            if chance < 0:
                return fault
        return None


class Plans:
    """A plan for every operation, each with its own counts."""

    def __init__(self, faults: Faults) -> None:
        self.play(faults)

    def play(self, faults: Faults) -> None:
        """Play these faults from their beginning."""
        self.faults = faults
        self._plans = {op: FaultPlan(faults.of(op)) for op in Op}

    def of(self, op: Op) -> FaultPlan:
        """Give the plan of an operation."""
        return self._plans[op]


def _chance(seed: int, digest: str, time: int) -> float:
    drawn = hashlib.sha256(f"{seed}:{digest}:{time}".encode()).digest()[:7]
    return int.from_bytes(drawn, "big") / 2**56

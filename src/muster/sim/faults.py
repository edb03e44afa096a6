"""Faults: what can go wrong, where, and how often or when."""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase


class Op(StrEnum):
    """Where it goes wrong."""

    LIVE = "live"  # a request for one answer
    FLEX = "flex"  # such a request in the tier flex, before it is looked at as a live one
    BATCH_CREATE = "batch_create"
    BATCH_RETRIEVE = "batch_retrieve"
    BATCH_LIST = "batch_list"
    BATCH_CANCEL = "batch_cancel"
    BATCH_DELETE = "batch_delete"
    BATCH_RESULTS = "batch_results"
    FILE_UPLOAD = "file_upload"
    FILE_RETRIEVE = "file_retrieve"
    FILE_LIST = "file_list"
    FILE_DELETE = "file_delete"
    FILE_CONTENT = "file_content"
    MEMBER = "member"  # no request: one member of a batch, when it is processed
    BATCH = "batch"  # no request: a whole batch, decided when it is created


class FaultKind(StrEnum):
    """What goes wrong; up to `garbage` with any request, after that with answers and batches."""

    BAD_REQUEST = "400"
    UNAUTHORIZED = "401"
    FORBIDDEN = "403"
    MISSING = "404"
    TOO_LARGE = "413"
    RATE_LIMITED = "429"
    RESOURCE_UNAVAILABLE = "resource_unavailable"  # the tier flex has no place: status 429
    BROKEN = "500"
    OVERLOADED = "529"
    TIMEOUT = "timeout"  # no answer ever comes
    CUT_BEFORE = "cut_before"  # the connection is cut, and nothing was counted
    CUT_AFTER = "cut_after"  # the connection is cut, and the answer was counted
    SLOW_STREAM = "slow_stream"  # the answer comes whole, with a pause before every piece
    STALLED_STREAM = "stalled_stream"  # the answer stops in the middle, and the connection stays open
    CUT_STREAM = "cut_stream"  # the answer stops in the middle, and the connection is cut
    TRUNCATED = "truncated"  # half an answer in a sound HTTP message
    GARBAGE = "garbage"  # status 200 and a body that is not JSON; of a member: a line with no answer in it
    ZERO_USAGE = "zero_usage"  # the answer comes whole and is paid, and reports that it used no tokens
    EXPIRED = "expired"  # a member that was not processed in time
    DUPLICATE = "duplicate"  # a member with two lines in the results
    NO_LINE = "missing"  # a member with none, although it was counted
    UNKNOWN_ID = "unknown_id"  # after a member's line, another with an id that nobody sent
    EXPIRY = "expiry"  # half of a batch is processed when its time is over
    VALIDATION_FAILURE = "validation_failure"  # a batch is not taken (Anthropic) or fails (OpenAI)
    LATE_404 = "late_404"  # a batch is not found just after its creation, and its results not just after its end
    UNKNOWN_STATUS = "unknown_status"  # a batch tells its status in a new word
    NO_RESULTS_URL = "no_results_url"  # a batch has ended, and does not tell where its results are
    FOREIGN_RESULTS_URL = "foreign_results_url"  # it tells a place at another address (Anthropic only)

    @property
    def status(self) -> int | None:
        """The status of a fault that is an honest error."""
        if self is FaultKind.RESOURCE_UNAVAILABLE:
            return 429
        return int(self.value) if self.value.isdigit() else None


REFUSALS = frozenset(kind for kind in FaultKind if kind.status is not None)
UNPAID = REFUSALS | {FaultKind.CUT_BEFORE, FaultKind.EXPIRED}
_OF_LINES = frozenset({FaultKind.EXPIRED, FaultKind.DUPLICATE, FaultKind.NO_LINE, FaultKind.UNKNOWN_ID})
OF_BATCHES = frozenset(
    {
        FaultKind.EXPIRY,
        FaultKind.VALIDATION_FAILURE,
        FaultKind.LATE_404,
        FaultKind.UNKNOWN_STATUS,
        FaultKind.NO_RESULTS_URL,
        FaultKind.FOREIGN_RESULTS_URL,
    }
)
_OF_ANSWERS = frozenset({FaultKind.ZERO_USAGE})
_OF_FLEX = frozenset({FaultKind.RESOURCE_UNAVAILABLE})
OF_MEMBERS = _OF_LINES | REFUSALS - _OF_FLEX | {FaultKind.TRUNCATED, FaultKind.GARBAGE} | _OF_ANSWERS
OF_REQUESTS = frozenset(FaultKind) - _OF_LINES - OF_BATCHES - _OF_ANSWERS - _OF_FLEX


def kinds_of(op: Op) -> frozenset[FaultKind]:
    """Return the kinds of faults of an operation."""
    answers = OF_REQUESTS | _OF_ANSWERS
    kinds = {Op.MEMBER: OF_MEMBERS, Op.BATCH: OF_BATCHES, Op.LIVE: answers, Op.FLEX: answers | _OF_FLEX}
    return kinds.get(op, OF_REQUESTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong."""

    kind: FaultKind
    op: Op = Op.LIVE
    retry_after: float | None = None  # seconds, of an honest error
    counted: bool = True  # of a timeout: whether it is paid
    gap_ms: float = 100.0  # of a slow stream: the pause before every piece
    looks: int = 1  # of a batch's fault that passes: how often it is seen

    @property
    def name(self) -> str:
        """What the audit calls it."""
        return self.kind.value if self.op is Op.LIVE else f"{self.op}/{self.kind}"

    @property
    def paid(self) -> bool:
        """Return whether it was done, and so counted, although the answer does not arrive whole."""
        return self.counted if self.kind is FaultKind.TIMEOUT else self.kind not in UNPAID


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedFault:
    """A scripted fault, and the requests (or members, or batches) it waits for; what it leaves out matches any."""

    fault: Fault
    nth: int | None = None  # not before this one of its operation, the first being 1
    model: str = "*"  # a glob
    text: str = ""  # a regular expression, searched in the last text that was sent
    times: int | None = 1  # None: always

    def matches(self, nth: int, model: str, text: str) -> bool:
        """Return whether this fault waits for such a request."""
        return (
            (self.nth is None or nth >= self.nth)
            and fnmatchcase(model, self.model)
            and (not self.text or re.search(self.text, text) is not None)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Everything that may go wrong: by script, else by rate; and how many requests fit at a time."""

    seed: int = 0
    rates: tuple[tuple[Fault, float], ...] = ()
    at_most_per_digest: int | None = None  # faults by rate that one request can meet, however often it is sent
    script: tuple[ScriptedFault, ...] = ()
    capacity: int | None = None
    retry_after: float | None = None  # of requests beyond the capacity

    def of(self, op: Op) -> "Faults":
        """Return those of one operation."""
        rates = tuple((fault, rate) for fault, rate in self.rates if fault.op is op)
        return replace(self, rates=rates, script=tuple(scripted for scripted in self.script if scripted.fault.op is op))


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
        """Return whether nothing will ever be picked."""
        return not self.faults.script and not self.faults.rates

    def _by_script(self, model: str, text: str) -> Fault | None:
        for index, scripted in enumerate(self.faults.script):
            left = scripted.times is None or self._used[index] < scripted.times
            if left and scripted.matches(self._requests, model, text):
                self._used[index] += 1
                return scripted.fault
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
        """Return the plan of an operation."""
        return self._plans[op]


def _chance(seed: int, digest: str, time: int) -> float:
    drawn = hashlib.sha256(f"{seed}:{digest}:{time}".encode()).digest()[:7]
    return int.from_bytes(drawn, "big") / 2**56

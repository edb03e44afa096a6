"""The figures of one subject of a run: how often it passed, how good, how fast and how dear it was."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.checks.interval import Interval
from muster.checks.variance import VarianceSplit
from muster.domain.money import NOTHING, Microdollars
from muster.domain.verdict import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """What k epochs of a case would bring."""

    k: int
    one: float  # pass@k: at least one passes
    every: float  # pass^k: all pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds on the wire of one epoch of a case."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectStats:
    """Everything that is said of one subject; figures are None where there is nothing to take them from."""

    subject: str = ""
    cases: int = 0  # all, those that were skipped too
    run: int = 0  # cases without those
    results: int = 0  # epochs of all cases that were run
    epochs: int = 0  # of the case that has most
    statuses: Mapping[Status, int] = field(default_factory=dict)  # of cases, all epochs together
    pass_rate: float | None = None  # of the cases that were run; flaky, error and unjudged are no pass
    pass_interval: Interval | None = None  # Wilson's, over cases
    scored: int = 0  # cases that have a score
    mean_score: float | None = None  # over these cases, of the mean over their epochs
    score_interval: Interval | None = None  # bootstrap over cases
    repeats: tuple[Repeats, ...] = ()  # k from 1 to the number of epochs
    variance: VarianceSplit = field(default_factory=VarianceSplit)
    latency: Latency | None = None
    cost: Microdollars = NOTHING  # of the agent
    judge_cost: Microdollars = NOTHING
    cost_per_case: float | None = None  # microdollars, of the cases that were run
    judge_cost_per_case: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    agreement: float | None = None  # of samples of a judge on passing, mean over the answers that have several
    agreements: int = 0  # how many answers that are
    unjudged_items: int = 0  # rubric items that nobody judged, over all results

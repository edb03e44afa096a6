"""Figures over past verifications in a window of time. A cycle is one verification, from its start to its end."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from muster.domain.batch import Batch
from muster.domain.errors import FixSpec, NotFound
from muster.domain.ids import BatchId
from muster.domain.money import NOTHING, Microdollars, to_usd
from muster.domain.run import Run, RunState
from muster.statistics.batches import BatchStats, Durations, batch_stats, durations, share
from muster.store.base import Store
from muster.text.views import View
from muster.text.words import moment
from muster.verify.findings.finding import Counts
from muster.verify.findings.journal import NONE, AgentReport, Ending
from muster.verify.kind import VERIFICATION
from muster.verify.reports.json_report import FindingCountsView, counts_view
from muster.verify.reports.run import open_waves_run
from muster.verify.reports.summary import VerifyReport, summarize

PAGE = 200
EXPIRED = "expired"
NO_BATCHES = BatchStats()
UNDER_WAY = frozenset({RunState.QUEUED, RunState.RUNNING, RunState.WAITING})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMetrics:
    """What one agent came to in all cycles."""

    agent: str
    endings: Mapping[Ending, int]
    counts: Counts = NONE
    cost: Microdollars = NOTHING

    @property
    def reports(self) -> int:
        """How often it had something to look at."""
        return sum(number for ending, number in self.endings.items() if ending is not Ending.IDLE)

    @property
    def pass_rate(self) -> float | None:
        """How often it passed, of the times it had something to look at."""
        return share(self.endings.get(Ending.PASSED, 0), self.reports)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyMetrics:
    """Figures over some cycles; a rate is None where there is nothing to take it of."""

    since: float
    cycles: int = 0
    passed: int = 0
    failed: int = 0  # they came to their end, and something speaks against them
    stopped: int = 0  # they did not: interrupted, over budget, canceled, out of time
    under_way: int = 0
    completion: Durations | None = None  # of those that came to their end
    agents: tuple[AgentMetrics, ...] = ()  # by name
    codes: Mapping[str, int] = field(default_factory=dict)  # of calls without a report that counts
    billed: Microdollars = NOTHING
    uncertain: Microdollars = NOTHING
    cost: Microdollars = NOTHING  # known, by whoever pays for it
    live: Microdollars = NOTHING  # what the same would have cost live
    batches: BatchStats = NO_BATCHES  # that hold calls of these cycles

    @property
    def over(self) -> int:
        """How many cycles are not under way any more."""
        return self.passed + self.failed + self.stopped

    @property
    def pass_rate(self) -> float | None:
        """The share of cycles that passed."""
        return share(self.passed, self.over)

    @property
    def reports(self) -> int:
        """How many reports of agents were to come."""
        return sum(agent.reports for agent in self.agents)

    @property
    def error_rate(self) -> float | None:
        """The share of agents' reports that are broken."""
        return share(sum(agent.endings.get(Ending.BROKEN, 0) for agent in self.agents), self.reports)

    @property
    def expired(self) -> int:
        """How many calls have no report because their batch expired."""
        return self.codes.get(EXPIRED, 0)

    @property
    def expired_share(self) -> float | None:
        """The share of failures that are expiries."""
        return share(self.expired, sum(self.codes.values()))

    @property
    def cost_per_cycle(self) -> float | None:
        """What a cycle cost in the mean, in microdollars."""
        return share(self.cost, self.cycles)

    @property
    def live_per_cycle(self) -> float | None:
        """What a cycle would have cost live in the mean, in microdollars."""
        return share(self.live, self.cycles)


class CycleCostView(View):
    """What cycles cost, and what they would have cost live."""

    total_usd: float
    billed_usd: float
    uncertain_usd: float
    live_usd: float
    per_cycle_usd: float | None
    live_per_cycle_usd: float | None


class CycleBatchesView(View):
    """The batches that hold calls of cycles."""

    count: int
    requests: int
    ended: int
    expired: int
    expiry_rate: float | None
    seconds: Durations | None


class AgentMetricsView(View):
    """What one agent came to in all cycles."""

    agent: str
    reports: int
    endings: Mapping[Ending, int]
    pass_rate: float | None
    findings: FindingCountsView
    cost_usd: float


class VerifyMetricsView(View):
    """Figures over some cycles."""

    since: str | None
    cycles: int
    passed: int
    failed: int
    stopped: int
    under_way: int
    pass_rate: float | None
    error_rate: float | None
    seconds: Durations | None
    expired_calls: int
    expired_share: float | None
    codes: Mapping[str, int]
    cost: CycleCostView
    batches: CycleBatchesView
    agents: Sequence[AgentMetricsView]


async def verify_metrics(store: Store, since: float) -> VerifyMetrics:
    """Sum up the verifications that were started since then."""
    tally = _Tally(since)
    async for run in _runs(store, since):
        tally.batches.update({batch.id: batch for batch in await store.batches.of_run(run.id)})
        tally.add(run, await _report(store, run))
    return tally.metrics()


async def _runs(store: Store, since: float) -> AsyncIterator[Run]:
    """Yield the verifications since then: the newest runs are read, more and more of them, until one is older."""
    limit = PAGE
    while True:
        found = await store.runs.select(limit=limit)
        if len(found) < limit or found[-1].created_at < since:
            break
        limit *= 4
    for run in found:
        if run.workload == VERIFICATION.workload and run.created_at >= since:
            yield run


async def _report(store: Store, run: Run) -> VerifyReport | None:
    """Sum up one cycle; None for one that has nothing to report."""
    try:
        return await summarize(await open_waves_run(store, run))
    except (NotFound, FixSpec):  # it never read its files, or its spec is one that nobody can read any more
        return None


class _Tally:
    """What is added up while cycles pass by."""

    def __init__(self, since: float) -> None:
        self.batches: dict[BatchId, Batch] = {}
        self._since = since
        self._ways: Counter[str] = Counter()
        self._seconds: list[float] = []
        self._agents: dict[str, list[AgentReport]] = {}
        self._codes: Counter[str] = Counter()
        self._money: Counter[str] = Counter()

    def add(self, run: Run, report: VerifyReport | None) -> None:
        """Add one cycle."""
        self._ways[_way(run, report)] += 1
        spent = run.spent
        known = spent.billed + spent.imputed
        self._money.update(billed=spent.billed, uncertain=spent.uncertain, known=known)
        self._money["live"] += known if report is None else report.run.cost.live
        if report is None:
            return
        if run.state is RunState.COMPLETED and report.run.seconds is not None:
            self._seconds.append(report.run.seconds)
        for agent in report.agents:
            self._agents.setdefault(agent.agent, []).append(agent)
            self._codes.update(agent.codes)

    def metrics(self) -> VerifyMetrics:
        """Return what came together."""
        ways, money = self._ways, self._money
        return VerifyMetrics(
            since=self._since,
            cycles=ways.total(),
            passed=ways["passed"],
            failed=ways["failed"],
            stopped=ways["stopped"],
            under_way=ways["under_way"],
            completion=durations(self._seconds),
            agents=tuple(_agent(name, self._agents[name]) for name in sorted(self._agents)),
            codes=dict(sorted(self._codes.items())),
            billed=Microdollars(money["billed"]),
            uncertain=Microdollars(money["uncertain"]),
            cost=Microdollars(money["known"]),
            live=Microdollars(money["live"]),
            batches=batch_stats(list(self.batches.values())),
        )


def _way(run: Run, report: VerifyReport | None) -> str:
    if run.state in UNDER_WAY:
        return "under_way"
    if run.state is not RunState.COMPLETED:
        return "stopped"
    return "passed" if report is not None and report.ok else "failed"


def _agent(name: str, reports: list[AgentReport]) -> AgentMetrics:
    counts = [report.counts for report in reports]
    return AgentMetrics(
        agent=name,
        endings=dict(Counter(report.ending for report in reports)),
        counts=Counts(
            critical=sum(one.critical for one in counts),
            high=sum(one.high for one in counts),
            medium=sum(one.medium for one in counts),
            low=sum(one.low for one in counts),
            rejected=sum(one.rejected for one in counts),
        ),
        cost=Microdollars(sum(report.cost for report in reports)),
    )


def verify_metrics_view(metrics: VerifyMetrics) -> VerifyMetricsView:
    """Return the figures."""
    return VerifyMetricsView(
        since=moment(metrics.since),
        cycles=metrics.cycles,
        passed=metrics.passed,
        failed=metrics.failed,
        stopped=metrics.stopped,
        under_way=metrics.under_way,
        pass_rate=metrics.pass_rate,
        error_rate=metrics.error_rate,
        seconds=metrics.completion,
        expired_calls=metrics.expired,
        expired_share=metrics.expired_share,
        codes=metrics.codes,
        cost=_cost_view(metrics),
        batches=_batches_view(metrics.batches),
        agents=[_agent_view(agent) for agent in metrics.agents],
    )


def _cost_view(metrics: VerifyMetrics) -> CycleCostView:
    mean, live = metrics.cost_per_cycle, metrics.live_per_cycle
    return CycleCostView(
        total_usd=to_usd(metrics.cost),
        billed_usd=to_usd(metrics.billed),
        uncertain_usd=to_usd(metrics.uncertain),
        live_usd=to_usd(metrics.live),
        per_cycle_usd=None if mean is None else mean / 1_000_000,
        live_per_cycle_usd=None if live is None else live / 1_000_000,
    )


def _batches_view(stats: BatchStats) -> CycleBatchesView:
    return CycleBatchesView(
        count=stats.batches,
        requests=stats.requests,
        ended=stats.ended,
        expired=stats.expired,
        expiry_rate=stats.expiry_rate,
        seconds=stats.completion,
    )


def _agent_view(agent: AgentMetrics) -> AgentMetricsView:
    return AgentMetricsView(
        agent=agent.agent,
        reports=agent.reports,
        endings={ending: agent.endings.get(ending, 0) for ending in Ending},
        pass_rate=agent.pass_rate,
        findings=counts_view(agent.counts),
        cost_usd=to_usd(agent.cost),
    )

"""What suites, verifications and chains would do and cost."""

from collections.abc import Mapping

from muster.app.base.costs import Load
from muster.app.suites.exact import ExactCount
from muster.app.suites.plan import SuitePlan
from muster.domain.money import to_usd
from muster.text.views import UNSET, UnsetType, View


class LoadView(View, kw_only=True):
    """Calls that would be made; without a most when it has no bound, and with that of live calls where they are not."""

    calls: int
    most_calls: int
    tokens: int
    least_usd: float
    most_usd: float | None
    live_most_usd: float | UnsetType = UNSET


class ExactCountView(View):
    """What a provider counted of the first requests of one agent, and what it did not count."""

    requests: int
    calls_counted: int
    input_tokens: int
    input_usd: float | None
    calls_not_counted: int
    why: str


class SuitePlanView(View):
    """What a suite run would do and cost; with a budget, whether that is enough."""

    suites: int
    cases: int
    skipped: int
    damaged: int
    agents: Mapping[str, LoadView]
    judge: LoadView
    commands: int
    may_call_tools: int
    total: LoadView
    budget_usd: float | None
    fits: bool | None
    exact: Mapping[str, ExactCountView] | None = None


def load_view(load: Load) -> LoadView:
    """Return calls that would be made."""
    return LoadView(
        calls=load.calls,
        most_calls=load.most_calls,
        tokens=load.tokens,
        least_usd=to_usd(load.least),
        most_usd=None if load.unbounded else to_usd(load.most),
        live_most_usd=UNSET if load.live is None or load.unbounded else to_usd(load.live),
    )


def _exact_view(count: ExactCount) -> ExactCountView:
    return ExactCountView(
        requests=count.requests,
        calls_counted=count.counted,
        input_tokens=count.tokens,
        input_usd=None if count.cost is None else to_usd(count.cost),
        calls_not_counted=count.uncounted,
        why=count.why,
    )


def plan_view(plan: SuitePlan, cap: int | None, exact: Mapping[str, ExactCount] | None = None) -> SuitePlanView:
    """Return what a suite run would do and cost."""
    return SuitePlanView(
        suites=plan.suites,
        cases=plan.cases,
        skipped=plan.skipped,
        damaged=plan.damaged,
        agents={agent: load_view(load) for agent, load in plan.agents.items()},
        judge=load_view(plan.judge),
        commands=plan.commands,
        may_call_tools=plan.may_call_tools,
        total=load_view(plan.all),
        budget_usd=None if cap is None else to_usd(cap),
        fits=None if cap is None else plan.all.fits(cap),
        exact=None if exact is None else {agent: _exact_view(count) for agent, count in exact.items()},
    )

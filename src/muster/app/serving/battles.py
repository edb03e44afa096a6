"""Battles that are requested over a network: between agents of the library, for as long as requests may take."""

from dataclasses import replace
from typing import TypeVar

from muster.app.parts.parts import MusterParts
from muster.app.runs.handle import RunHandle
from muster.app.views.battles import StartedBattleView, StartedScaleView, started_battle_view, started_scale_view
from muster.battles.order import BattleOrder, BattlesOrder, ScaleOrder
from muster.domain.errors import BadArgument, ErrorCollector
from muster.domain.named import named_agents
from muster.domain.run import Run

Order = TypeVar("Order", bound=BattleOrder)


async def submit_battle(muster: MusterParts, order: BattleOrder) -> RunHandle:
    """Store a battle, or a scale test of such battles, for the workers; raises BadArgument with all flaws."""
    order = order.meant if isinstance(order, BattlesOrder) else order
    checks = ErrorCollector()
    checks.check(_require_agents, muster, order)
    try:
        await muster.battles.check_validators(order.validators)  # in a thread, and once: they may take long
    except BadArgument as error:
        checks.keep(error)
        checks.require()
    options, limited, models = muster.runs.ordered(order), _limited(muster, order), muster.library.agents
    if isinstance(limited, ScaleOrder):
        scale = checks.finish(muster.battles.ordered_scale, limited, models=models)
        return await muster.battles.scales.submit(scale, options)
    return await muster.battles.submit(checks.finish(muster.battles.ordered, limited, models=models), options)


async def started_battle(muster: MusterParts, run: Run) -> StartedBattleView:
    """Return the answer to a request that started a battle."""
    return started_battle_view(run)


async def started_scale(muster: MusterParts, run: Run) -> StartedScaleView:
    """Return the answer to a request that started a scale test."""
    return started_scale_view(run)


def _require_agents(muster: MusterParts, order: BattleOrder) -> None:
    """Raise BadArgument for agents that requests may not name."""
    programs = [
        (f"validators[{place}].agent", str(one["agent"]))
        for place, one in enumerate(order.validators)
        if one.get("agent")
    ]
    muster.library.require_agents([*named_agents(replace(order, agent=order.subject)), *programs])


def _limited(muster: MusterParts, order: Order) -> Order:
    """Return an order within the operator's time limit."""
    longest = muster.settings.request_timeout
    return replace(order, timeout_secs=min(order.timeout_secs or longest, longest))

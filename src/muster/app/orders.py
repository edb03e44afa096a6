"""Orders of kinds of work, started here: by what a kind names, else as it declares."""

from functools import partial
from typing import Any, Protocol

from muster.app.kinds import AppKind, loaded
from muster.app.muster import Muster
from muster.app.runs.handle import RunHandle
from muster.app.runs.options import terms_of
from muster.app.serving.orders import naming_agents, spec_of
from muster.battles.order import BattleOrder, ScaleOrder
from muster.councils.order import CouncilOrder
from muster.domain.kind import WorkKind
from muster.domain.named import named_agents
from muster.domain.run_order import RunOrder, dispatch_of


class StartOrder(Protocol):
    """What stores a run of an order and drives it in this process."""

    async def __call__(self, muster: Muster, order: Any, *, detach: bool = False) -> RunHandle:
        """Return the run; raises before anything is stored for flaws, and agents that cannot answer."""


def start_of(known: AppKind) -> StartOrder:
    """Return what starts an order of a kind here."""
    own: StartOrder | None = loaded(known.doors.start) if known.doors.start else None
    return partial(_started, own or partial(start_order, kind=known.kind))


async def _started(start: StartOrder, muster: Muster, order: Any, *, detach: bool = False) -> RunHandle:
    """Return the run of an order; an error names the fields whose agents cannot be asked too."""
    with naming_agents(muster, order):
        return await start(muster, order, detach=detach)


async def start_order(muster: Muster, order: RunOrder, *, kind: WorkKind, detach: bool = False) -> RunHandle:
    """Start an order as its kind declares; the agents are those that fields of the form AGENT name."""
    spec, terms = spec_of(kind, order), terms_of(order)
    for _, agent in named_agents(order):
        muster.agents.require(agent, dispatch=dispatch_of(order))
    return await muster.start(kind.workload, spec, **terms, detach=detach)


async def start_council(muster: Muster, order: CouncilOrder, *, detach: bool = False) -> RunHandle:
    """Start a council, with the members of its policy."""
    spec = muster.councils.ordered(order)
    return await muster.councils.start(spec, muster.runs.ordered(order), detach=detach)


async def start_battle(muster: Muster, order: BattleOrder, *, detach: bool = False) -> RunHandle:
    """Start a battle, with the validators of its files."""
    spec = muster.battles.ordered(order)
    return await muster.battles.start(spec, muster.runs.ordered(order), detach=detach)


async def start_scale(muster: Muster, order: ScaleOrder, *, detach: bool = False) -> RunHandle:
    """Start a scale test, with the goals and prompts of its files."""
    spec = muster.battles.ordered_scale(order)
    return await muster.battles.scales.start(spec, muster.runs.ordered(order), detach=detach)

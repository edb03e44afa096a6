"""Orders of kinds of work whose spec is made of nothing but the order, started here."""

from muster.app.muster import Muster
from muster.app.runs.handle import RunHandle
from muster.app.runs.options import dispatch_of, terms_of
from muster.app.serving.orders import spec_of
from muster.domain.kind import WorkKind
from muster.domain.order import named_agents
from muster.domain.run_order import RunOrder


async def start_order(muster: Muster, kind: WorkKind, order: RunOrder, *, detach: bool = False) -> RunHandle:
    """Store a run of a kind and drive it in this process; raises before that for flaws, and agents that cannot answer.

    The agents are those that fields of the form AGENT name.
    """
    spec, terms = spec_of(kind, order), terms_of(order)
    for agent in named_agents(order):
        muster.agents.require(agent, dispatch=dispatch_of(order))
    return await muster.start(kind.workload, spec, **terms, detach=detach)

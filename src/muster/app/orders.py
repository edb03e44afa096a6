"""Orders of kinds of work whose spec is made of nothing but the order: started here, or stored for the workers."""

from muster.app.muster import Muster
from muster.app.runs.handle import RunHandle
from muster.app.runs.options import dispatch_of, terms_of
from muster.domain.canonical import Json
from muster.domain.kind import WorkKind
from muster.domain.order import named_agents, require_bounds
from muster.domain.run_order import RunOrder


async def start_order(muster: Muster, kind: WorkKind, order: RunOrder, *, detach: bool = False) -> RunHandle:
    """Store a run of a kind and drive it in this process; raises before that for flaws, and agents that cannot answer.

    The agents are those that fields of the form AGENT name.
    """
    spec, terms = _spec(kind, order), terms_of(order)
    for agent in named_agents(order):
        muster.agents.require(agent, dispatch=dispatch_of(order))
    return await muster.start(kind.workload, spec, **terms, detach=detach)


async def submit_order(muster: Muster, kind: WorkKind, order: RunOrder) -> RunHandle:
    """Store a run of a kind for the workers; raises BadArgument for agents that requests may not name too."""
    spec = _spec(kind, order)
    muster.library.require_agents(named_agents(order))
    return await muster.submit(kind.workload, spec, **terms_of(order))


def _spec(kind: WorkKind, order: RunOrder) -> Json:
    assert kind.spec_of is not None  # noqa: S101  # doors are made of kinds that have it
    require_bounds(order)
    return kind.spec_of(order)

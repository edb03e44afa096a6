"""Councils that are requested over a network: of agents and policies of the library."""

from dataclasses import replace

from muster.app.parts.library import LibraryKind
from muster.app.parts.parts import MusterParts
from muster.app.runs.handle import RunHandle
from muster.councils.order import CouncilOrder
from muster.domain.errors import ErrorCollector
from muster.domain.named import named_agents


async def submit_council(muster: MusterParts, order: CouncilOrder) -> RunHandle:
    """Store a council for the workers; raises BadArgument with all flaws."""
    checks = ErrorCollector()
    checks.check(muster.library.require_agents, named_agents(order))
    path = None
    if order.policy is not None:
        path = checks.check(muster.library.find, LibraryKind.COUNCIL, order.policy, "policy")
    if order.policy is not None and path is None:  # nobody knows who is a member
        checks.require()
    spec = checks.finish(muster.councils.ordered, replace(order, policy_file=path))
    return await muster.councils.submit(spec, muster.runs.ordered(order))

"""Orders that are requested over a network: stored for the workers by what a kind of work names, else as declared."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from muster.app.kinds import AppKind, loaded
from muster.app.parts.parts import MusterParts
from muster.app.runs.handle import RunHandle
from muster.app.runs.options import dispatch_of
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration
from muster.domain.flaw import FieldFlaw
from muster.domain.kind import WorkKind
from muster.domain.order import named_agents, require_bounds
from muster.domain.run import Run
from muster.domain.run_order import RunOrder

Submit = Callable[[MusterParts, Any], Awaitable[RunHandle | Run]]  # with the order


def submission(known: AppKind) -> Submit:
    """Return what stores an order of a kind for the workers; raises BadArgument for agents that requests may not name.

    The agents are those that fields of the form AGENT name.
    """
    own: Submit | None = loaded(known.doors.submit) if known.doors.submit else None
    return partial(_submitted, own or partial(_submit, known.kind))


async def _submitted(submit: Submit, muster: MusterParts, order: Any) -> RunHandle | Run:
    """Return the run of an order; an error about a setting names the fields whose agents cannot be asked."""
    try:
        return await submit(muster, order)
    except BadConfiguration as error:
        error.flaws = error.flaws or tuple(_unready(muster, order))
        raise


def _unready(muster: MusterParts, order: Any) -> Iterator[FieldFlaw]:
    for field, name in named_agents(order):
        try:
            muster.agents.require(name)
        except BadConfiguration as wrong:
            way = next(iter(wrong.suggestions), "")
            yield FieldFlaw(path=field, message=wrong.message, suggestion=way, by_itself=True)


async def _submit(kind: WorkKind, muster: MusterParts, order: RunOrder) -> RunHandle:
    spec = spec_of(kind, order)
    muster.library.require_agents(named_agents(order))
    for _, agent in named_agents(order):
        muster.agents.require(agent, dispatch=dispatch_of(order))
    return await muster.runs.submit(kind.workload, spec, muster.runs.ordered(order))


def spec_of(kind: WorkKind, order: RunOrder) -> Json:
    """Return the spec of an order; raises BadArgument for all fields that are out of bounds."""
    assert kind.spec_of is not None  # noqa: S101  # doors are made of kinds that have it
    require_bounds(order)
    return kind.spec_of(order)

"""Orders that are requested over a network: stored for the workers by what a kind of work names, else as declared."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from muster.app.kinds import AppKind, loaded
from muster.app.parts.parts import MusterParts
from muster.app.runs.handle import RunHandle
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadConfiguration, ErrorCollector
from muster.domain.flaw import FieldFlaw
from muster.domain.kind import WorkKind
from muster.domain.named import named_agents
from muster.domain.order import require_bounds
from muster.domain.run import Run
from muster.domain.run_order import RunOrder, dispatch_of

Submit = Callable[[MusterParts, Any], Awaitable[RunHandle | Run]]  # with the order


def submission(known: AppKind) -> Submit:
    """Return what stores an order of a kind for the workers; raises BadArgument for agents that requests may not name.

    The agents are those that fields of the form AGENT name.
    """
    own: Submit | None = loaded(known.doors.submit) if known.doors.submit else None
    return partial(_submitted, own or partial(_submit, known.kind))


async def _submitted(submit: Submit, muster: MusterParts, order: Any) -> RunHandle | Run:
    """Return the run of an order; an error names the fields whose agents cannot be asked too."""
    with naming_agents(muster, order):
        return await submit(muster, order)


@contextmanager
def naming_agents(muster: MusterParts, order: Any) -> Iterator[None]:
    """Raise what is wrong with an order together with all of its agents that cannot be asked."""
    try:
        yield
    except (BadArgument, BadConfiguration) as error:
        told = {flaw.path for flaw in error.flaws}
        flaws = [flaw for flaw in _unready(muster, order) if flaw.path not in told]
        if not flaws:
            raise
        ways = tuple(dict.fromkeys((*error.suggestions, *(flaw.suggestion for flaw in flaws if flaw.suggestion))))
        if isinstance(error, BadConfiguration):
            message = "; ".join(dict.fromkeys((error.message, *(flaw.message for flaw in flaws))))
            raise BadConfiguration(message, suggestions=ways, flaws=(*error.flaws, *flaws)) from error
        raise BadArgument.of([*error.flaws, *flaws], about=error.about, suggestions=ways) from error


def _unready(muster: MusterParts, order: Any) -> Iterator[FieldFlaw]:
    """Yield which agents of an order cannot be asked, by their fields."""
    for field, name in named_agents(order):
        try:
            muster.agents.require(name)
        except BadConfiguration as wrong:
            way = next(iter(wrong.suggestions), "")
            yield FieldFlaw(path=field, message=wrong.message, suggestion=way, by_itself=True)


async def _submit(kind: WorkKind, muster: MusterParts, order: RunOrder) -> RunHandle:
    checks = ErrorCollector()
    checks.check(muster.library.require_agents, named_agents(order))
    spec = checks.finish(spec_of, kind, order)
    for _, agent in named_agents(order):
        muster.agents.require(agent, dispatch=dispatch_of(order))
    return await muster.runs.submit(kind.workload, spec, muster.runs.ordered(order))


def spec_of(kind: WorkKind, order: RunOrder) -> Json:
    """Return the spec of an order; raises BadArgument for all fields that are out of bounds."""
    assert kind.spec_of is not None  # noqa: S101  # doors are made of kinds that have it
    require_bounds(order)
    return kind.spec_of(order)

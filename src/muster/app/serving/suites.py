"""Suite runs that are requested over a network: suites, agents and judges of the library."""

from dataclasses import replace

from muster.app.parts.library import LibraryKind
from muster.app.parts.parts import MusterParts
from muster.app.runs.handle import RunHandle
from muster.domain.errors import ErrorCollector
from muster.domain.named import named_agents
from muster.suites.order import SuiteOrder


async def submit_suite(muster: MusterParts, order: SuiteOrder) -> RunHandle:
    """Store a suite run for the workers."""
    checks = ErrorCollector()
    checks.check(muster.library.require_agents, named_agents(order))
    named = [(f"suites[{place}]", name) for place, name in enumerate(order.suites)]
    paths = checks.check(muster.library.find_all, LibraryKind.SUITE, named)
    judge = checks.finish(muster.library.judge, order.judge)
    choice = replace(order, paths=tuple(map(str, paths or ())), judge=judge)
    source = await muster.suites.source(replay=order.replay, reuse=order.reuse)
    spec = await muster.suites.spec(choice, source)
    return await muster.suites.submit(spec, muster.runs.ordered(order), origin=source.origin)

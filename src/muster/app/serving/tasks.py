"""Tasks that are requested over a network: with agents of the library, for a pool that somebody drives."""

from muster.app.parts.parts import MusterParts
from muster.app.pool.orders import ordered_spec
from muster.app.views.tasks import TaskView, task_view
from muster.domain.errors import ErrorCollector
from muster.domain.run import Run
from muster.pool.order import TaskOrder


async def submit_task(muster: MusterParts, order: TaskOrder) -> Run:
    """Store a task for whoever drives the pool; raises BadArgument for agents that requests may not name."""
    checks = ErrorCollector()
    checks.check(muster.library.require_agents, [("agent", order.agent), ("model", order.model)])
    checks.finish(ordered_spec, order)
    await muster.pool.require_driver()
    return (await muster.pool.tasks.submit_ordered(order)).run


async def submitted_task(muster: MusterParts, run: Run) -> TaskView:
    """Return the answer to a request that submitted a task: how it stands, whatever became of the run."""
    return task_view(await muster.pool.tasks.of(await muster.runs.end_of_lineage(run)))

"""The workload of a run of the gateway: the process that serves does the work before it, so nothing is left to do.

A run whose server died is resumed to its end by this, with what is in its journal.
"""

from typing import Any

from muster.app.gateway.session import END, HELD
from muster.app.kinds.gateway import GATEWAY
from muster.domain.canonical import Json
from muster.domain.errors import Interrupted
from muster.engine.context import Context
from muster.engine.workload import workload


@workload(GATEWAY.workload)
async def exchanges(ctx: Context, spec: Any) -> Json:
    """Return the name under which the requests came; only its program ends a run that is held open for one."""
    if spec.get(HELD) and not await ctx.recall(END):
        raise Interrupted("the program of this run goes on with it, and nobody else")
    return {"name": spec.get("name")}

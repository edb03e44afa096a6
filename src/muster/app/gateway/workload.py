"""The workload of a run of the gateway: the process that serves does the work before it, so nothing is left to do.

A run whose server died is resumed to its end by this, with what is in its journal.
"""

from typing import Any

from muster.app.kinds.gateway import GATEWAY
from muster.domain.canonical import Json
from muster.engine.context import Context
from muster.engine.workload import workload


@workload(GATEWAY.workload)
async def exchanges(ctx: Context, spec: Any) -> Json:
    """Return the name under which the requests came."""
    return {"name": spec.get("name")}

"""`muster sim`: the rehearsal server."""

import asyncio
from pathlib import Path
from typing import Annotated

from muster.cli.line import Option
from muster.cli.terminal.output import OutputOptions
from muster.domain.errors import BadArgument
from muster.sim.files import load_faults, load_script
from muster.sim.options import ECHO_SCRIPT, NO_FAULTS, Options
from muster.sim.server import run


def sim(
    manner: OutputOptions,
    port: Annotated[int, Option("--port", metavar="N", min=0, max=65535, help="0 takes a free one.")] = 0,
    latency_ms: Annotated[float, Option("--latency-ms", metavar="MS", min=0, help="Until the answer.")] = 0.0,
    script: Annotated[Path | None, Option("--script", metavar="FILE", help="Answers, by rule.")] = None,
    faults: Annotated[Path | None, Option("--faults", metavar="FILE", help="What goes wrong, and when.")] = None,
    capacity: Annotated[
        int | None, Option("--capacity", metavar="N", min=1, help="Requests at a time; more get 429.")
    ] = None,
    require_key: Annotated[
        str | None, Option("--require-key", metavar="KEY", help="The only key that is taken.")
    ] = None,
    batch_ms: Annotated[
        float, Option("--batch-ms", metavar="MS", min=0, help="From the creation of a batch to its end.")
    ] = 0.0,
    batch_requests: Annotated[
        int | None,
        Option("--batch-requests", metavar="N", min=1, help="Most in one batch; else as the provider."),
    ] = None,
    state: Annotated[
        Path | None, Option("--state", metavar="FILE", help="Go on from it, and write it at the end.")
    ] = None,
    live_counts: Annotated[
        bool | None,
        Option("--live-counts/--no-live-counts", help="Whether batches tell how far they are; else as provider."),
    ] = None,
) -> None:
    """Serve the rehearsal; the first line is JSON with addresses."""
    options = Options(
        port=port,
        latency_ms=latency_ms,
        script=load_script(script) if script else ECHO_SCRIPT,
        faults=load_faults(faults) if faults else NO_FAULTS,
        capacity=capacity,
        key=require_key,
        batch_ms=batch_ms,
        batch_requests=batch_requests,
        live_counts=live_counts,
        state=state,
    )
    try:
        asyncio.run(run(options))
    except OSError as error:
        raise BadArgument(f"port {port} cannot be used: {error.strerror}", suggestions=("--port 0",)) from error

"""`muster sim`: the rehearsal server."""

import asyncio
from pathlib import Path
from typing import Annotated

from muster.app.base.costs import listed_price
from muster.cli.line import Option
from muster.cli.terminal.output import CommonOptions
from muster.domain.errors import BadArgument
from muster.sim.files import load_faults, load_script
from muster.sim.options import ECHO_SCRIPT, NO_FAULTS, Options
from muster.sim.protocols.ask import DEFAULT_TIER, GEOS, GLOBAL, PROJECT_TIERS
from muster.sim.server import run

ON, OFF = "on", "off"


def sim(
    common: CommonOptions,
    port: Annotated[int, Option("--port", metavar="N", min=0, max=65535, help="The port; 0 picks a free one.")] = 0,
    latency_ms: Annotated[
        float, Option("--latency-ms", metavar="MS", min=0, help="Milliseconds until the answer.")
    ] = 0.0,
    script: Annotated[
        Path | None,
        Option("--script", metavar="FILE", shown="the prompt is the answer", help="A file with scripted answers."),
    ] = None,
    faults: Annotated[Path | None, Option("--faults", metavar="FILE", shown="none", help="A file with faults.")] = None,
    capacity: Annotated[
        int | None,
        Option(
            "--capacity",
            metavar="N",
            min=1,
            shown="no maximum",
            help="Maximum number of concurrent requests; others get status 429.",
        ),
    ] = None,
    require_key: Annotated[
        str | None, Option("--require-key", metavar="KEY", shown="any", help="The only API key that is accepted.")
    ] = None,
    batch_ms: Annotated[
        float, Option("--batch-ms", metavar="MS", min=0, help="Duration of a batch in milliseconds.")
    ] = 0.0,
    batch_requests: Annotated[
        int | None,
        Option(
            "--batch-requests",
            metavar="N",
            min=1,
            shown="the provider's limit",
            help="Maximum number of calls in one batch.",
        ),
    ] = None,
    thinking: Annotated[
        str | None,
        Option(
            "--thinking",
            values=(ON, OFF),
            shown="as the script says, else off",
            help="Whether models think before they answer, and refuse what they do not take.",
        ),
    ] = None,
    tier: Annotated[
        str, Option("--tier", values=PROJECT_TIERS, help="The service tier of requests that name none.")
    ] = DEFAULT_TIER,
    inference_geo: Annotated[
        str,
        Option("--inference-geo", values=GEOS, help="Where inference of requests that name no place is kept."),
    ] = GLOBAL,
    state: Annotated[
        Path | None,
        Option("--state", metavar="FILE", help="Load the state from this file at the start and save it at the end."),
    ] = None,
    live_counts: Annotated[
        bool | None,
        Option("--live-counts/--no-live-counts", shown="like the provider", help="Whether batches report progress."),
    ] = None,
) -> None:
    """Start a fake provider and print its URLs as JSON."""
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
        thinking=None if thinking is None else thinking == ON,
        tier=tier,
        geo=inference_geo,
        price_of=listed_price,
    )
    try:
        asyncio.run(run(options))
    except OSError as error:
        raise BadArgument(f"port {port} cannot be used: {error.strerror}", suggestions=("--port 0",)) from error

"""Child processes around one large batch: hand it in, read its results with the SDK, bring them into the store."""

import asyncio
import gc
import json
import resource
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import muster
from bench.fleet import AGENT, spent
from muster.cli.main import set_up
from muster.domain.batch import BatchState
from muster.engine.batches.base import Patience
from muster.settings import load_settings

PROMPT = "x" * 1_700  # echoed: a line of results has about two thousand bytes
HASTY = Patience(poll_first=0.05, poll_longest=0.5, max_parked=1_000_000)
KEY = "sk-bench-0123456789"


@muster.workload("bench-batch")
async def bench_batch(ctx: muster.Context, spec: Any) -> int:
    """Ask so many questions and count the answers."""

    async def one(number: int, item: int) -> int:
        return int(bool((await ctx.call(AGENT, f"{item} {spec['prompt']}", key=f"q/{number}")).text))

    done = 0
    async for answered in ctx.map(one, range(spec["calls"])):
        done += answered
    return done


def open_home(url: str, home: str, patience: Patience = HASTY) -> Any:
    """Open the store of a folder before a rehearsal server."""
    keys = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url}
    return muster.open(settings=load_settings(Path(home), folder=Path(home), environment=keys), patience=patience)


async def submit(url: str, home: str, calls: int) -> dict[str, Any]:
    """Hand the batch in and leave."""
    async with open_home(url, home) as m:
        spec = {"calls": calls, "prompt": PROMPT}
        await (await m.start("bench-batch", spec, dispatch="batch", detach=True, concurrency=100)).wait()
        (batch,) = await m.batches.list((BatchState.RUNNING, BatchState.ENDED))
        return {"provider_id": batch.provider_id}


async def fetch(url: str, home: str, calls: int) -> dict[str, Any]:
    """Bring the results into the store."""
    set_up()  # as the command does, for both of them
    async with open_home(url, home) as m:
        wall, cpu = spent()
        batch = await m.batches.fetch(await m.batches.find("last"))
        now, used = spent()
        assert batch.tally.succeeded == calls, batch.note
    return {"seconds": now - wall, "cpu": used - cpu}


async def sdk(url: str, provider_id: str, calls: int) -> dict[str, Any]:
    """Read the same results with the official SDK; nothing is kept."""
    from anthropic import AsyncAnthropic

    set_up()  # for both of them
    async with AsyncAnthropic(api_key=KEY, base_url=url) as client:
        wall, cpu = spent()
        count = 0
        async for result in await client.messages.batches.results(provider_id):
            count += result.result.type == "succeeded"
        now, used = spent()
        assert count == calls
    return {"seconds": now - wall, "cpu": used - cpu}


async def parked(url: str, home: str, calls: int) -> dict[str, Any]:
    """Measure what one parked call with a short prompt takes: all that is allocated, shared out."""
    patience = Patience(settle=3600.0, linger=3600.0, max_parked=1_000_000)
    async with open_home(url, home, patience) as m:
        m._backend.directory.batching(AGENT)  # the price list is nobody's call
        gc.collect()
        tracemalloc.start()
        await m.start("bench-batch", {"calls": calls, "prompt": "short"}, dispatch="batch", concurrency=100)
        while m._backend.engine.batcher.parked < calls:  # noqa: ASYNC110 - nothing tells when the last one is parked
            await asyncio.sleep(0.05)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return {"bytes": size / calls}


def main() -> None:
    """Do one of them and print its figures as JSON."""
    kind, url, what, calls = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    work = {"submit": submit, "fetch": fetch, "sdk": sdk, "parked": parked}[kind]
    figures = asyncio.run(work(url, what, calls))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**figures, "peak_mb": peak}))


if __name__ == "__main__":
    main()

"""A child process that makes many calls to the rehearsal server and prints what they cost."""

import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import muster
from muster.settings import load_settings

AGENT = "anthropic/claude-haiku-5-5"


@muster.workload("bench")
async def bench(ctx: muster.Context, spec: Any) -> int:
    """Ask so many questions and count the answers."""

    async def one(number: int, item: int) -> int:
        reply = await ctx.call(AGENT, f"question {item}", key=f"q/{number}")
        return int(bool(reply.text))

    done = 0
    async for answered in ctx.map(one, range(spec["calls"])):
        done += answered
    return done


def spent() -> tuple[float, float]:
    """Give the seconds of the wall clock and of this process."""
    return time.perf_counter(), time.process_time()


async def durable(url: str, calls: int, concurrency: int, **watched: Any) -> dict[str, float]:
    """Make durable calls: journal, ledger, budget and all."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        keys = {"ANTHROPIC_API_KEY": "sk-bench-0123456789", "ANTHROPIC_BASE_URL": url}
        settings = load_settings(home / "home", folder=home, environment=keys)
        async with muster.open(settings=settings, **watched) as m:
            await (await m.start("bench", {"calls": concurrency}, concurrency=concurrency)).result()
            wall, cpu = spent()
            run = await m.start("bench", {"calls": calls}, concurrency=concurrency, budget_usd=1000)
            assert await run.result() == calls
            now, used = spent()
    return {"seconds": now - wall, "cpu": used - cpu}


async def watched(url: str, calls: int, concurrency: int) -> dict[str, float]:
    """Make durable calls that an observer counts for metrics."""
    return await durable(url, calls, concurrency, metrics=True)


async def raw(url: str, calls: int, concurrency: int) -> dict[str, float]:
    """Make the same requests with aiohttp alone: nothing is remembered, nothing is counted."""
    import aiohttp

    headers = {"x-api-key": "sk-bench", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    numbers = iter(range(calls))

    async def worker(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            message = {"role": "user", "content": f"question {number}"}
            body = {"model": AGENT.partition("/")[2], "max_tokens": 2048, "messages": [message]}
            async with session.post(f"{url}/v1/messages", data=json.dumps(body), headers=headers) as answer:
                assert json.loads(await answer.read())["content"]

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        wall, cpu = spent()
        await asyncio.gather(*(worker(session) for _ in range(concurrency)))
        now, used = spent()
    return {"seconds": now - wall, "cpu": used - cpu}


def main() -> None:
    """Run one of the three and print its figures as JSON."""
    kind, url, calls, concurrency = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    figures = asyncio.run({"durable": durable, "watched": watched, "raw": raw}[kind](url, calls, concurrency))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**figures, "peak_mb": peak}))


if __name__ == "__main__":
    main()

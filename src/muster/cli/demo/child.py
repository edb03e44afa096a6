"""`python -m muster.cli.demo.child`: the process of the demo that is killed; it ends with its parent in any case."""

import asyncio
import os
import threading

import muster
from muster.cli.demo import work as demo_work


async def work() -> None:
    """Begin the demo's work in the store that the environment names."""
    async with muster.open() as opened:
        run = await opened.start(
            "demo",
            demo_work.spec(),
            name=demo_work.NAME,
            budget_usd=demo_work.BUDGET,
            concurrency=demo_work.CONCURRENCY,
        )
        await run.wait()


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    asyncio.run(work())

"""Slots at work: how much of a core the process that drives them needs, alone and with tasks in the queue."""

import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import muster
from muster import TaskSpec
from muster.settings import load_settings

SLOTS = 8
SECONDS = 10.0
# An agent as they are: it writes some words five times a second, and takes longer than is measured.
SCRIPT = """while :; do echo '{"d": "some more words "}'; sleep 0.2; done"""
TOML = f"""
[pool]
slots = {SLOTS}
agent = "writer"

[agents.writer]
kind = "cli"
command = {json.dumps(["sh", "-c", SCRIPT])}
output = "jsonl"
delta = "$.d"
answer = "$.a"
ends = "$.a"
budget_usd = 1.00
"""


def cpu() -> float:
    """Give the seconds of this process alone."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def busy(queued: int) -> dict[str, float]:
    """Drive slots that are all at work, with so many tasks behind them, and give the share of a core that it took."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "muster.toml").write_text(TOML)
        settings = load_settings(home / "home", folder=home, environment={"PATH": "/usr/bin:/bin"})
        async with muster.open(settings=settings) as m:
            for number in range(SLOTS + queued):
                await m.pool.tasks.submit(TaskSpec(prompt=f"task {number}"))
            driving = asyncio.ensure_future(m.pool.driver().serve())
            async for snapshot in m.pool.monitor.watch():
                if len(snapshot.writing) == SLOTS:
                    break
            wall, used = time.perf_counter(), cpu()
            await asyncio.sleep(SECONDS)
            share = (cpu() - used) / (time.perf_counter() - wall)
            await m.pool.drain(0.0)
            await driving
            return {"share": share}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(busy(int(sys.argv[1])))))

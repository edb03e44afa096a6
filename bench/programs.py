"""Child processes that run `/bin/cat` many times: spawned with nothing around it, and as durable calls to a program."""

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import muster
from muster.settings import load_settings

TOML = """
[agents.cat]
kind = "program"
mode = "plain"
command = ["/bin/cat"]
"""


@muster.workload("bench-programs")
async def bench_programs(ctx: muster.Context, spec: Any) -> int:
    """Ask so many questions and count the answers."""

    async def one(number: int, item: int) -> int:
        return int((await ctx.call("cat", f"question {item}", key=f"q/{number}")).text == f"question {item}")

    done = 0
    async for answered in ctx.map(one, range(spec["calls"])):
        done += answered
    return done


def cpu() -> float:
    """Give the seconds of this process and of all children that have ended."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


def bare(calls: int) -> dict[str, float]:
    """Spawn, write, read and wait; nothing is remembered, bounded or watched."""
    wall, used = time.perf_counter(), cpu()
    for number in range(calls):
        question = f"question {number}".encode()
        reader, stdin = os.pipe()
        stdout, writer = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, reader, 0), (os.POSIX_SPAWN_DUP2, writer, 1)]
        pid = os.posix_spawn("/bin/cat", ["/bin/cat"], {}, file_actions=actions)
        os.close(reader)
        os.close(writer)
        os.write(stdin, question)
        os.close(stdin)
        with os.fdopen(stdout, "rb") as output:
            assert output.read() == question
        os.waitpid(pid, 0)
    return {"seconds": time.perf_counter() - wall, "cpu": cpu() - used}


async def durable(calls: int) -> dict[str, float]:
    """Make durable calls: journal, ledger, deadline, group, token and all."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "muster.toml").write_text(TOML)
        settings = load_settings(home / "home", folder=home, environment={})
        async with muster.open(settings=settings) as m:
            await (await m.start("bench-programs", {"calls": 20}, concurrency=4)).result()
            wall, used = time.perf_counter(), cpu()
            run = await m.start("bench-programs", {"calls": calls}, concurrency=4, budget_usd=1000)
            assert await run.result() == calls
            return {"seconds": time.perf_counter() - wall, "cpu": cpu() - used}


def main() -> None:
    """Run one of the two and print its figures as JSON."""
    kind, calls = sys.argv[1], int(sys.argv[2])
    print(json.dumps(bare(calls) if kind == "bare" else asyncio.run(durable(calls))))


if __name__ == "__main__":
    main()

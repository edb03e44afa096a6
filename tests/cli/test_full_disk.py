"""A disk that fills up under a run: told plainly, nothing half-written, and the run goes on when there is room."""

import json
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

WORK = """
import muster

@muster.workload("fill")
async def fill(ctx, spec):
    async def one(i, item):
        return len((await ctx.call("sim/echo", "x" * 4000 + str(i), key=f"k/{i}")).text)
    return sum([n async for n in ctx.map(one, range(400))])
"""

FULL = """
import asyncio, resource, signal, muster
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
async def main():
    async with muster.open() as m:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, resource.RLIM_INFINITY))
        run = await m.start("fill", None, name="filling")
        try:
            await run.result()
        except muster.MusterError as error:
            print(error.code, error.message, *error.suggestions)
asyncio.run(main())
"""


def test_a_run_on_a_full_disk_stops_and_is_resumed_when_there_is_room(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "muster.toml").write_text('[workloads]\nimport = ["work"]\n')
    environment = {**ENVIRONMENT, "HOME": str(tmp_path)}
    program = [sys.executable, "-c", FULL]
    full = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert full.returncode == 0, full.stderr
    assert "nothing was half-written" in full.stdout

    command = [sys.executable, "-m", "muster", "runs", "resume", "filling", "--json"]
    resumed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert resumed.returncode == 0, resumed.stderr
    data = json.loads(resumed.stdout)["data"]
    assert (data["state"], data["calls"]["done"]) == ("completed", 400)

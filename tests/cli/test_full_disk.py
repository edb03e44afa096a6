"""A disk that fills up under a run: told plainly, nothing half-written, and the run goes on when there is room."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
    full = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200)
    assert full.returncode == 0, full.stderr
    assert "nothing was half-written" in full.stdout

    command = [sys.executable, "-m", "muster", "runs", "resume", "filling", "--json"]
    resumed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200)
    assert resumed.returncode == 0, resumed.stderr
    data = json.loads(resumed.stdout)["data"]
    assert (data["state"], data["calls"]["done"]) == ("completed", 400)


SMALL = """
set -e
mount -t tmpfs -o size=3m small "$1"
cd "$1"
muster() { "$PYTHON" -m muster "$@" > "$OUT/$name.out" 2> "$OUT/$name.err" || echo $? > "$OUT/$name.code"; }
name=first; muster ask sim/echo hello --name answered
name=crashed; MUSTER_CRASH_AT=call.opened:1 muster ask sim/echo hello --name crashed
rm .muster/muster.db-shm
dd if=/dev/zero of=fill bs=4096 2> /dev/null || true
name=list; muster runs list --json
name=show; muster runs show answered --json
name=doctor; muster doctor --json
name=ask; muster ask sim/echo again
rm fill
name=after; muster runs list --json
"""


def mounting() -> tuple[str, ...]:
    """Return the command that starts another one which may mount something of its own."""
    refusals = []
    for more in ((), ("--user", "--map-root-user")):
        command = ("unshare", *more, "--mount")
        script = "mount -t tmpfs none /mnt"
        tried = subprocess.run([*command, "bash", "-c", script], capture_output=True, text=True)
        if tried.returncode == 0:
            return command
        refusals.append(tried.stderr.strip())
    pytest.fail(f"this test mounts a small disk, which this system refuses: {refusals}")


def test_on_a_full_disk_everything_can_be_read_and_it_is_said_that_the_disk_is_full(tmp_path: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    for folder in (disk, out):
        folder.mkdir()
    environment = {**ENVIRONMENT, "HOME": str(tmp_path), "OUT": str(out), "PYTHON": sys.executable}
    command = [*mounting(), "bash", "-c", SMALL, "small", str(disk)]
    subprocess.run(command, env=environment, check=True, timeout=120)

    def told(name: str) -> tuple[int, str, str]:
        code = out / f"{name}.code"
        texts = [(out / f"{name}.{end}").read_text() for end in ("out", "err")]
        return int(code.read_text()) if code.exists() else 0, texts[0], texts[1]

    code, listed, err = told("list")
    assert (code, {run["name"]: run["state"] for run in json.loads(listed)["data"]}) == (
        0,
        {"answered": "completed", "crashed": "running"},
    )
    assert "the disk is full" in err
    assert "still shown as running" in err
    code, shown, err = told("show")
    assert (code, json.loads(shown)["data"]["result"]["text"]) == (0, "hello")
    assert "the disk is full" in err
    code, found, _ = told("doctor")
    findings = json.loads(found)["data"]["findings"]
    assert code == 3
    assert {finding["subject"] for finding in findings if finding["state"] == "broken"} == {"home"}
    assert "No space left on device" in next(f["words"] for f in findings if f["subject"] == "home")
    code, _, err = told("ask")
    assert code == 4
    assert "free some space" in err
    code, listed, err = told("after")
    states = {run["name"]: run["state"] for run in json.loads(listed)["data"] if run["name"]}
    assert (code, states, err) == (0, {"answered": "completed", "crashed": "interrupted"}, "")

"""A tab that watches a run: what it holds after some events, and after many times as many, collected of its garbage."""

import json
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import CDPSession, Page
from tests.browser import chromium

import muster
from bench.page import in_thread, served
from bench.processes import BenchServer, ChildDied
from muster.settings import load_settings

WARM = 10_000  # events after which what a tab holds is measured for the first time
PATIENCE = 540_000  # milliseconds
WORKLOADS = """
import asyncio

import muster


@muster.workload("bench-events")
async def events(ctx, spec):
    for name, many in (("warm", spec["warm"]), ("rest", spec["rest"])):
        await ctx.receive(name, name)
        for first in range(0, many, 500):
            keys = [f"{name}/{number}" for number in range(first, min(first + 500, many))]
            await asyncio.gather(*(ctx.emit(key, "progress", {"key": key, "note": "x" * 200}) for key in keys))
"""


async def submit(folder: Path, events: int) -> str:
    """Store a run that tells so many events when it is told to."""
    async with muster.open(settings=load_settings(folder / ".muster", folder=folder, environment={})) as m:
        return str((await m.runs.submit("bench-events", {"warm": WARM, "rest": events - WARM})).id)


async def send(folder: Path, run: str, channel: str) -> str:
    """Let a run go on."""
    async with muster.open(settings=load_settings(folder / ".muster", folder=folder, environment={})) as m:
        await m.runs.send(run, channel, {})
    return channel


def held(page: Page, session: CDPSession) -> tuple[float, float]:
    """Return the megabytes of the heap and the nodes of a tab, without garbage."""
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    found = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return found["JSHeapUsedSize"] / 1e6, found["Nodes"]


def main() -> None:
    """Measure, and print the figures as JSON."""
    events = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        (folder / "bench_workloads.py").write_text(WORKLOADS, encoding="utf-8")
        (folder / "muster.toml").write_text('[workloads]\nimport = ["bench_workloads"]\n', encoding="utf-8")
        run = in_thread(submit(folder, events))
        with served(folder) as server, browser.new_context() as context:
            page = context.new_page()
            session = context.new_cdp_session(page)
            session.send("Performance.enable")
            page.goto(f"{server.url}/#/runs/{run}/events")
            page.locator(".lamp.is-live").wait_for()
            in_thread(send(folder, run, "warm"))
            wait_for_events(page, WARM, server)
            before = held(page, session)
            in_thread(send(folder, run, "rest"))
            page.locator(".run-head", has_text="completed").wait_for(timeout=PATIENCE)
            wait_for_events(page, events, server)
            after = held(page, session)
    print(
        json.dumps({"before_mb": before[0], "after_mb": after[0], "before_nodes": before[1], "after_nodes": after[1]})
    )


def wait_for_events(page: Page, most: int, server: BenchServer) -> None:
    """Wait until the tab shows that it knows of so many events; raises ChildDied when the server has ended."""
    while server.process.poll() is None:
        told = page.locator(".foot").inner_text(timeout=PATIENCE).split(" of ")[1].partition(";")[0].replace(",", "")
        if int(told) >= most:
            return
        page.wait_for_timeout(200)
    raise ChildDied("the server has ended")


if __name__ == "__main__":
    main()

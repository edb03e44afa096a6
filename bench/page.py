"""Large runs opened on the page, in a real browser: how long until something is there, and while it is scrolled.

The server is a process of its own, the browser Debian's Chromium; both are started before anything is measured.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page
from tests.browser import chromium

import muster
from bench.processes import BenchServer, serving
from bench.suites import write_suite
from muster.settings import load_settings

ROUNDS = 5
SCROLLS = 20


@muster.workload("bench-page")
async def many(ctx: muster.Context, spec: dict[str, int]) -> None:
    """Make many calls."""

    async def one(number: int, text: str) -> str:
        return (await ctx.call("sim/echo", text, key=f"call/{number:06}")).text

    async for _ in ctx.map(one, (str(number) for number in range(spec["calls"]))):
        pass


async def fill(folder: Path, calls: int) -> str:
    """Store a run with so many calls, and return its id."""
    settings = load_settings(folder / ".muster", folder=folder, environment={})
    async with muster.open(settings=settings) as m:
        handle = await m.runs.start("bench-page", {"calls": calls})
        return str((await handle.wait()).id)


async def fill_suite(folder: Path, cases: int) -> str:
    """Store a suite run with so many cases, and return its id."""
    settings = load_settings(folder / ".muster", folder=folder, environment={})
    spec = {"path": str(write_suite(folder, cases)), "agents": ["sim/echo"]}
    async with muster.open(settings=settings) as m:
        handle = await m.start("suite", spec, concurrency=100)
        return str((await handle.wait()).id)


@contextmanager
def served(folder: Path) -> Iterator[BenchServer]:
    """Serve the store of a folder."""
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(folder)}
    with serving(folder, environment) as server:
        yield server


# The time since the navigation began at which something is in the document: what asks from outside, asks late.
SEEN = """new MutationObserver((_, observer) => {
  if (!document.querySelector(SELECTOR)) return;
  observer.disconnect();
  requestAnimationFrame(() => { globalThis.seenAfter = performance.now() / 1000; });
}).observe(document, { childList: true, subtree: true })"""


@contextmanager
def page_at(browser: Browser, address: str, selector: str) -> Iterator[tuple[Page, float]]:
    """Open an address in a fresh browser profile; gives the seconds until an element that is looked for is painted."""
    with browser.new_context() as context:
        context.add_init_script(SEEN.replace("SELECTOR", json.dumps(selector)))
        page = context.new_page()
        page.goto(address, wait_until="commit")
        page.locator(selector).first.wait_for()
        while (seconds := page.evaluate("globalThis.seenAfter")) is None:
            page.wait_for_timeout(20)
        yield page, seconds


def opened(browser: Browser, url: str, run: str) -> tuple[float, float]:
    """Return the seconds until the first rows are there, and those of one step of scrolling to what is not loaded."""
    with page_at(browser, f"{url}/#/runs/{run}/calls", ".call-rows .open") as (page, first):
        foot = page.locator(".foot")
        begun = time.perf_counter()
        for number in range(SCROLLS):
            page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            foot.filter(has_text=f"{200 * (number + 2):,} of").wait_for()
        return first, (time.perf_counter() - begun) / SCROLLS


def median_of(browser: Browser, address: str, selector: str) -> float:
    """Return the median of the seconds until something is there."""
    seconds = []
    for _ in range(ROUNDS):
        with page_at(browser, address, selector) as (_, found):
            seconds.append(found)
    return statistics.median(seconds)


def in_thread(work: Coroutine[Any, Any, str]) -> str:
    """Do something in a loop of its own: the browser has that of this thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(work)).result()


def main() -> None:
    """Measure, and print the figures as JSON."""
    calls, cases = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        run = in_thread(fill(folder, calls))
        suite = in_thread(fill_suite(folder, cases))
        with served(folder) as server:
            url = server.url
            rounds = [opened(browser, url, run) for _ in range(ROUNDS)]
            runs = median_of(browser, f"{url}/", ".run-rows .open")
            rows = median_of(browser, f"{url}/#/runs/{suite}", ".case-rows .open")
            charts = median_of(browser, f"{url}/#/runs/{suite}", ".charts svg")
    first, step = (statistics.median(one) for one in zip(*rounds, strict=True))
    suites = {"case_seconds": rows, "chart_seconds": charts}
    print(json.dumps({"first_seconds": first, "scroll_seconds": step, "runs_seconds": runs, **suites}))


if __name__ == "__main__":
    main()
